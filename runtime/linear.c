/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear.c - decode the data that matrices of a unit share, once, and present each matrix to the kernels.
 */
#include "runtime/linear.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/printable.h"
#include "kernels/common/lane_index.h"
#include "kernels/common/number.h"
#include "kernels/common/scale.h"
#include "runtime/slice.h"
#include "schemas/layout/classes.h"

_Static_assert((int)XFP_FLOAT32 == (int)XFP_F32 && (int)XFP_FLOAT16 == (int)XFP_F16 &&
		       (int)XFP_BFLOAT16 == (int)XFP_BF16,
	       "enum xfp_float must match the dtypes");

/* ---- shared data ------------------------------------------------------------------------------- */

static enum xfp_status no_memory(struct xfp_linear *linear, struct xfp_error *err)
{
	xfp_linear_release(linear);
	return xfp_no_memory(err);
}

static bool decode_balance(struct xfp_linear *linear, const uint8_t *balance)
{
	if (!(linear->down = malloc(linear->cols * sizeof *linear->down)))
		return false;
	for (uint64_t c = 0; c < linear->cols; c++)
		linear->down[c] = xfp_balance_down(balance[c]);
	return true;
}

static bool decode_library(struct xfp_linear *linear, const struct xfp_matrix_info *matrix, bool multiply)
{
	size_t entries = (size_t)matrix->library_size << matrix->k, halves = matrix->code_bytes / 2;
	const uint16_t *code = matrix->code, *ratio = matrix->mode == XFP_MODE_V2C ? code + entries : NULL;

	if (!(linear->values = malloc(halves * sizeof *linear->values)))
		return false;
	xfp_decode_halves(code, halves, linear->values);
	linear->library = (struct xfp_library){ .k = matrix->k,
						.group = (unsigned)__builtin_ctz(matrix->group_size),
						.codebooks = matrix->library_size,
						.entry = linear->values,
						.ratio = linear->values + entries };
	if (!multiply)
		return true;
	if (!(linear->tables = aligned_alloc(64, xfp_align(xfp_matvec_tables_bytes(matrix->k), 64))))
		return false;
	xfp_matvec_tables(matrix->k, matrix->library_size, code, ratio, linear->tables);
	return true;
}

enum xfp_status xfp_linear_init(struct xfp_linear *linear, const struct xfp_bundle *bundle, uint32_t number,
				bool multiply, struct xfp_error *err)
{
	struct xfp_unit_info unit;
	struct xfp_matrix_info first;

	*linear = (struct xfp_linear){ .bundle = bundle };
	if (!xfp_bundle_unit(bundle, number, &unit))
		return xfp_no_such(bundle, "unit", number, err);
	linear->name = unit.name;
	linear->role = unit.role;
	linear->dtype = unit.dtype;
	linear->experts = unit.experts;
	linear->first_matrix = unit.first_matrix;
	linear->rows = unit.rows;
	linear->cols = unit.cols;
	linear->slice = (struct xfp_slice){ 0, unit.rows, 0, unit.cols };
	if (!unit.rows || !unit.cols || !xfp_bundle_matrix(bundle, unit.first_matrix, &first))
		return XFP_OK;
	if (first.balance && !decode_balance(linear, first.balance))
		return no_memory(linear, err);
	if (first.library_size && !decode_library(linear, &first, multiply))
		return no_memory(linear, err);
	return XFP_OK;
}

void xfp_linear_release(struct xfp_linear *linear)
{
	free(linear->down);
	free(linear->values);
	free(linear->tables);
	linear->down = linear->values = NULL;
	linear->tables = NULL;
}

/* ---- opening ----------------------------------------------------------------------------------- */

static enum xfp_status open_slice(struct xfp_linear *linear, const struct xfp_slice *slice, struct xfp_linear **out,
				  struct xfp_error *err)
{
	struct xfp_linear *opened = malloc(sizeof *opened);
	enum xfp_status status;

	if (!opened)
		return no_memory(linear, err);
	*opened = *linear;
	if ((status = xfp_slice_resolve(linear->bundle, linear->name, linear->rows, linear->cols, slice, &opened->slice,
					err)))
		xfp_linear_close(opened);
	else
		*out = opened;
	return status;
}

