/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights of a bundle, by libxfp.
 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/system/filesystem.h"
#include "kernels/common/number.h"
#include "model/weights/digests.h"
#include "model/weights/fast_product.h"
#include "model/weights/pages.h"
#include "model/weights/weights.h"
#include "runtime/xfp.h"

#define FEWEST_ROWS 16 /* of a matrix that is part of a tensor, to be multiplied by on its own */

#define AROUND 0x10000 /* bytes that are mapped with a page, usually */
#define MOST_OPEN 8    /* units, where memory is let go */

/* Matrices by the tensor and the place where they begin in it. */
struct bundle_place {
	uint32_t tensor, matrix;
	uint64_t base;
};

struct bundle_source {
	struct xfp_bundle *bundle;
	struct xfp_bundle_info info;
	struct xfp_digests *digests;
	bool *sound;                 /* tensors whose bytes are those that were written */
	struct bundle_place *places; /* sorted */
	struct xfp_linear **linears; /* of units, opened when they are first multiplied by */
	uint32_t open[MOST_OPEN];    /* where pages are let go, units that are; XFP_NOT_FOUND: none */
	uint32_t next_open;          /* the place of the oldest */
	bool lets_go;
};

/* Rows of one or more matrices, or of a tensor that was kept. */
struct bundle_rows {
	const struct bundle_source *source;
	uint32_t tensor;
	const uint8_t *data; /* of a tensor that was kept; NULL: it is matrices */
	uint64_t bytes;      /* of that */
	enum xfp_dtype dtype;
	struct xfp_view view;
};

static int compare_places(const void *a, const void *b)
{
	const struct bundle_place *p = a, *q = b;

	if (p->tensor != q->tensor)
		return p->tensor < q->tensor ? -1 : 1;
	return p->base < q->base ? -1 : p->base > q->base;
}

static void close_bundle(void *source)
{
	struct bundle_source *s = source;

	for (uint32_t u = 0; s->linears && u < s->info.units; u++)
		xfp_linear_close(s->linears[u]);
	free(s->linears);
	free(s->places);
	free(s->sound);
	xfp_digests_close(s->digests);
	xfp_bundle_close(s->bundle);
	free(s);
}

static bool find_tensor(const struct bundle_source *s, const char *name, uint32_t *number, struct xfp_tensor_info *info)
{
	*number = xfp_bundle_find_tensor(s->bundle, name);
	return xfp_bundle_tensor(s->bundle, *number, info);
}

static bool shape_of(const void *source, const char *tensor, uint32_t *rank, uint64_t shape[XFP_MAX_RANK])
{
	struct xfp_tensor_info info;
	uint32_t number;

	if (!find_tensor(source, tensor, &number, &info))
		return false;
	*rank = info.rank;
	memcpy(shape, info.shape, XFP_MAX_RANK * sizeof *shape);
	return true;
}

/* Whether all of the view is in a tensor of so many elements. */
static bool holds(uint64_t elements, const struct xfp_view *view)
{
	uint64_t down, right, last;

	return view->rows && view->cols && xfp_mul(view->rows - 1, view->row_stride, &down) &&
	       xfp_mul(view->cols - 1, view->col_stride, &right) && xfp_add(down, right, &last) &&
	       xfp_add(last, view->base, &last) && last < elements;
}

/* Some of a view's rows, which are rows of one matrix. */
struct bundle_part {
	uint32_t matrix;
	uint64_t first, count;
};

/* Rows of the view from `row` on, as far as they are in the matrix of that place. */
static bool part_in(const struct bundle_source *s, uint32_t number, const struct xfp_view *view, uint64_t row,
		    struct bundle_part *part)
{
	struct xfp_matrix_info info;
	uint64_t before;

	if (!xfp_bundle_matrix(s->bundle, number, &info) || !info.row_stride || info.cols != view->cols ||
	    info.row_stride != view->row_stride || info.col_stride != view->col_stride)
		return false;
	before = view->base + row * view->row_stride - info.base;
	if (before % info.row_stride || before / info.row_stride >= info.rows)
		return false;
	*part = (struct bundle_part){ number, before / info.row_stride, info.rows - before / info.row_stride };
	if (part->count > view->rows - row)
		part->count = view->rows - row;
	return true;
}

