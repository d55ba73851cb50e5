/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - decodes rows by number, as a token embedding needs.
 *
 * A row is decoded one window of columns at a time, so that the stack suffices for rows of any length.
 */
#include <inttypes.h>

#include "base/printable.h"
#include "kernels/common/number.h"
#include "kernels/common/scale.h"
#include "runtime/linear.h"

#define WINDOW 1024 /* columns; a multiple of groups and of chunks of indices */

/* A window of columns of a matrix; begins at a multiple of WINDOW. */
struct window {
	const struct xfp_linear *linear;
	uint32_t expert;
	int exponent;
	uint64_t first, cols; /* columns of the slice within the window */
	struct xfp_matvec w;
};

static void open_window(const struct xfp_linear *linear, uint32_t expert, uint64_t at, struct window *window)
{
	uint64_t first = linear->slice.first_col, end = first + linear->slice.cols, left = linear->cols - at;
	struct xfp_linear part = *linear;
	struct xfp_matrix_info matrix = { .exponent = 0 };

	part.slice.first_col = at;
	part.slice.cols = left < WINDOW ? left : WINDOW;
	if (!linear->tensor)
		xfp_bundle_matrix(linear->bundle, linear->first_matrix + expert, &matrix);
	*window = (struct window){ .linear = linear, .expert = expert, .exponent = matrix.exponent };
	window->first = first > at ? first : at;
	window->cols = (end < at + part.slice.cols ? end : at + part.slice.cols) - window->first;
	xfp_linear_matrix(&part, expert, &window->w);
}

static enum xfp_status decode(const struct window *window, uint64_t row, enum xfp_float type, void *out,
			      struct xfp_error *err)
{
	const struct xfp_linear *linear = window->linear;
	uint64_t at = window->w.first_column;
	float x[WINDOW];
	enum xfp_status status = xfp_linear_decode(linear, window->expert, &window->w, row, 1, x, 0, err);

	if (status)
		return status;
	if (window->w.mode >= XFP_MATVEC_V2)
		xfp_unscale_row(x, linear->down ? linear->down + at : NULL, window->exponent, window->w.cols, x);
	xfp_from_float((int)type, x + (window->first - at), window->cols, out);
	return XFP_OK;
}

static enum xfp_status check_id(const struct xfp_linear *linear, uint32_t id, struct xfp_error *err)
{
	uint64_t rows = linear->experts * linear->slice.rows;

	if (id >= rows)
		return xfp_fail(err, XFP_USAGE, "%s: %s: row %" PRIu32 " does not exist; there are %" PRIu64,
				linear->bundle->path, xfp_printable(linear->name).text, id, rows);
	return XFP_OK;
}

static enum xfp_status check(const struct xfp_linear *linear, const uint32_t *ids, size_t count,
			     const struct xfp_output *out, struct xfp_error *err)
{
	const char *path = linear->bundle->path, *name = linear->name;
	enum xfp_status status = XFP_OK;

	if (count && (!ids || !out || !out->data))
		return xfp_fail(err, XFP_USAGE, "%s: %s: the list of rows, or the output, is NULL", path,
				xfp_printable(name).text);
	if (!count)
		return XFP_OK;
	if (out->type < XFP_FLOAT32 || out->type > XFP_BFLOAT16)
		return xfp_fail(err, XFP_USAGE, "%s: unknown type %d", path, (int)out->type);
	if (out->count < count || (count > 1 && out->stride < linear->slice.cols))
		return xfp_fail(err, XFP_USAGE, "%s: %s: the output is too small for %zu rows of %" PRIu64 " columns",
				path, xfp_printable(name).text, count, linear->slice.cols);
	for (size_t i = 0; !status && i < count; i++)
		status = check_id(linear, ids[i], err);
	return status;
}

enum xfp_status xfp_rows(const struct xfp_linear *linear, const uint32_t *ids, size_t count,
			 const struct xfp_output *out, struct xfp_error *err)
{
	const struct xfp_slice *slice = &linear->slice;
	enum xfp_status status = check(linear, ids, count, out, err);
	uint64_t at = slice->first_col - slice->first_col % WINDOW;
	size_t element = !status && count && out->type == XFP_FLOAT32 ? 4 : 2;

	for (; !status && count && at < slice->first_col + slice->cols; at += WINDOW) {
		struct window window = { .linear = NULL };

		for (size_t i = 0; !status && i < count; i++) {
			const uint32_t id = ids[i], expert = (uint32_t)(id / slice->rows);
			uint64_t row = slice->first_row + id % slice->rows;

			if ((status = check_id(linear, id, err))) /* again: the output may overlap the list */
				break;
			if (!window.linear || window.expert != expert)
				open_window(linear, expert, at, &window);
			status = decode(&window, row, out->type,
					(uint8_t *)out->data +
						(i * out->stride + (window.first - slice->first_col)) * element,
					err);
		}
	}
	return status;
}
