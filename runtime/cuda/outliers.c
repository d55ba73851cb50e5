/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cuda/outliers.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "kernels/multiply/outlier_rows.h"
#include "schemas/layout/bundle_layout.h"

enum xfp_status xfp_cuda_damaged(const struct xfp_cuda_plan *plan, uint32_t expert, uint64_t row, const char *wrong,
				 struct xfp_error *err)
{
	struct xfp_bundle_info info;

	xfp_bundle_describe(plan->bundle, &info);
	return xfp_fail(err, XFP_BAD_INPUT,
			"%s: damaged: unit %s, expert %" PRIu32 ", row %" PRIu64 ": %s; copy or convert it again",
			info.path, xfp_printable(plan->name).text, expert, row, wrong);
}

static struct xfp_outlier_rows rows_of(const struct xfp_matrix_info *matrix)
{
	struct xfp_outlier_rows o = { .row = matrix->outlier,
				      .rows = matrix->rows,
				      .cols = matrix->cols,
				      .count = (uint32_t)matrix->outliers,
				      .listed = xfp_outliers_listed(matrix->rows, matrix->outliers),
				      .wide = matrix->cols > 65536 };

	if (o.count) {
		o.column = o.row + xfp_outlier_row_bytes(matrix->rows, matrix->outliers);
		o.residual = o.column + xfp_align((uint64_t)o.count * (o.wide ? 4 : 2), 4);
	}
	return o;
}

/* Destination of the outliers; `column` NULL: only count them. */
struct gathered {
	uint64_t count, most;
	uint32_t *pointer, *column;
	uint16_t *residual;
};

/* Gather a row's outliers within the slice. Returns false if they are outside the matrix or not ascending. */
static bool gather_row(const struct xfp_cuda_plan *plan, const struct xfp_outlier_rows *o,
		       const struct xfp_outlier_row *at, struct gathered *to)
{
	uint32_t before = 0;

	for (uint32_t i = at->first; i < at->end; i++) {
		uint32_t column = xfp_outlier_column(o, i);
		uint64_t c = column - plan->slice.first_col; /* wraps to a value beyond the last column */

		if (column >= o->cols || (i > at->first && column <= before))
			return false;
		before = column;
		if (c >= plan->slice.cols)
			continue;
		if (to->column) {
			if (to->count == to->most)
				return false;
			to->column[to->count] = (uint32_t)(c + plan->lead);
			to->residual[to->count] = xfp_load16(o->residual + (size_t)i * 2);
		}
		to->count++;
	}
	return true;
}

static enum xfp_status gather(const struct xfp_cuda_plan *plan, uint32_t expert, const struct xfp_matrix_info *matrix,
			      struct gathered *to, struct xfp_error *err)
{
	struct xfp_outlier_rows o = rows_of(matrix);
	uint64_t first = plan->slice.first_row, end = first + plan->slice.rows;
	struct xfp_outlier_row at;

	xfp_outlier_rows_begin(&o, first, &at);
	for (uint64_t r = first; r < end; r++) {
		if (to->pointer)
			to->pointer[r - first] = (uint32_t)to->count;
		if (!xfp_outlier_rows_next(&o, r, &at) || !gather_row(plan, &o, &at, to) ||
		    (r + 1 == end && !xfp_outlier_rows_end(&o, end, &at)))
			return xfp_cuda_damaged(plan, expert, r, "outliers outside the matrix or out of order", err);
	}
	if (to->pointer)
		to->pointer[end - first] = (uint32_t)to->count;
	return XFP_OK;
}

enum xfp_status xfp_cuda_outliers_count(const struct xfp_cuda_plan *plan, uint32_t expert, uint64_t *count,
					struct xfp_error *err)
{
	struct xfp_matrix_info matrix;
	struct gathered to = { 0 };
	enum xfp_status status;

	xfp_bundle_matrix(plan->bundle, plan->first_matrix + expert, &matrix);
	*count = matrix.outliers;
	if (!matrix.outliers || (plan->slice.rows == matrix.rows && plan->slice.cols == matrix.cols))
		return XFP_OK;
	if ((status = gather(plan, expert, &matrix, &to, err)))
		return status;
	*count = to.count;
	return XFP_OK;
}

enum xfp_status xfp_cuda_outliers_gather(const struct xfp_cuda_plan *plan, uint32_t expert, uint64_t count,
					 uint32_t *pointer, uint32_t *column, uint16_t *residual, struct xfp_error *err)
{
	struct gathered to = { .most = count, .pointer = pointer, .column = column, .residual = residual };
	struct xfp_matrix_info matrix;
	enum xfp_status status;

	xfp_bundle_matrix(plan->bundle, plan->first_matrix + expert, &matrix);
	if ((status = gather(plan, expert, &matrix, &to, err)))
		return status;
	if (to.count != count)
		return xfp_cuda_damaged(plan, expert, plan->slice.first_row, "fewer outliers than its index states",
					err);
	return XFP_OK;
}