enum xfp_status xfp_linear_open(const struct xfp_bundle *bundle, uint32_t unit, const struct xfp_slice *slice,
				struct xfp_linear **out, struct xfp_error *err)
{
	struct xfp_linear linear;
	enum xfp_status status;

	*out = NULL;
	if ((status = xfp_linear_init(&linear, bundle, unit, true, err)))
		return status;
	return open_slice(&linear, slice, out, err);
}

enum xfp_status xfp_linear_open_tensor(const struct xfp_bundle *bundle, uint32_t number, const struct xfp_slice *slice,
				       struct xfp_linear **out, struct xfp_error *err)
{
	struct xfp_linear linear = { .bundle = bundle, .role = "", .experts = 1 };
	struct xfp_tensor_info tensor;
	enum xfp_status status;
	uint32_t unit;

	*out = NULL;
	if ((status = xfp_tensor_matrix(bundle, number, &tensor, &unit, err)))
		return status;
	if (unit != XFP_NOT_FOUND)
		return xfp_linear_open(bundle, unit, slice, out, err);
	linear.name = tensor.name;
	linear.dtype = tensor.dtype;
	linear.tensor = tensor.data;
	linear.rows = tensor.shape[0];
	linear.cols = tensor.shape[1];
	return open_slice(&linear, slice, out, err);
}

void xfp_linear_close(struct xfp_linear *linear)
{
	if (!linear)
		return;
	xfp_linear_release(linear);
	free(linear);
}

void xfp_linear_describe(const struct xfp_linear *linear, struct xfp_linear_info *info)
{
	*info = (struct xfp_linear_info){ .experts = linear->experts,
					  .rows = linear->slice.rows,
					  .cols = linear->slice.cols };
}

/* ---- a matrix ---------------------------------------------------------------------------------- */

static void set_outliers(const struct xfp_matrix_info *matrix, struct xfp_outlier_rows *o)
{
	*o = (struct xfp_outlier_rows){ .row = matrix->outlier,
					.rows = matrix->rows,
					.cols = matrix->cols,
					.count = (uint32_t)matrix->outliers,
					.listed = xfp_outliers_listed(matrix->rows, matrix->outliers),
					.wide = matrix->cols > 65536 };
	if (!o->count)
		return;
	o->column = o->row + xfp_outlier_row_bytes(matrix->rows, matrix->outliers);
	o->residual = o->column + xfp_align((uint64_t)o->count * (o->wide ? 4 : 2), 4);
}

void xfp_linear_cut(const struct xfp_linear *linear, struct xfp_matvec *w, uint64_t first, uint64_t cols)
{
	uint64_t element = linear->cols ? w->row_bytes / linear->cols : 0;

	w->index += w->k ? first / 32 * 4 * w->k : first * element;
	if (w->byte)
		w->byte += first >> w->group;
	if (w->pair)
		w->pair = (const uint8_t *)w->pair + (first >> w->group) * 4;
	while (first & ((UINT64_C(1) << w->group) - 1)) /* the columns are a part of one group */
		w->group--;
	w->first_column += first;
	w->cols = cols;
}

/* Skip columns outside the slice, as far as the layout allows. */
static void slice_columns(const struct xfp_linear *linear, struct xfp_matvec *w)
{
	uint64_t first = linear->slice.first_col, end = first + linear->slice.cols;
	uint64_t chunk = w->k ? xfp_chunk_columns(w->k) : 1, group = UINT64_C(1) << w->group;

	first -= first % (chunk > group ? chunk : group);
	end = xfp_align(end, chunk);
	xfp_linear_cut(linear, w, first, (end < linear->cols ? end : linear->cols) - first);
}

static enum xfp_matvec_mode mode_of(unsigned mode, unsigned dtype)
{
	switch ((enum xfp_mode)mode) {
	case XFP_MODE_V2:
		return XFP_MATVEC_V2;
	case XFP_MODE_V2A:
		return XFP_MATVEC_V2A;
	case XFP_MODE_V2C:
		return XFP_MATVEC_V2C;
	case XFP_MODE_FP8:
		return XFP_MATVEC_FP8;
	default:
		return dtype == XFP_BF16 ? XFP_MATVEC_BF16 : dtype == XFP_F16 ? XFP_MATVEC_F16 : XFP_MATVEC_F32;
	}
}

