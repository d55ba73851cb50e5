/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cuda/plan.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/printable.h"
#include "kernels/common/lane_index.h"
#include "runtime/cuda/outliers.h"
#include "runtime/slice.h"
#include "schemas/layout/classes.h"

/* Limit on the bytes of a row, also of four bytes per column, and on the rows of a matrix: kernels count in 32 bits. */
#define MAX_SIZE UINT32_C(0x7fffffff)

/* ---- method and shape -------------------------------------------------------------------------- */

static enum xfp_cuda_method kept_method(unsigned dtype)
{
	return dtype == XFP_BF16 ? XFP_CUDA_BF16 : dtype == XFP_F16 ? XFP_CUDA_F16 : XFP_CUDA_F32;
}

static enum xfp_cuda_method method_of(const struct xfp_unit_info *unit)
{
	switch ((enum xfp_mode)unit->mode) {
	case XFP_MODE_V2:
		return XFP_CUDA_V2;
	case XFP_MODE_V2A:
		return XFP_CUDA_V2A;
	case XFP_MODE_V2C:
		return unit->group_size >= 32 ? XFP_CUDA_V2C32 : XFP_CUDA_V2C;
	case XFP_MODE_FP8:
		return XFP_CUDA_FP8;
	default:
		return kept_method(unit->dtype);
	}
}

/* A balance of zeros counts as no balance, so that such units share prepared vectors with units without one. */
static const uint8_t *balance_of(const struct xfp_matrix_info *matrix, const struct xfp_slice *slice)
{
	const uint8_t *d = matrix->balance ? (const uint8_t *)matrix->balance + slice->first_col : NULL;

	for (uint64_t c = 0; d && c < slice->cols; c++)
		if (d[c])
			return d;
	return NULL;
}

static enum xfp_status set_slice(struct xfp_cuda_plan *plan, const struct xfp_slice *slice, struct xfp_error *err)
{
	struct xfp_bundle_info info;
	enum xfp_status status;

	if ((status = xfp_slice_resolve(plan->bundle, plan->name, plan->full_rows, plan->full_cols, slice, &plan->slice,
					err)))
		return status;
	plan->lead = (uint32_t)(plan->slice.first_col & ((UINT64_C(1) << plan->group) - 1));
	plan->first_col = plan->slice.first_col - plan->lead;
	if (plan->slice.rows > MAX_SIZE || plan->slice.cols > MAX_SIZE / 4 - plan->lead) {
		xfp_bundle_describe(plan->bundle, &info);
		return xfp_fail(err, XFP_USAGE,
				"%s: %s: %" PRIu64 " rows of %" PRIu64
				" columns exceed the limit of the kernels; open slices",
				info.path, xfp_printable(plan->name).text, plan->slice.rows, plan->slice.cols);
	}
	plan->rows = (uint32_t)plan->slice.rows;
	plan->cols = (uint32_t)(plan->slice.cols + plan->lead);
	return XFP_OK;
}

/* ---- offsets ----------------------------------------------------------------------------------- */

/* Compute the row layout for one k. */
static void set_rows(const struct xfp_cuda_plan *plan, unsigned k, struct xfp_cuda_weights *w)
{
	uint64_t columns;

	*w = (struct xfp_cuda_weights){ .rows = plan->rows,
					.cols = plan->cols,
					.group = plan->group,
					.codebooks = plan->codebooks,
					.experts = plan->experts };
	if (plan->method < XFP_CUDA_FP8) {
		w->row_bytes = (uint32_t)xfp_align((uint64_t)plan->cols * (plan->method == XFP_CUDA_F32 ? 4 : 2), 16);
		w->chunks = (plan->cols + XFP_CUDA_KEPT_COLUMNS - 1) / XFP_CUDA_KEPT_COLUMNS;
		return;
	}
	columns = k ? xfp_chunk_columns(k) : XFP_CUDA_FP8_COLUMNS;
	w->chunks = (uint32_t)((plan->cols + columns - 1) / columns);
	w->row_bytes = (uint32_t)(w->chunks * columns / 8 * (k ? k : 8));
	if (plan->method == XFP_CUDA_V2C32)
		w->row_groups = (uint32_t)(w->chunks * columns / 32);
	else if (plan->group)
		w->row_groups = (uint32_t)((w->chunks * columns + (UINT64_C(1) << plan->group) - 1) >> plan->group);
}

/* Allocate `count` times `bytes` in the image: `place` receives its offset, and `end` moves after it. Returns false and
 * 0 on overflow. */