/* A bundle may hold one tensor as several matrices: their rows take turns, or lie one after the other. So the place
 * that is looked for is rarely far before the first one behind the row. */
static bool find_part(const struct bundle_source *s, uint32_t tensor, const struct xfp_view *view, uint64_t row,
		      struct bundle_part *part)
{
	uint64_t base = view->base + row * view->row_stride;
	uint32_t low = 0, high = s->info.matrices;

	while (low < high) {
		const struct bundle_place *p = &s->places[low + (high - low) / 2];

		if (p->tensor < tensor || (p->tensor == tensor && p->base <= base))
			low += (high - low) / 2 + 1;
		else
			high = low + (high - low) / 2;
	}
	while (low && s->places[low - 1].tensor == tensor) {
		if (part_in(s, s->places[--low].matrix, view, row, part))
			return true;
	}
	return false;
}

static bool all_found(const struct bundle_source *s, uint32_t tensor, const struct xfp_view *view)
{
	struct bundle_part part;

	for (uint64_t row = 0; row < view->rows; row += part.count) {
		if (!find_part(s, tensor, view, row, &part))
			return false;
	}
	return view->rows > 0;
}

static enum xfp_status open_rows(const void *source, const char *tensor, const struct xfp_view *view, void **matrix,
				 struct xfp_error *err)
{
	const struct bundle_source *s = source;
	struct bundle_rows found = { .source = s, .view = *view };
	struct xfp_tensor_info info;

	if (!find_tensor(s, tensor, &found.tensor, &info))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: has no tensor %s", s->info.path, tensor);
	found.data = info.data;
	found.bytes = info.bytes;
	found.dtype = (enum xfp_dtype)info.dtype;
	if (!found.data && (!holds(info.elements, view) || !all_found(s, found.tensor, view)))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: %s (%s) is not stored as the rows that the model wants of it",
				s->info.path, tensor, info.fate_name);
	if (found.data && (!xfp_dtype_is_weight(found.dtype) || !holds(info.elements, view)))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: %s is %s, and not the numbers that the model wants of it",
				s->info.path, tensor, info.dtype_name);
	if (!(*matrix = malloc(sizeof found)))
		return xfp_no_memory_for(err, s->info.path);
	memcpy(*matrix, &found, sizeof found);
	return XFP_OK;
}

static void let_go_of_matrix(const struct bundle_source *s, uint32_t matrix)
{
	struct xfp_matrix_info info;

	if (!s->lets_go || !xfp_bundle_matrix(s->bundle, matrix, &info))
		return;
	xfp_pages_let_go(info.index, info.index_bytes);
	xfp_pages_let_go(info.code, info.code_bytes);
	xfp_pages_let_go(info.group, info.group_bytes);
	xfp_pages_let_go(info.outlier, info.outlier_bytes);
}

static enum xfp_status read_parts(const struct bundle_rows *m, uint64_t first, uint64_t count, float *out,
				  struct xfp_error *err)
{
	struct bundle_part part;
	enum xfp_status status;

	for (; count; count -= part.count, first += part.count, out += part.count * m->view.cols) {
		if (!find_part(m->source, m->tensor, &m->view, first, &part))
			return xfp_fail(err, XFP_BAD_INPUT, "%s: has no such rows", m->source->info.path);
		if (part.count > count)
			part.count = count;
		if ((status = xfp_bundle_dequantize(m->source->bundle, part.matrix, part.first, part.count, XFP_FLOAT32,
						    out, err)))
			return status;
		let_go_of_matrix(m->source, part.matrix);
	}
	return XFP_OK;
}

/* And of what the system maps around a page that is read: of rows here and there, that is most. */
static void let_go_of_rows(const struct bundle_rows *m, uint64_t first, uint64_t bytes)
{
	uint64_t begin = first > AROUND ? first - AROUND : 0;
	uint64_t end = first + bytes + AROUND < m->bytes ? first + bytes + AROUND : m->bytes;

	xfp_pages_let_go(m->data + begin, end - begin);
}