bool xfp_linear_matrix(const struct xfp_linear *linear, uint32_t expert, struct xfp_matvec *w)
{
	struct xfp_matrix_info matrix = { .mode = XFP_MODE_KEEP, .index = linear->tensor };
	const uint8_t *group;
	bool readable = true;
	uint64_t bits;
	uint64_t groups;

	if (!linear->tensor)
		xfp_bundle_matrix(linear->bundle, linear->first_matrix + expert, &matrix);
	*w = (struct xfp_matvec){ .mode = mode_of(matrix.mode, linear->dtype),
				  .rows = linear->rows,
				  .cols = linear->cols,
				  .unit = 1,
				  .index = matrix.index,
				  .code = matrix.code,
				  .tables = linear->tables };
	if (w->mode >= XFP_MATVEC_V2) {
		w->k = matrix.k;
		w->group = matrix.group_size ? linear->library.group : 0;
		bits = (uint64_t)(1023 - matrix.exponent) << 52; /* 2^-s; the range was checked on opening */
		memcpy(&w->unit, &bits, sizeof bits);
		set_outliers(&matrix, &w->outliers);
	}
	xfp_matvec_set_row_layout(w);
	if (w->mode == XFP_MATVEC_F32 && linear->dtype == XFP_F64) {
		w->row_bytes *= 2;
		readable = false;
	}
	if (matrix.group_size) {
		group = matrix.group;
		groups = w->rows * w->row_groups;
		w->pair = w->mode == XFP_MATVEC_V2A ? group : NULL;
		w->byte = w->mode == XFP_MATVEC_V2A ? group + 4 * groups : group;
		w->row = w->mode == XFP_MATVEC_V2A ? NULL : group + groups;
	}
	slice_columns(linear, w);
	return readable;
}

/* ---- its rows ---------------------------------------------------------------------------------- */

/* Decode row r without outliers. Look-up tables of the library do not pay off for a few rows. */
static void decode_row(const struct xfp_linear *linear, const struct xfp_matvec *w, uint64_t r, float *x)
{
	const uint8_t *index = w->index + r * w->row_bytes;
	uint64_t group = r * w->row_groups;

	if (w->mode == XFP_MATVEC_F32 && linear->dtype == XFP_F64)
		xfp_to_float(XFP_F64, index, w->cols, x);
	else if (w->mode == XFP_MATVEC_V2A && !linear->tables)
		xfp_decode_v2a(&linear->library, index, (const uint16_t *)w->pair + 2 * group, w->byte + group, w->cols,
			       x);
	else if (w->mode == XFP_MATVEC_V2C && !linear->tables)
		xfp_decode_v2c(&linear->library, index, w->byte + group, w->row[r], w->cols, x);
	else
		xfp_matvec_decode(w, r, x);
}

enum xfp_status xfp_linear_damaged(const struct xfp_linear *linear, uint32_t expert, uint64_t row, const char *what,
				   struct xfp_error *err)
{
	return xfp_fail(err, XFP_BAD_INPUT,
			"%s: damaged: unit %s, expert %" PRIu32 ", row %" PRIu64 ": %s; copy or convert it again",
			linear->bundle->path, xfp_printable(linear->name).text, expert, row, what);
}

enum xfp_status xfp_linear_decode(const struct xfp_linear *linear, uint32_t expert, const struct xfp_matvec *w,
				  uint64_t first, uint64_t rows, float *x, size_t stride, struct xfp_error *err)
{
	const struct xfp_outlier_rows *o = &w->outliers;
	struct xfp_outlier_row at;

	xfp_outlier_rows_begin(o, first, &at);
	for (uint64_t r = first; r < first + rows; r++, x += stride) {
		const char *wrong = NULL;

		if (xfp_matvec_codebooks_exist(w, linear->library.codebooks, r, 1))
			decode_row(linear, w, r, x);
		else
			wrong = "a group has an invalid codebook number";
		if (!wrong &&
		    (!xfp_outlier_rows_next(o, r, &at) || !xfp_outlier_rows_add(o, &at, x, w->first_column, w->cols) ||
		     (r + 1 == first + rows && !xfp_outlier_rows_end(o, first + rows, &at))))
			wrong = XFP_BAD_OUTLIERS;
		if (wrong)
			return xfp_linear_damaged(linear, expert, r, wrong, err);
	}
	return XFP_OK;
}
