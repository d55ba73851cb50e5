/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tile.h - decode rows of a linear to tiles (kernels/multiply/panel.h), outliers added. Private to runtime/.
 */
#ifndef XFP_TILE_H
#define XFP_TILE_H

#include "kernels/multiply/panel.h"
#include "runtime/linear.h"

#define XFP_TILE_MAX_ROWS 96
#define XFP_TILE_FLOATS (XFP_TILE_MAX_ROWS * XFP_TILE_STRIDE)

struct xfp_tile_rows {
	const struct xfp_linear *linear;
	const struct xfp_matvec *w; /* from xfp_linear_matrix */
	uint32_t expert;
	uint64_t first, rows;                               /* at most XFP_TILE_MAX_ROWS */
	struct xfp_outlier_row outliers[XFP_TILE_MAX_ROWS]; /* those not yet decoded */
};

/* Check the outliers of rows [first, first + rows). XFP_BAD_INPUT names the damaged row. */
enum xfp_status xfp_tile_begin(struct xfp_tile_rows *t, const struct xfp_linear *linear, uint32_t expert,
			       const struct xfp_matvec *w, uint64_t first, uint64_t rows, struct xfp_error *err);

/* Decode columns [column, column + columns), a tile of w; columns are decoded in order. Rows are XFP_TILE_STRIDE apart
 * and padded with zeros to XFP_TILE_ROWS. XFP_BAD_INPUT names the damaged row. */
enum xfp_status xfp_tile_decode(struct xfp_tile_rows *t, size_t column, size_t columns, float *tile,
				struct xfp_error *err);

#endif