static enum xfp_status read_rows(void *matrix, uint64_t first, uint64_t count, float *out, struct xfp_error *err)
{
	const struct bundle_rows *m = matrix;
	const struct xfp_view *v = &m->view;
	size_t size = xfp_dtype_bits(m->dtype) / 8;

	if (!m->data)
		return read_parts(m, first, count, out, err);
	for (uint64_t r = first; r < first + count; r++) {
		const uint8_t *row = m->data + (v->base + r * v->row_stride) * size;

		if (v->col_stride == 1) {
			xfp_to_float(m->dtype, row, v->cols, out);
			out += v->cols;
			continue;
		}
		for (uint64_t c = 0; c < v->cols; c++)
			xfp_to_float(m->dtype, row + c * v->col_stride * size, 1, out++);
	}
	if (m->source->lets_go)
		let_go_of_rows(m, (v->base + first * v->row_stride) * size, count * v->row_stride * size);
	return XFP_OK;
}

static enum xfp_status copy_file(const void *source, const char *name, char **bytes, size_t *size,
				 struct xfp_error *err)
{
	const struct bundle_source *s = source;
	uint32_t number = xfp_bundle_find_file(s->bundle, name);
	struct xfp_file_info file;
	enum xfp_status status;

	if (!xfp_bundle_file(s->bundle, number, &file))
		return XFP_OK;
	if ((status = xfp_digests_of_file(s->digests, number, err)))
		return status;
	if (!(*bytes = malloc(file.bytes + 1)))
		return xfp_no_memory_for(err, s->info.path);
	memcpy(*bytes, file.data, file.bytes);
	(*bytes)[file.bytes] = 0;
	*size = file.bytes;
	return XFP_OK;
}

/* ---- digests ----------------------------------------------------------------------------------- */

/* The first place of a tensor, or of those behind it. */
static uint32_t first_place(const struct bundle_source *s, uint32_t tensor)
{
	uint32_t low = 0, high = s->info.matrices;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->places[middle].tensor < tensor)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* All units that have some of it. */
static enum xfp_status check(void *source, const char *tensor, bool (*watch)(void *context, uint64_t numbers),
			     void *context, struct xfp_error *err)
{
	struct bundle_source *s = source;
	const struct xfp_digest_reading reading = { s->lets_go, watch, context };
	struct xfp_tensor_info info;
	struct xfp_matrix_info matrix;
	enum xfp_status status;
	uint32_t number;

	if (!find_tensor(s, tensor, &number, &info) || s->sound[number])
		return XFP_OK;
	status = xfp_digests_of_tensor(s->digests, number, &reading, err);
	for (uint32_t i = first_place(s, number); !status && i < s->info.matrices && s->places[i].tensor == number;
	     i++) {
		if (xfp_bundle_matrix(s->bundle, s->places[i].matrix, &matrix))
			status = xfp_digests_of_unit(s->digests, matrix.unit, &reading, err);
	}
	s->sound[number] = !status;
	return status;
}

static enum xfp_status check_all(void *source, struct xfp_team *team, bool (*watch)(void *context, uint64_t numbers),
				 void *context, struct xfp_error *err)
{
	struct bundle_source *s = source;
	const struct xfp_digest_reading reading = { s->lets_go, watch, context };

	return xfp_digests_of_all(s->digests, team, &reading, err);
}

/* ---- products ---------------------------------------------------------------------------------- */

/* The units of a layer take turns; those of layers that are done are not needed again. */
static void close_oldest(struct bundle_source *s, uint32_t unit)
{
	uint32_t *oldest = &s->open[s->next_open++ % MOST_OPEN];

	if (*oldest != XFP_NOT_FOUND) {
		xfp_linear_close(s->linears[*oldest]);
		s->linears[*oldest] = NULL;
	}
	*oldest = unit;
}

static enum xfp_status find_linear(struct bundle_source *s, uint32_t unit, struct xfp_linear **linear,
				   struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	if (!s->linears[unit]) {
		status = xfp_linear_open(s->bundle, unit, NULL, &s->linears[unit], err);
		if (!status && s->lets_go)
			close_oldest(s, unit);
	}
	*linear = s->linears[unit];
	return status;
}

