/* SPDX-License-Identifier: Apache-2.0 */
/*
 * panel.h - decoded rows times many vectors, Y = W X, in f32, in blocks that stay in the caches.
 *
 * Vectors are packed in panels of up to four times sixteen, column by column, so that a weight is multiplied by sixteen
 * vectors at once. Rows are decoded in tiles of XFP_TILE_COLUMNS columns. A kernel keeps the sums of a few rows and all
 * vectors of a panel in registers for xfp_panel_part columns, then adds them to the sums in memory. So a sum over n
 * columns is rounded part + n / part times, within the bound of matvec.h, and its bits depend only on n and the set.
 */
#ifndef XFP_PANEL_H
#define XFP_PANEL_H

#include "kernels/multiply/matvec.h"

#define XFP_PANEL_LANES 16
#define XFP_PANEL_WIDTH 4 /* in sixteen vectors, maximum of all sets */
#define XFP_MAX_PANEL (XFP_PANEL_WIDTH * XFP_PANEL_LANES)

#define XFP_TILE_COLUMNS 512 /* a multiple of the chunks of every k */
#define XFP_TILE_STRIDE 528  /* floats from row to row; a power of two would use few sets of a cache */
#define XFP_TILE_ROWS 24     /* tiles have a multiple of this many rows; so every kernel processes whole groups */

/* Columns that are summed in registers, for rows of `cols` columns. */
static inline size_t xfp_panel_part(size_t cols)
{
	return cols >= 1024 ? 64 : 32;
}

/* Vectors of the next panel if `left` vectors remain: panels are as wide as the set allows, and of similar width. */
unsigned xfp_panel_vectors(size_t left);

static inline unsigned xfp_panel_width(unsigned vectors)
{
	return (vectors + XFP_PANEL_LANES - 1) / XFP_PANEL_LANES;
}

/* Pack up to sixteen vectors of `cols` elements of a dtype of base/dtype.h (F32, F16 or BF16), times `down`, unless it
 * is NULL, to a panel: the first column's values go to `panel`, the next one's are 16 `width` floats further. Vectors
 * from `count` on become zero. */
void xfp_panel_pack(int dtype, const void *const *source, unsigned count, size_t cols, const float *down, float *panel,
		    unsigned width);

#endif
