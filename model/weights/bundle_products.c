/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products with a bundle's matrices, by libxfp.
 */
#include "model/weights/bundle_source.h"

#include <string.h>

#include "model/weights/fast_product.h"
#include "model/weights/pages.h"

#define MIN_ROWS 16 /* of a matrix that is part of a tensor, to be multiplied separately */

/* Make an open unit the newest. If it is not listed, close the oldest: units of earlier layers are not needed again. */
static void make_newest(struct xfp_bundle_source *s, uint32_t unit)
{
	size_t at = 0;

	while (at < XFP_MAX_OPEN - 1 && s->open[at] != unit)
		at++;
	if (s->open[at] != unit && s->open[at] != XFP_NOT_FOUND) {
		xfp_linear_close(s->linears[s->open[at]]);
		s->linears[s->open[at]] = NULL;
	}
	memmove(s->open + 1, s->open, at * sizeof *s->open);
	s->open[0] = unit;
}

static enum xfp_status find_linear(struct xfp_bundle_source *s, uint32_t unit, struct xfp_linear **linear,
				   struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	if (!s->linears[unit])
		status = xfp_linear_open(s->bundle, unit, NULL, &s->linears[unit], err);
	if (!status && s->releases_pages)
		make_newest(s, unit);
	*linear = s->linears[unit];
	return status;
}

static uint64_t bytes_of(const struct xfp_matrix_info *info)
{
	return info->index_bytes + info->code_bytes + info->group_bytes + info->balance_bytes + info->outlier_bytes;
}

/* Whole matrices that are multiplied in one call. Fewer than XFP_MAX_OPEN, so that none is closed before. */
struct whole_matrices {
	const struct xfp_linear *linears[XFP_WEIGHT_PRODUCTS];
	struct xfp_output y[XFP_WEIGHT_PRODUCTS];
	uint32_t matrices[XFP_WEIGHT_PRODUCTS];
	size_t count;
};

static enum xfp_status multiply_whole(const struct xfp_bundle_source *s, struct xfp_team *team,
				      const struct xfp_weight_product *p, struct whole_matrices *whole,
				      struct xfp_error *err)
{
	struct xfp_input in = { p->x, XFP_FLOAT32, p->count, p->view.cols };
	enum xfp_status status =
		xfp_multiply_linears(team, whole->linears, whole->count, NULL, p->count, &in, whole->y, err);

	for (size_t i = 0; i < whole->count; i++)
		xfp_bundle_release_pages(s, whole->matrices[i]);
	whole->count = 0;
	return status;
}

/* Multiply some rows of a matrix by all vectors, which share the decoded rows, or add the matrix to `whole`. */
static enum xfp_status multiply_part(struct xfp_bundle_source *s, struct xfp_team *team,
				     const struct xfp_bundle_part *part, const struct xfp_weight_product *p, float *y,
				     struct whole_matrices *whole, uint64_t *bytes, struct xfp_error *err)
{
	struct xfp_input in = { p->x, XFP_FLOAT32, p->count, p->view.cols };
	struct xfp_output out = { y, XFP_FLOAT32, p->count, p->stride };
	struct xfp_slice slice = { .first_row = part->first, .rows = part->count };
	struct xfp_linear *linear = NULL, *own = NULL;
	struct xfp_matrix_info info;
	enum xfp_status status;

	if (!xfp_bundle_matrix(s->bundle, part->matrix, &info))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: has no such matrix", s->info.path);
	*bytes += bytes_of(&info) * part->count / info.rows;
	if (part->count == info.rows)
		status = find_linear(s, info.unit, &linear, err);
	else if (!(status = xfp_linear_open(s->bundle, info.unit, &slice, &own, err)))
		linear = own;
	if (!status && !own && !info.expert) {
		if (whole->count == XFP_WEIGHT_PRODUCTS && (status = multiply_whole(s, team, p, whole, err)))
			return status;
		whole->linears[whole->count] = linear;
		whole->y[whole->count] = out;
		whole->matrices[whole->count++] = part->matrix;
		return XFP_OK;
	}
	if (!status)
		status = xfp_multiply(team, linear, info.expert, p->count, &in, &out, err);
	xfp_linear_close(own);
	xfp_bundle_release_pages(s, part->matrix);
	return status;
}

