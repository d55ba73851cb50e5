/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode.h - the inner loops of the encoder, each once for every instruction set.
 *
 * All work on one row, or a chunk of rows, in sixteen lanes: element c belongs to lane c mod 16. The best set
 * that the machine has is taken; results are the same bits whichever it is.
 *
 * Rows of f32 are padded: they hold xfp_padded(cols) elements, those from `cols` on are zero.
 */
#ifndef XFP_ENCODE_H
#define XFP_ENCODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/lanes/lanes.h"

static inline size_t xfp_padded(size_t cols)
{
	return (cols + XFP_LANES - 1) / XFP_LANES * XFP_LANES;
}

/* A row counted on the grid of lloyd.h. Cell j is slot (j % 256) * 16 + j / 256: a lane holds neighbouring cells,
 * so that running sums need no exchange between lanes. */
#define XFP_CELLS 4096
#define XFP_CELL_CENTRE 2048 /* zero; cell XFP_CELL_CENTRE + a holds what a magnitude of index a counts as */
#define XFP_CELL_BITS 7      /* of a magnitude, after its leading one */

struct xfp_cells {
	int32_t count[XFP_CELLS];      /* by slot: weights in the cell; then in it and the lane's cells before it */
	double sum[XFP_CELLS];         /* what those count as, added up */
	float value[XFP_CELLS];        /* what a weight of the cell counts as */
	int32_t base;                  /* a magnitude's index: its bits, rounded, >> (23 - XFP_CELL_BITS), less base */
	int32_t before[XFP_LANES + 1]; /* weights in the lanes before a lane; before[16]: all */
	double sum_before[XFP_LANES + 1];
};

/* Codebooks of a counted row while they are fitted: the entries of each, with a lane before them that holds none.
 * [-1] may be read of every array. */
#define XFP_FIT_LANES 144 /* four to 64 entries, 124 in all, and the lanes before */
struct xfp_fit_lanes {
	unsigned lanes; /* a multiple of 16 */
	double c[XFP_LANES + XFP_FIT_LANES + XFP_LANES];
	int32_t rank[XFP_FIT_LANES]; /* for start: of the number that an entry begins with */
	int32_t kind[XFP_FIT_LANES]; /* XFP_ENTRY, XFP_LAST_ENTRY, XFP_NO_ENTRY */
};
enum { XFP_ENTRY, XFP_LAST_ENTRY, XFP_NO_ENTRY };

struct xfp_row_sums {
	double error, square; /* (w - r)^2, r^2 */
};

struct xfp_row_start {
	double norm;   /* sum of squares of w */
	float largest; /* |x| */
};

/* Squares that are added up in f32, a lane, before their sum is added in double. */
#define XFP_SQUARES 8

/* What every method needs: rows as they are read, scaled, surveyed and compared. */
struct xfp_row_encoder {
	/* `rows` rows of a source dtype (base/dtype.h: F64, F32, F16, BF16), aligned to it: sums of squares of the
	 * columns into `square`, each column's largest magnitude raised in `largest` (above infinity there is NaN),
	 * [cols] both. Returns the number of NaNs and infinities. */
	size_t (*column_scan)(int dtype, const void *source, size_t rows, size_t cols, double *square, float *largest);

	/* One row of a source dtype as padded f32. */
	void (*load)(int dtype, const void *source, size_t cols, float *w);

	/* x = w * factor, rounded once; all padded. */
	void (*scale)(const float *w, const float *factor, size_t cols, float *x);

	/* Both at once: also w * unit, a power of two, and what is known of the two rows. `w` may be NULL, then there
	 * is no norm either. */
	struct xfp_row_start (*load_scaled)(int dtype, const void *source, size_t cols, const float *factor, float unit,
					    float *w, float *x);

	/* Sums of q = RNE(1024 x) and q^2, |x| <= 2^14, cols <= 2^14; columns whose q is below `low` or above `high`,
	 * ascending, and their number. */
	size_t (*survey)(const float *x, size_t cols, int32_t low, int32_t high, uint32_t *column, int64_t *sum,
			 int64_t *square);

	/* The largest |x|. */
	float (*largest)(const float *x, size_t cols);

	/* Sums over a row of any length, see cosine.h: of w^2; of w * unit against r * unit. */
	double (*norm)(const float *w, size_t cols);
	struct xfp_row_sums (*compare)(const float *w, const float *r, float unit, size_t cols);
};

/* A codebook for each row (v2): fits on counted rows, lloyd.h, and assignment, assign.h. */
struct xfp_codebook_encoder {
	/* Count a padded row in cells, padding too, from zero; then make running sums of the counts. */
	void (*count)(struct xfp_cells *cells, const float *x, size_t cols);
	void (*accumulate)(struct xfp_cells *cells);

	/* The numbers of the ranks, from 0, into c. Then rounds of Lloyd's iteration, lloyd.h, from there. */
	void (*start)(const struct xfp_cells *cells, struct xfp_fit_lanes *fit);
	void (*rounds)(const struct xfp_cells *cells, struct xfp_fit_lanes *fit, unsigned rounds);

	/* Weights as the entries, or the numbers, of the cells between edges: entry j where edge[j - 1] < x <=
	 * edge[j]. entry and edge [2^k]; the last edge is read, and decides nothing. */
	void (*assign)(unsigned k, const float *entry, const float *edge, const float *x, size_t cols, float *value);
	void (*index)(unsigned k, const float *edge, const float *x, size_t cols, uint8_t *index);

	/* Sums over a padded row, see cosine.h: of w against r = what assign makes of x, times down. */
	struct xfp_row_sums (*measure)(unsigned k, const float *entry, const float *edge, const float *x,
				       const float *down, const float *w, size_t cols);
};

/* All that one instruction set has: what every method needs, and a table for each method. Whoever encodes takes the
 * tables that it needs. */
struct xfp_encoder {
	const char *name; /* "plain", "avx2", "avx512", "neon" */
	const struct xfp_row_encoder *rows;
	const struct xfp_codebook_encoder *codebooks;
	const struct xfp_scaled_encoder *scaled;   /* scaled.h */
	const struct xfp_compact_encoder *compact; /* compact.h */
};

/* The encoder in use. */
const struct xfp_encoder *xfp_encoder(void);

/* Use the named one from now on; false when there is no such or the machine cannot run it. Not while other
 * threads encode. */
bool xfp_encoder_use(const char *name);

extern const struct xfp_encoder xfp_encoder_plain;
#ifdef XFP_X86
extern const struct xfp_encoder xfp_encoder_avx2, xfp_encoder_avx512;
#endif
#ifdef XFP_AARCH64
extern const struct xfp_encoder xfp_encoder_neon;
#endif

#endif
