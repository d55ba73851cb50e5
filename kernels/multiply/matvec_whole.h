/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_whole.h - for kernels that multiply only whole chunks and groups of columns: the division of a matrix with
 * codebooks into those columns and the rest, and the copies of a kernel.
 */
#ifndef XFP_MATVEC_WHOLE_H
#define XFP_MATVEC_WHOLE_H

#include "kernels/common/lane_index.h"
#include "kernels/multiply/matvec.h"
#include "kernels/multiply/matvec_instances.h"
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

/* A row as stored, at its first column. */
struct stored_row {
	const uint8_t *packed, *byte, *pair;
};

static inline struct stored_row stored_row(enum xfp_matvec_mode mode, const struct xfp_matvec *w, size_t r)
{
	const uint8_t *packed = w->index + r * w->row_bytes;

	return (struct stored_row){
		.packed = packed,
		/* v2 has no bytes; the pointer is advanced all the same. */
		.byte = mode == XFP_MATVEC_V2 ? packed : w->byte + r * w->row_groups,
		.pair = mode != XFP_MATVEC_V2A ? NULL : (const uint8_t *)w->pair + r * w->row_groups * 4,
	};
}

/* ---- instances --------------------------------------------------------------------------------- */

/* Copies of a function for each mode and k, and for 1, 2, 4 and 8 vectors. `log2` is w->group, or the constant 5. */
#define COPY(multiply, k, tile)                                              \
	static void v2_##k##_##tile(ARGUMENTS)                               \
	{                                                                    \
		multiply(XFP_MATVEC_V2, k, tile, 0, PASSED);                 \
	}                                                                    \
	static void v2a_##k##_##tile(ARGUMENTS)                              \
	{                                                                    \
		multiply(XFP_MATVEC_V2A, k, tile, w->group, PASSED);         \
	}                                                                    \
	static void v2c_##k##_##tile(ARGUMENTS)                              \
	{                                                                    \
		if (tile <= 2 && w->group == 5)                              \
			multiply(XFP_MATVEC_V2C, k, tile, 5, PASSED);        \
		else                                                         \
			multiply(XFP_MATVEC_V2C, k, tile, w->group, PASSED); \
	}
#define COPIES_OF_K(multiply, k) COPY(multiply, k, 1) COPY(multiply, k, 2) COPY(multiply, k, 4) COPY(multiply, k, 8)
#define COPIES(multiply)         \
	COPIES_OF_K(multiply, 2) \
	COPIES_OF_K(multiply, 3) \
	COPIES_OF_K(multiply, 4) \
	COPIES_OF_K(multiply, 5) \
	COPIES_OF_K(multiply, 6)

#define BY_TILE(name)                                  \
	{                                              \
		name##_1, name##_2, name##_4, name##_8 \
	}
#define BY_K(name)                                                                                            \
	{                                                                                                     \
		BY_TILE(name##_2), BY_TILE(name##_3), BY_TILE(name##_4), BY_TILE(name##_5), BY_TILE(name##_6) \
	}

#endif