static uint64_t bytes_of(const struct xfp_matrix_info *info)
{
	return info->index_bytes + info->code_bytes + info->group_bytes + info->balance_bytes + info->outlier_bytes;
}

/* Some rows of a matrix by all vectors. All rows take what was decoded once. */
static enum xfp_status multiply_part(struct bundle_source *s, struct xfp_team *team, const struct bundle_part *part,
				     const struct xfp_weight_product *p, float *y, uint64_t *bytes,
				     struct xfp_error *err)
{
	struct xfp_input in = { p->x, XFP_FLOAT32, p->count, p->view.cols };
	struct xfp_output out = { y, XFP_FLOAT32, p->count, p->stride };
	struct xfp_slice slice = { .first_row = part->first, .rows = part->count };
	struct xfp_linear *linear = NULL, *own = NULL;
	struct xfp_matrix_info info;
	enum xfp_status status;

	if (!xfp_bundle_matrix(s->bundle, part->matrix, &info))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: has no such matrix", s->info.path);
	if (part->count == info.rows)
		status = find_linear(s, info.unit, &linear, err);
	else if (!(status = xfp_linear_open(s->bundle, info.unit, &slice, &own, err)))
		linear = own;
	if (!status)
		status = xfp_multiply(team, linear, info.expert, p->count, &in, &out, err);
	xfp_linear_close(own);
	let_go_of_matrix(s, part->matrix);
	*bytes += bytes_of(&info) * part->count / info.rows;
	return status;
}

/* A tensor that was kept, in which rows follow one another. */
static enum xfp_status multiply_kept(struct xfp_team *team, const struct xfp_tensor_info *tensor,
				     const struct xfp_weight_product *p, uint64_t *bytes, struct xfp_error *err)
{
	size_t size = xfp_dtype_bits((enum xfp_dtype)tensor->dtype) / 8;
	const uint8_t *rows = tensor->data;

	if (!xfp_fast_dtype((enum xfp_dtype)tensor->dtype) || p->view.col_stride != 1 ||
	    p->view.row_stride != p->view.cols || !holds(tensor->elements, &p->view))
		return XFP_OK;
	*bytes = p->rows * p->view.cols * size;
	return xfp_fast_product(team, (enum xfp_dtype)tensor->dtype,
				rows + (p->view.base + p->first * p->view.cols) * size, p->rows, p->view.cols, p->x,
				p->count, p->y, p->stride, err);
}

static enum xfp_status multiply(void *source, struct xfp_team *team, const struct xfp_weight_product *p,
				uint64_t *bytes, struct xfp_error *err)
{
	struct bundle_source *s = source;
	struct xfp_tensor_info tensor;
	enum xfp_status status = XFP_OK;
	struct bundle_part part;
	uint32_t number;

	if (!find_tensor(s, p->tensor, &number, &tensor))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: has no tensor %s", s->info.path, p->tensor);
	if (tensor.data) {
		status = multiply_kept(team, &tensor, p, bytes, err);
		if (s->lets_go && *bytes)
			xfp_pages_let_go((const uint8_t *)tensor.data + (p->view.base + p->first * p->view.cols) *
										(*bytes / p->rows / p->view.cols),
					 *bytes);
		return status;
	}
	for (uint64_t row = 0; row < p->rows; row += part.count) {
		if (!holds(tensor.elements, &p->view) || !find_part(s, number, &p->view, p->first + row, &part))
			return xfp_fail(err, XFP_BAD_INPUT,
					"%s: %s (%s) is not stored as the rows that the model wants of it",
					s->info.path, p->tensor, tensor.fate_name);
		/* Rows that take turns are few at a time, and cheaper together. */
		if (part.count < p->rows && part.count < FEWEST_ROWS && !row)
			return XFP_OK;
		if (part.count > p->rows - row)
			part.count = p->rows - row;
		if ((status = multiply_part(s, team, &part, p, p->y + row, bytes, err)))
			break;
	}
	return status;
}

