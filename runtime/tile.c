/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tile.h"

#include <string.h>

enum xfp_status xfp_tile_begin(struct xfp_tile_rows *t, const struct xfp_linear *linear, uint32_t expert,
			       const struct xfp_matvec *w, uint64_t first, uint64_t rows, struct xfp_error *err)
{
	const struct xfp_outlier_rows *o = &w->outliers;
	struct xfp_outlier_row at;

	t->linear = linear;
	t->w = w;
	t->expert = expert;
	t->first = first;
	t->rows = rows;
	xfp_outlier_rows_begin(o, first, &at);
	for (uint64_t r = 0; r < rows; r++) {
		if (!xfp_outlier_rows_next(o, first + r, &at) || !xfp_outlier_rows_ascend(o, &at) ||
		    (r + 1 == rows && !xfp_outlier_rows_end(o, first + rows, &at)))
			return xfp_linear_damaged(linear, expert, first + r, XFP_BAD_OUTLIERS, err);
		t->outliers[r] = at;
	}
	return XFP_OK;
}

enum xfp_status xfp_tile_decode(struct xfp_tile_rows *t, size_t column, size_t columns, float *tile,
				struct xfp_error *err)
{
	struct xfp_matvec part = *t->w;
	enum xfp_status status;
	float *end = tile + t->rows * XFP_TILE_STRIDE;

	xfp_linear_cut(t->linear, &part, column, columns);
	part.outliers.count = 0;
	if ((status = xfp_linear_decode(t->linear, t->expert, &part, t->first, t->rows, tile, XFP_TILE_STRIDE, err)))
		return status;
	for (uint64_t r = 0; t->w->outliers.count && r < t->rows; r++)
		xfp_outlier_rows_add_next(&t->w->outliers, &t->outliers[r], tile + r * XFP_TILE_STRIDE,
					  part.first_column, columns);
	memset(end, 0, (XFP_TILE_ROWS - t->rows % XFP_TILE_ROWS) % XFP_TILE_ROWS * XFP_TILE_STRIDE * sizeof *end);
	return XFP_OK;
}
