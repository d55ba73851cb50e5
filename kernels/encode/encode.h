/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode.h - the inner loops of the encoder, one implementation per instruction set.
 *
 * They process one row, or a chunk of rows, in sixteen lanes: element c belongs to lane c mod 16. The best set that the
 * machine supports is used; all sets produce the same bits.
 *
 * Rows of f32 are padded: they have xfp_padded(cols) elements, those from `cols` on are zero.
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

/* Histogram of a row on the grid of lloyd.h. Cell j is slot (j % 256) * 16 + j / 256: a lane contains neighbouring
 * cells, so that prefix sums need no exchange between lanes. */
#define XFP_CELLS 4096
#define XFP_CELL_CENTRE 2048 /* cell of zero; cell XFP_CELL_CENTRE + a is that of magnitude index a */
#define XFP_CELL_BITS 7      /* bits of a magnitude after its leading one */

struct xfp_cells {
	int32_t count[XFP_CELLS];      /* by slot: weights in the cell; then prefix sums within the lane */
	double sum[XFP_CELLS];         /* sum of their rounded values */
	float value[XFP_CELLS];        /* rounded value of the cell's weights */
	int32_t base;                  /* index of a magnitude: (rounded bits >> (23 - XFP_CELL_BITS)) - base */
	int32_t before[XFP_LANES + 1]; /* weights in the previous lanes; before[16] is the total */
	double sum_before[XFP_LANES + 1];
};

/* Codebooks of a counted row during the fit: the entries of each, preceded by an empty lane. [-1] of every array may be
 * read. */
#define XFP_FIT_LANES 144 /* four to 64 entries, 124 in all, and the empty lanes */
struct xfp_fit_lanes {
	unsigned lanes; /* a multiple of 16 */
	double c[XFP_LANES + XFP_FIT_LANES + XFP_LANES];
	int32_t rank[XFP_FIT_LANES]; /* for start: rank of an entry's initial value */
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

/* Squares per lane that are summed in f32 before the sum is added in double. */
#define XFP_SQUARES 8

/* Operations that every method needs: load, scale, survey and compare rows. */
struct xfp_row_encoder {
	/* Scan `rows` rows of a source dtype (base/dtype.h: F64, F32, F16, BF16), aligned to it: add squares to the
	 * column sums `square`, and update each column's largest magnitude in `largest` (a value above infinity means
	 * NaN), both [cols]. Returns the number of NaNs and infinities. */
	size_t (*column_scan)(int dtype, const void *source, size_t rows, size_t cols, double *square, float *largest);

	/* Load a row of a source dtype as padded f32. */
	void (*load)(int dtype, const void *source, size_t cols, float *w);

	/* Compute x = w * factor, rounded once; all padded. */
	void (*scale)(const float *w, const float *factor, size_t cols, float *x);

	/* Load and scale at once; also compute w * unit, unit a power of two, and the norms and maxima of the rows. If
	 * `w` is NULL, the norm is not computed. */
	struct xfp_row_start (*load_scaled)(int dtype, const void *source, size_t cols, const float *factor, float unit,
					    float *w, float *x);

	/* Compute the sums of q = RNE(1024 x) and q^2, |x| <= 2^14, cols <= 2^14. Lists the columns whose q is below
	 * `low` or above `high`, ascending, and returns their number. */
	size_t (*survey)(const float *x, size_t cols, int32_t low, int32_t high, uint32_t *column, int64_t *sum,
			 int64_t *square);

	/* Return the largest |x|. */
	float (*largest)(const float *x, size_t cols);

	/* Sums over a row of any length, see cosine.h: of w^2; of the differences of w * unit and r * unit. */
	double (*norm)(const float *w, size_t cols);
	struct xfp_row_sums (*compare)(const float *w, const float *r, float unit, size_t cols);
};

/* One codebook per row (v2): fits on counted rows, lloyd.h, and assignment, assign.h. */
struct xfp_codebook_encoder {
	/* Count a padded row in cells, including padding; then compute prefix sums of the counts. */
	void (*count)(struct xfp_cells *cells, const float *x, size_t cols);
	void (*accumulate)(struct xfp_cells *cells);

	/* Start: set c to the values of the ranks, counted from 0. Then run rounds of Lloyd's iteration, lloyd.h. */
	void (*start)(const struct xfp_cells *cells, struct xfp_fit_lanes *fit);
	void (*rounds)(const struct xfp_cells *cells, struct xfp_fit_lanes *fit, unsigned rounds);

	/* Convert weights to entries, or to entry numbers: entry j if edge[j - 1] < x <= edge[j]. entry and edge are
	 * [2^k]; the last edge is loaded, but has no effect. */
	void (*assign)(unsigned k, const float *entry, const float *edge, const float *x, size_t cols, float *value);
	void (*index)(unsigned k, const float *edge, const float *x, size_t cols, uint8_t *index);

	/* Compute sums over a padded row, see cosine.h: w compared with r = the assigned entries of x, times down. */
	struct xfp_row_sums (*measure)(unsigned k, const float *entry, const float *edge, const float *x,
				       const float *down, const float *w, size_t cols);
};

/* The implementation for one instruction set: the common operations, and a table per method. */
struct xfp_encoder {
	const char *name; /* "plain", "avx2", "avx512", "neon" */
	const struct xfp_row_encoder *rows;
	const struct xfp_codebook_encoder *codebooks;
	const struct xfp_scaled_encoder *scaled;   /* scaled.h */
	const struct xfp_compact_encoder *compact; /* compact.h */
};

/* Return the encoder in use. */
const struct xfp_encoder *xfp_encoder(void);

/* Select an encoder by name; returns false if it is unknown or unsupported. Do not call it while other threads
 * encode. */
bool xfp_encoder_use(const char *name);

extern const struct xfp_encoder xfp_encoder_plain;
#ifdef XFP_X86
extern const struct xfp_encoder xfp_encoder_avx2, xfp_encoder_avx512;
#endif
#ifdef XFP_AARCH64
extern const struct xfp_encoder xfp_encoder_neon;
#endif

#endif