static bool take(uint64_t *end, uint64_t count, uint64_t bytes, uint64_t *place)
{
	uint64_t size;

	*place = *end;
	if (!xfp_mul(count, bytes, &size) || !xfp_add(*end, size, end) || *end > INT64_MAX)
		return false;
	*end = xfp_align(*end, XFP_CUDA_PART_ALIGN);
	return true;
}

bool xfp_cuda_has_integers(const struct xfp_cuda_plan *plan, unsigned k)
{
	return plan->cols <= XFP_CUDA_INTEGER_COLUMNS && xfp_cuda_has_form(plan->method, k, XFP_CUDA_I1);
}

static bool place_expert(const struct xfp_cuda_plan *plan, struct xfp_cuda_expert *e, uint64_t *end)
{
	struct xfp_cuda_weights w;
	uint64_t tiled_rows;
	bool fits;

	set_rows(plan, e->k, &w);
	tiled_rows = xfp_cuda_tiled_rows(w.rows);
	fits = take(end, e->k ? tiled_rows : w.rows, w.row_bytes, &e->index);
	if (plan->method == XFP_CUDA_V2 && xfp_cuda_has_integers(plan, e->k))
		fits = fits && take(end, w.rows, sizeof(struct xfp_cuda_pair), &e->pair) &&
		       take(end, w.rows, UINT64_C(2) << e->k, &e->integer);
	if (plan->tables)
		e->pair = plan->tables + (UINT64_C(512) << e->k);
	if (plan->method == XFP_CUDA_V2)
		fits = fits && take(end, w.rows, UINT64_C(2) << e->k, &e->code);
	if (plan->method == XFP_CUDA_FP8)
		fits = fits && take(end, w.rows, 4, &e->code);
	if (plan->method == XFP_CUDA_V2A)
		fits = fits && take(end, w.rows, (uint64_t)w.row_groups * 4, &e->group) &&
		       take(end, w.rows, w.row_groups, &e->number);
	if (plan->method >= XFP_CUDA_V2C)
		fits = fits &&
		       take(end, plan->method == XFP_CUDA_V2C32 ? tiled_rows : w.rows, w.row_groups, &e->group) &&
		       take(end, w.rows, 4, &e->row);
	if (e->outliers)
		fits = fits && take(end, (uint64_t)w.rows + 1, 4, &e->pointer) &&
		       take(end, e->outliers, 4, &e->column) && take(end, e->outliers, 2, &e->residual);
	return fits;
}

static bool place_all(struct xfp_cuda_plan *plan)
{
	uint64_t end = 0, table;
	bool fits = take(&end, plan->experts, sizeof(struct xfp_cuda_matrix), &table);

	if (plan->codebooks)
		fits = fits && take(&end, plan->codebooks, UINT64_C(2) << plan->k, &plan->library);
	if (plan->method >= XFP_CUDA_V2C)
		fits = fits && take(&end, 256 / plan->codebooks, 4, &plan->ratio);
	if (plan->codebooks && xfp_cuda_has_integers(plan, plan->k))
		fits = fits && take(&end, 1, (UINT64_C(512) << plan->k) + sizeof(struct xfp_cuda_pair), &plan->tables);
	if (plan->balance)
		fits = fits && take(&end, plan->slice.cols, 4, &plan->down);
	for (uint32_t e = 0; fits && e < plan->experts; e++)
		fits = place_expert(plan, &plan->expert[e], &end);
	plan->bytes = end;
	return fits;
}

/* Return whether an expert uses the integer path: all entries of its codebooks, or of the library, must be finite. */
static bool uses_integers(const struct xfp_cuda_plan *plan, const struct xfp_matrix_info *matrix)
{
	const uint8_t *code = matrix->code;
	uint64_t count = ((uint64_t)plan->codebooks << matrix->k) + (plan->codebooks ? 256 / plan->codebooks : 0);

	if (!xfp_cuda_has_integers(plan, matrix->k))
		return false;
	if (plan->method == XFP_CUDA_V2) {
		code += plan->slice.first_row * 2 << matrix->k;
		count = (uint64_t)plan->rows << matrix->k;
	}
	for (uint64_t i = 0; i < count; i++)
		if ((xfp_load16(code + 2 * i) & 0x7c00) == 0x7c00)
			return false;
	return true;
}

static enum xfp_status finish(struct xfp_cuda_plan *plan, const struct xfp_slice *slice, struct xfp_error *err)
{
	struct xfp_bundle_info info;
	enum xfp_status status;