/* A kept tensor with consecutive rows. */
static enum xfp_status multiply_kept(struct xfp_team *team, const struct xfp_tensor_info *tensor,
				     const struct xfp_weight_product *p, uint64_t *bytes, struct xfp_error *err)
{
	size_t size = xfp_dtype_bits((enum xfp_dtype)tensor->dtype) / 8;
	const uint8_t *rows = tensor->data;

	if (!xfp_fast_dtype((enum xfp_dtype)tensor->dtype) || p->view.col_stride != 1 ||
	    p->view.row_stride != p->view.cols || !xfp_view_is_within(tensor->elements, &p->view))
		return XFP_OK;
	*bytes = p->rows * p->view.cols * size;
	return xfp_fast_product(team, (enum xfp_dtype)tensor->dtype,
				rows + (p->view.base + p->first * p->view.cols) * size, p->rows, p->view.cols, p->x,
				p->count, p->y, p->stride, err);
}

static enum xfp_status multiply_tensor(struct xfp_bundle_source *s, struct xfp_team *team,
				       const struct xfp_weight_product *p, struct whole_matrices *whole,
				       uint64_t *bytes, struct xfp_error *err)
{
	struct xfp_tensor_info tensor;
	enum xfp_status status = XFP_OK;
	struct xfp_bundle_part part;
	uint32_t number;

	if (!xfp_bundle_source_find(s, p->tensor, &number, &tensor))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: has no tensor %s", s->info.path, p->tensor);
	if (tensor.data) {
		status = multiply_kept(team, &tensor, p, bytes, err);
		if (s->releases_pages && *bytes)
			xfp_pages_release((const uint8_t *)tensor.data + (p->view.base + p->first * p->view.cols) *
										 (*bytes / p->rows / p->view.cols),
					  *bytes);
		return status;
	}
	for (uint64_t row = 0; row < p->rows; row += part.count) {
		if (!xfp_view_is_within(tensor.elements, &p->view) ||
		    !xfp_bundle_find_part(s, number, &p->view, p->first + row, &part))
			return xfp_fail(err, XFP_BAD_INPUT, "%s: %s (%s) is not stored in rows that the model can use",
					s->info.path, p->tensor, tensor.fate_name);
		/* Interleaved rows come a few at a time, and are cheaper together. */
		if (part.count < p->rows && part.count < MIN_ROWS && !row)
			return XFP_OK;
		if (part.count > p->rows - row)
			part.count = p->rows - row;
		if ((status = multiply_part(s, team, &part, p, p->y + row, whole, bytes, err)))
			break;
	}
	return status;
}

enum xfp_status xfp_bundle_multiply(void *source, struct xfp_team *team, const struct xfp_weight_product *products,
				    size_t count, uint64_t *bytes, struct xfp_error *err)
{
	struct whole_matrices whole = { .count = 0 };
	enum xfp_status status = XFP_OK;

	for (size_t i = 0; !status && i < count; i++)
		status = multiply_tensor(source, team, &products[i], &whole, &bytes[i], err);
	return status || !whole.count ? status : multiply_whole(source, team, products, &whole, err);
}

bool xfp_bundle_stacked(const void *source, const char *tensor, const struct xfp_view *view, uint32_t *stack,
			uint32_t *expert)
{
	const struct xfp_bundle_source *s = source;
	struct xfp_tensor_info info;
	struct xfp_matrix_info matrix;
	struct xfp_bundle_part part;
	uint32_t number;

	if (!xfp_bundle_source_find(s, tensor, &number, &info) || info.data ||
	    !xfp_view_is_within(info.elements, view) || !xfp_bundle_find_part(s, number, view, 0, &part) ||
	    part.first || part.count < view->rows || !xfp_bundle_matrix(s->bundle, part.matrix, &matrix) ||
	    matrix.rows != view->rows)
		return false;
	*stack = matrix.unit;
	*expert = matrix.expert;
	return true;
}

enum xfp_status xfp_bundle_multiply_experts(void *source, struct xfp_team *team, const struct xfp_stack_products *p,
					    bool (*watch)(void *context, uint64_t numbers), void *context,
					    uint64_t *bytes, struct xfp_error *err)
{
	struct xfp_bundle_source *s = source;
	const struct xfp_digest_reading reading = { s->releases_pages, watch, context };
	struct xfp_linear *linear;
	struct xfp_matrix_info matrix;
	struct xfp_unit_info unit;
	enum xfp_status status = xfp_digests_check_unit(s->digests, p->stack, &reading, err);

	if (!status && !(status = find_linear(s, p->stack, &linear, err)))
		status = xfp_multiply_experts(team, linear, p->products, p->count, &p->x, &p->y, err);
	for (size_t i = 0; !status && i < p->expert_count && xfp_bundle_unit(s->bundle, p->stack, &unit); i++) {
		if (xfp_bundle_matrix(s->bundle, unit.first_matrix + p->experts[i], &matrix))
			*bytes += bytes_of(&matrix);
		xfp_bundle_release_pages(s, unit.first_matrix + p->experts[i]);
	}
	return status;
}
