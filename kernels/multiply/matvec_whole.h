/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_whole.h - divide a matrix with codebooks into columns for kernels that multiply only whole chunks and groups,
 * and the rest.
 */
#ifndef XFP_MATVEC_WHOLE_H
#define XFP_MATVEC_WHOLE_H

#include "kernels/common/lane_index.h"
#include "kernels/multiply/matvec.h"
#include "kernels/multiply/matvec_tables.h"

/* Return how many columns are in whole chunks and groups; 0 without codebooks, or if their entries are not finite. */
static inline size_t whole_columns(const struct xfp_matvec *w)
{
	size_t chunk, group = (size_t)1 << w->group;

	if (w->mode < XFP_MATVEC_V2 || (w->mode > XFP_MATVEC_V2 && !xfp_tables_head(w->tables)->bytes_fit))
		return 0;
	chunk = xfp_chunk_columns(w->k);
	return w->mode == XFP_MATVEC_V2 || chunk > group ? w->cols / chunk * chunk : w->cols / group * group;
}

/* The columns after these, as a matrix of their own. */
struct rest_columns {
	struct xfp_matvec w;
	struct xfp_matvec_x x;
};

static inline void divide_columns(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t columns,
				  struct rest_columns *rest)
{
	rest->w = *w;
	rest->w.index += columns / 8 * w->k;
	rest->w.cols -= columns;
	rest->x = *x;
	rest->x.lanes += columns * x->tile;
	if (w->mode == XFP_MATVEC_V2)
		return;
	rest->w.byte += columns >> w->group;
	if (w->mode == XFP_MATVEC_V2A)
		rest->w.pair = (const uint8_t *)w->pair + 4 * (columns >> w->group);
}

#endif
