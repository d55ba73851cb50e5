/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dequantize.c - weights of a matrix as f32, from the parts that the index points to.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bundle_map.h"
#include "bytes.h"
#include "classes.h"
#include "decode.h"
#include "dtype.h"
#include "number.h"
#include "printable.h"
#include "scale.h"

/* A matrix's outliers: a CSR matrix. */
struct outliers {
	const uint8_t *pointer, *column, *residual;
	uint32_t count;
	bool wide; /* columns of 4 bytes */
};

static struct outliers find_outliers(const struct xfp_matrix_info *matrix)
{
	struct outliers o = { .count = (uint32_t)matrix->outliers, .wide = matrix->cols > 65536 };

	if (o.count) {
		o.pointer = matrix->outlier;
		o.column = o.pointer + (matrix->rows + 1) * 4;
		o.residual = o.column + xfp_align((uint64_t)o.count * (o.wide ? 4 : 2), 4);
	}
	return o;
}

/* Add the outliers of a row; false when they are not within the matrix. */
static bool add_outliers(const struct outliers *o, uint64_t row, uint64_t rows, uint64_t cols, float *x)
{
	uint32_t first = xfp_load32(o->pointer + row * 4), end = xfp_load32(o->pointer + row * 4 + 4);
	size_t size = o->wide ? 4 : 2;

	if (first > end || end > o->count || (row == 0 && first) || (row + 1 == rows && end != o->count))
		return false;
	for (uint32_t i = first; i < end; i++)
		if ((o->wide ? xfp_load32(o->column + i * size) : xfp_load16(o->column + i * size)) >= cols)
			return false;
	xfp_decode_outliers(o->column + first * size, o->wide,
			    (const uint16_t *)(const void *)(o->residual + first * (size_t)2), end - first, x);
	return true;
}

/* Rows of a matrix in one of the modes with codebooks. */
struct decoder {
	const struct xfp_matrix_info *matrix;
	struct outliers outliers;
	uint64_t row_bytes, groups; /* of a row */
	float *down;                /* NULL: not balanced */
	float *values;              /* of the library */
	struct xfp_library library;
};

static enum xfp_status decoder_init(struct decoder *d, const struct xfp_matrix_info *matrix, struct xfp_error *err)
{
	size_t entries = (size_t)matrix->library_size << matrix->k, halves = matrix->code_bytes / 2;
	const uint8_t *balance = matrix->balance;

	*d = (struct decoder){ .matrix = matrix, .outliers = find_outliers(matrix) };
	if (balance && !(d->down = malloc(matrix->cols * sizeof *d->down)))
		return xfp_fail(err, XFP_FAILED, "out of memory");
	for (uint64_t c = 0; balance && c < matrix->cols; c++)
		d->down[c] = xfp_balance_down(balance[c]);
	if (matrix->mode == XFP_MODE_V2) {
		d->row_bytes = xfp_v2_row_bytes(matrix->cols, matrix->k);
		return XFP_OK;
	}
	if (!(d->values = malloc(halves * sizeof *d->values))) {
		free(d->down);
		return xfp_fail(err, XFP_FAILED, "out of memory");
	}
	xfp_decode_halves(matrix->code, halves, d->values);
	d->library = (struct xfp_library){ .k = matrix->k,
					   .group = (unsigned)__builtin_ctz(matrix->group_size),
					   .codebooks = matrix->library_size,
					   .entry = d->values,
					   .ratio = d->values + entries };
	d->row_bytes = xfp_group_index_bytes(matrix->cols, matrix->k);
	d->groups = xfp_row_groups(matrix->cols, d->library.group);
	return XFP_OK;
}

/* Row r of x', without outliers. False when it names a codebook that is not there. */
static bool decode_row(const struct decoder *d, uint64_t r, float *x)
{
	const struct xfp_matrix_info *matrix = d->matrix;
	const uint8_t *index = (const uint8_t *)matrix->index + r * d->row_bytes, *group = matrix->group;
	uint64_t groups = matrix->rows * d->groups, at = r * d->groups;

	switch ((enum xfp_mode)matrix->mode) {
	case XFP_MODE_V2A:
		return xfp_decode_v2a(&d->library, index, (const uint16_t *)matrix->group + 2 * at,
				      group + 4 * groups + at, matrix->cols, x);
	case XFP_MODE_V2C:
		xfp_decode_v2c(&d->library, index, group + at, group[groups + r], matrix->cols, x);
		return true;
	default:
		xfp_decode_v2(matrix->k, index, (const uint16_t *)matrix->code + (r << matrix->k), matrix->cols, x);
		return true;
	}
}

static enum xfp_status dequantize_rows(const struct xfp_bundle *bundle, const struct xfp_matrix_info *matrix,
				       uint64_t first, uint64_t rows, float *out, struct xfp_error *err)
{
	struct decoder d;
	enum xfp_status status = decoder_init(&d, matrix, err);
	const char *wrong = NULL;

	if (status)
		return status;
	for (uint64_t r = first; !wrong && r < first + rows; r++, out += matrix->cols) {
		if (!decode_row(&d, r, out))
			wrong = "a group's codebook is none of its library";
		else if (d.outliers.count && !add_outliers(&d.outliers, r, matrix->rows, matrix->cols, out))
			wrong = "outliers outside the matrix";
		else
			xfp_unscale_row(out, d.down, matrix->exponent, matrix->cols, out);
		if (wrong)
			status = xfp_fail(
				err, XFP_BAD_INPUT,
				"%s: damaged: unit %s, expert %" PRIu32 ", row %" PRIu64
				": %s; copy or convert it again",
				bundle->path,
				xfp_printable(xfp_bundle_string(bundle, bundle->units[matrix->unit].name)).text,
				matrix->expert, r, wrong);
	}
	free(d.down);
	free(d.values);
	return status;
}

enum xfp_status xfp_bundle_dequantize(const struct xfp_bundle *bundle, uint32_t number, uint64_t first, uint64_t rows,
				      float *out, struct xfp_error *err)
{
	struct xfp_matrix_info matrix;
	const uint8_t *index;
	uint64_t cols;
	float scale;

	if (!xfp_bundle_matrix(bundle, number, &matrix) || first > matrix.rows || rows > matrix.rows - first)
		return xfp_fail(err, XFP_USAGE, "%s: has no such rows of matrix %" PRIu32, bundle->path, number);
	cols = matrix.cols;
	index = matrix.index;
	if (!rows || !cols)
		return XFP_OK;
	switch ((enum xfp_mode)matrix.mode) {
	case XFP_MODE_V2:
	case XFP_MODE_V2A:
	case XFP_MODE_V2C:
		return dequantize_rows(bundle, &matrix, first, rows, out, err);
	case XFP_MODE_FP8:
		for (uint64_t r = first; r < first + rows; r++, out += cols) {
			memcpy(&scale, (const uint8_t *)matrix.code + r * sizeof scale, sizeof scale);
			xfp_decode_fp8(index + r * cols, scale, cols, out);
		}
		return XFP_OK;
	default: /* KEEP; opening accepts no other */
		index += first * cols * (xfp_dtype_bits(bundle->units[matrix.unit].dtype) / 8);
		xfp_to_float(bundle->units[matrix.unit].dtype, index, rows * cols, out);
		return XFP_OK;
	}
}