static bool stacked(const void *source, const char *tensor, const struct xfp_view *view, uint32_t *stack,
		    uint32_t *expert)
{
	const struct bundle_source *s = source;
	struct xfp_tensor_info info;
	struct xfp_matrix_info matrix;
	struct bundle_part part;
	uint32_t number;

	if (!find_tensor(s, tensor, &number, &info) || info.data || !holds(info.elements, view) ||
	    !find_part(s, number, view, 0, &part) || part.first || part.count < view->rows ||
	    !xfp_bundle_matrix(s->bundle, part.matrix, &matrix) || matrix.rows != view->rows)
		return false;
	*stack = matrix.unit;
	*expert = matrix.expert;
	return true;
}

static enum xfp_status multiply_experts(void *source, struct xfp_team *team, const struct xfp_stack_products *p,
					bool (*watch)(void *context, uint64_t numbers), void *context, uint64_t *bytes,
					struct xfp_error *err)
{
	struct bundle_source *s = source;
	const struct xfp_digest_reading reading = { s->lets_go, watch, context };
	struct xfp_linear *linear;
	struct xfp_matrix_info matrix;
	struct xfp_unit_info unit;
	enum xfp_status status = xfp_digests_of_unit(s->digests, p->stack, &reading, err);

	if (!status && !(status = find_linear(s, p->stack, &linear, err)))
		status = xfp_multiply_experts(team, linear, p->products, p->count, &p->x, &p->y, err);
	for (size_t i = 0; !status && i < p->expert_count && xfp_bundle_unit(s->bundle, p->stack, &unit); i++) {
		if (xfp_bundle_matrix(s->bundle, unit.first_matrix + p->experts[i], &matrix))
			*bytes += bytes_of(&matrix);
		let_go_of_matrix(s, unit.first_matrix + p->experts[i]);
	}
	return status;
}

static void let_go(void *source)
{
	struct bundle_source *s = source;

	s->lets_go = true;
	for (size_t i = 0; i < MOST_OPEN; i++)
		s->open[i] = XFP_NOT_FOUND;
}

static enum xfp_status identify(const void *source, struct xfp_sha256 *sha, struct xfp_error *err)
{
	const struct bundle_source *s = source;
	struct xfp_identity identity;
	struct stat st;
	enum xfp_status status = xfp_look(s->info.path, &st, err);

	if (status)
		return status;
	identity = xfp_identity_at(s->info.path, &st);
	xfp_sha256_update(sha, &identity, sizeof identity);
	return XFP_OK;
}

const struct xfp_weights_source xfp_weights_of_bundle = {
	.close = close_bundle,
	.shape = shape_of,
	.open_rows = open_rows,
	.read_rows = read_rows,
	.close_rows = free,
	.let_go = let_go,
	.identify = identify,
	.file = copy_file,
	.multiply = multiply,
	.check = check,
	.check_all = check_all,
	.stacked = stacked,
	.multiply_experts = multiply_experts,
};

enum xfp_status xfp_weights_open_bundle(const char *path, void **source, char **config, struct xfp_error *err)
{
	struct bundle_source *s = calloc(1, sizeof *s);
	enum xfp_status status;
	size_t size;

	if (!s)
		return xfp_no_memory_for(err, path);
	if ((status = xfp_bundle_open(path, &s->bundle, err)))
		goto done;
	xfp_bundle_info(s->bundle, &s->info);
	if ((status = xfp_digests_open(s->bundle, &s->digests, err)))
		goto done;
	s->places = calloc((size_t)s->info.matrices + 1, sizeof *s->places);
	s->linears = calloc((size_t)s->info.units + 1, sizeof *s->linears);
	s->sound = calloc((size_t)s->info.tensors + 1, sizeof *s->sound);
	if (!s->places || !s->linears || !s->sound) {
		status = xfp_no_memory_for(err, path);
		goto done;
	}
	for (uint32_t m = 0; m < s->info.matrices; m++) {
		struct xfp_matrix_info info;

		if (xfp_bundle_matrix(s->bundle, m, &info))
			s->places[m] = (struct bundle_place){ info.tensor, m, info.base };
	}
	qsort(s->places, s->info.matrices, sizeof *s->places, compare_places);
	status = copy_file(s, "config.json", config, &size, err);
done:
	if (status)
		close_bundle(s);
	else
		*source = s;
	return status;
}