	if ((status = set_slice(plan, slice, err)))
		return status;
	if (!(plan->expert = calloc(plan->experts, sizeof *plan->expert)))
		return xfp_no_memory(err);
	for (uint32_t e = 0; !plan->tensor && e < plan->experts; e++) {
		struct xfp_matrix_info matrix;

		xfp_bundle_matrix(plan->bundle, plan->first_matrix + e, &matrix);
		if (!e)
			plan->balance = balance_of(&matrix, &plan->slice);
		plan->expert[e].k = matrix.k;
		plan->expert[e].exponent = matrix.exponent;
		plan->expert[e].integers = uses_integers(plan, &matrix);
		plan->same_k = plan->same_k && matrix.k == plan->k;
		if ((status = xfp_cuda_outliers_count(plan, e, &plan->expert[e].outliers, err)))
			goto done;
	}
	if (!place_all(plan)) {
		xfp_bundle_describe(plan->bundle, &info);
		status = xfp_fail(err, XFP_USAGE, "%s: %s: larger than any device's memory; open slices", info.path,
				  xfp_printable(plan->name).text);
	}
done:
	if (status)
		xfp_cuda_plan_free(plan);
	return status;
}

enum xfp_status xfp_cuda_plan_unit(const struct xfp_bundle *bundle, uint32_t number, const struct xfp_slice *slice,
				   struct xfp_cuda_plan *plan, struct xfp_error *err)
{
	struct xfp_unit_info unit;

	if (!xfp_bundle_unit(bundle, number, &unit))
		return xfp_no_such(bundle, "unit", number, err);
	*plan = (struct xfp_cuda_plan){ .bundle = bundle,
					.name = unit.name,
					.first_matrix = unit.first_matrix,
					.full_rows = unit.rows,
					.full_cols = unit.cols,
					.method = method_of(&unit),
					.dtype = unit.dtype,
					.k = unit.k,
					.same_k = true,
					.group = unit.group_size ? (unsigned)__builtin_ctz(unit.group_size) : 0,
					.codebooks = unit.library_size,
					.experts = unit.experts };
	return finish(plan, slice, err);
}

enum xfp_status xfp_cuda_plan_tensor(const struct xfp_bundle *bundle, uint32_t number, const struct xfp_slice *slice,
				     struct xfp_cuda_plan *plan, struct xfp_error *err)
{
	struct xfp_tensor_info tensor;
	enum xfp_status status;
	uint32_t unit;

	if ((status = xfp_tensor_matrix(bundle, number, &tensor, &unit, err)))
		return status;
	if (unit != XFP_NOT_FOUND)
		return xfp_cuda_plan_unit(bundle, unit, slice, plan, err);
	*plan = (struct xfp_cuda_plan){ .bundle = bundle,
					.name = tensor.name,
					.tensor = tensor.data,
					.full_rows = tensor.shape[0],
					.full_cols = tensor.shape[1],
					.method = kept_method(tensor.dtype),
					.dtype = tensor.dtype,
					.same_k = true,
					.experts = 1 };
	return finish(plan, slice, err);
}

void xfp_cuda_plan_free(struct xfp_cuda_plan *plan)
{
	free(plan->expert);
	plan->expert = NULL;
}

/* ---- kernel parameters ------------------------------------------------------------------------- */

struct xfp_cuda_weights xfp_cuda_plan_weights(const struct xfp_cuda_plan *plan, unsigned k, uint64_t base)
{
	struct xfp_cuda_weights w;

	set_rows(plan, k, &w);
	w.matrix = base;
	w.library = plan->library ? base + plan->library : 0;
	w.ratio = plan->ratio ? base + plan->ratio : 0;
	w.tables = plan->tables ? base + plan->tables : 0;
	return w;
}

struct xfp_cuda_matrix xfp_cuda_plan_matrix(const struct xfp_cuda_plan *plan, uint32_t expert, uint64_t base)
{
	const struct xfp_cuda_expert *e = &plan->expert[expert];
	uint64_t bits = (uint64_t)(1023 - e->exponent) << 52; /* 2^-s; the range was checked on opening */
	struct xfp_cuda_matrix m = {
		.index = base + e->index,
		.pair = e->pair && e->integers ? base + e->pair : 0,
		.integer = e->integer ? base + e->integer : 0,
		.code = e->code ? base + e->code : 0,
		.group = e->group ? base + e->group : 0,
		.number = e->number ? base + e->number : 0,
		.row = e->row ? base + e->row : 0,
		.pointer = e->pointer ? base + e->pointer : 0,
		.column = e->column ? base + e->column : 0,
		.residual = e->residual ? base + e->residual : 0,
		.unit = 1,
	};

	if (plan->k)
		memcpy(&m.unit, &bits, sizeof bits);
	return m;
}
