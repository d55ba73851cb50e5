/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feedback.h - encode rows of compact groups (compact.h) with error feedback (GPTQ, LDLQ): each column's rounding error
 * is compensated by the columns after it, weighted by the second moments of the matrix's inputs.
 *
 * Rows are in units of their row scale, as in compact.h: y = RN32(x * (1 / row)), q the value that is stored for y.
 * Minimized is the error of outputs, the sum over rows of (y - q) H (y - q)^T.
 *
 *   blocks    More than XFP_FEEDBACK_COLS columns are cut into near-equal blocks of whole groups, in storage order; all
 *             below applies to each block by itself.
 *   moments   own = X^T X / n, X the n inputs of the matrix; stack, the same over the inputs of all matrices of a unit
 *   H         P = (1 - b) own + b stack, b = K / (K + n), K all columns of the matrix, however many blocks
 *             G = D P D, D = diag 2^(-d/4) of the balance (scale.h)
 *             H = G K / trace(G) + 0.06 I; the trace is that of all blocks
 *   order     groups by their sum of H[c][c], descending, then columns by H[c][c] within each; ties by column
 *   factor    H = R R^T, R upper triangular in this order
 *   feedback  column by column: t[c] = y[c] + sum over j before c of (y - q)[j] R[j][c] / R[c][c], q[c] nearest to
 *             t[c]. Bytes of a group are proposed by the search of compact.h for the targets t that all groups before
 *             it result in, and tried with feedback within the group: the least sum of (R[c][c] (t - q)[c])^2 wins.
 *   passes    with the bytes fixed, column by column: t[c] = q[c] + v[c] / H[c][c], v = H (y - q) for the present q
 *   marks     a marked weight (an outlier) stores the fp16 residual of its target; q includes the residual
 *
 * Columns whose inputs are all zero have an H[c][j] of zero for all other j: they are encoded as without feedback.
 *
 * Arithmetic: the products of two f32 numbers are exact in f64, sums are f64 in a stated order and rounded to f32 once.
 * own, stack, P, G, H, R, R[j][c] / R[c][c], t, y - q and v are f32. So bits depend neither on fused multiply-add nor
 * on the width of vectors, the number of threads or the number of rows that are encoded together.
 *
 *   own, stack         sums over inputs in the order of calls; then divided by n
 *   trace              in the order of columns
 *   H[i][c] - R R^T    starts from H; products are subtracted from the last column to the one after c
 *   t                  starts from y; in order
 *   v                  columns of other groups in order, then those of the group in order
 *   the error of a group, and the sum of its H[c][c]: in order
 *
 * Symmetric and triangular matrices are stored as a triangle of blocks of 16 x 16: block (i, j) contains rows 16 i ...
 * and columns 16 j ..., i >= j, row by row; it is number j * panels - j * (j - 1) / 2 + i - j of panels * (panels + 1)
 * / 2. Blocks (i, i) are complete. Columns are padded to whole groups.
 *
 *     xfp_feedback_moments_add(sum, ...)    until all inputs are added, and xfp_feedback_squares_add(...)
 *     xfp_feedback_moments_mean(sum, ...)
 *     scale = xfp_feedback_scale(...)
 *     xfp_feedback_prepare(&f, ...)         H and the order
 *     xfp_feedback_factor(&f, ...)          R; fails if H is not positive definite
 *     xfp_feedback_divide(&f)               R[j][c] / R[c][c]
 *
 *     xfp_feedback_batch_init(&b, &f, buffer, rows)    for each batch of rows; 256 rows are fast
 *     xfp_feedback_load(&b, row, ...)                  for each row
 *     xfp_feedback_encode(&b, book, XFP_COMPACT_TRIED)
 *     xfp_feedback_pass(&b, book)                      twice
 *     xfp_feedback_store(&b, row, ...)                 for each row
 */
#ifndef XFP_FEEDBACK_H
#define XFP_FEEDBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/encode/compact.h"

/* ---- blocks ------------------------------------------------------------------------------------------------ */

#define XFP_FEEDBACK_COLS 16384

static inline size_t xfp_feedback_blocks(size_t cols)
{
	return (cols + XFP_FEEDBACK_COLS - 1) / XFP_FEEDBACK_COLS;
}

/* Return the first column of a block; of block `blocks`, `cols`. */
size_t xfp_feedback_first(size_t cols, unsigned group, size_t blocks, size_t block);

/* ---- moments ----------------------------------------------------------------------------------------------- */

/* Values in a triangle of `cols` columns. `cols` is padded to a multiple of 16; pads are zero. */
static inline size_t xfp_triangle_values(size_t cols)
{
	size_t panels = (cols + XFP_LANES - 1) / XFP_LANES;

	return panels * (panels + 1) / 2 * XFP_LANES * XFP_LANES;
}

/* Index of element (i, j), i >= j or in the same block, in a triangle of `cols` columns. */
static inline size_t xfp_triangle_at(size_t cols, size_t i, size_t j)
{
	size_t panels = (cols + XFP_LANES - 1) / XFP_LANES, row = i / XFP_LANES, col = j / XFP_LANES;
	size_t block = col * (2 * panels - col + 1) / 2 + row - col;

	return (block * XFP_LANES + i % XFP_LANES) * XFP_LANES + j % XFP_LANES;
}

/* Floats of scratch memory for inputs of `cols` columns, aligned to 8 bytes. */
#define XFP_FEEDBACK_INPUTS 256 /* converted at a time */
size_t xfp_feedback_moments_scratch(size_t cols);

/* Add the products of the columns of `rows` inputs, bf16, `stride` elements from one to the next, to the triangle
 * `sum`. Threads share the work by panels of 16 columns: each adds rows [first, end) of blocks. */
void xfp_feedback_moments_add(double *sum, const uint16_t *x, size_t stride, size_t rows, size_t cols, size_t first,
			      size_t end, float *scratch);

/* Add the squares of columns: the diagonal alone. */
void xfp_feedback_squares_add(double *sum, const uint16_t *x, size_t stride, size_t rows, size_t cols);

/* Divide by the number of inputs: the values of a triangle or of a diagonal. In place is allowed; the result is then in
 * the first half of `sum`. */
void xfp_feedback_moments_mean(const double *sum, size_t values, uint64_t inputs, float *mean);

/* ---- H and its factor -------------------------------------------------------------------------------------- */

/* What H is made of. `own` is NULL if the matrix has no inputs, `stack` if H is of own alone. */
struct xfp_feedback_source {
	const float *own, *stack; /* triangles of the columns of a block; for xfp_feedback_scale, diagonals of all */
	uint64_t inputs;          /* n */
	size_t cols;              /* of the matrix */
	const uint8_t *balance;   /* d, from the block's first column on; NULL: none */
};

/* Return the factor K / trace(G), 0 if all inputs are zero. */
float xfp_feedback_scale(const struct xfp_feedback_source *source);

struct xfp_feedback {
	size_t first, cols, padded; /* columns of the block, from the matrix's column `first` on */
	unsigned group;
	uint32_t *column;        /* [padded] the block's column at each place of the order; >= cols: padding */
	float *h, *factor;       /* triangles, in order: H; R, and R[j][c] / R[c][c] once divided, at (c, j) */
	float *diagonal, *pivot; /* [padded] H[c][c], R[c][c] */
};

/* Compute H and the order; `scale` is that of xfp_feedback_scale. The caller sets first, cols and group, and provides
 * memory: xfp_triangle_values(padded) floats for a triangle, `padded` being cols in whole groups. h must not overlap
 * own and stack, factor may. A triangle has 0.54 GB at 16,384 columns. */
void xfp_feedback_prepare(struct xfp_feedback *feedback, const struct xfp_feedback_source *source, float scale);

/* Compute R in feedback->factor. Returns false if H is not positive definite: *column is the first of the block's
 * columns, from the order's end, whose pivot is not above zero. `scratch` has xfp_feedback_scratch(padded) doubles. */
size_t xfp_feedback_scratch(size_t padded);
bool xfp_feedback_factor(struct xfp_feedback *feedback, double *scratch, size_t *column);

/* Divide each column of R by its diagonal element. */
void xfp_feedback_divide(struct xfp_feedback *feedback);

/* ---- rows -------------------------------------------------------------------------------------------------- */

/* Rows that are encoded together, sixteen to a tile; a tile's arrays have sixteen values, one a row, per column or
 * group in order. A batch belongs to one thread. */
struct xfp_feedback_batch {
	const struct xfp_feedback *feedback;
	size_t rows, tiles;
	float *y, *error, *target;       /* [tiles][padded][16] y, y - q, t */
	uint8_t *index;                  /* [tiles][padded][16] */
	uint8_t *byte;                   /* [tiles][groups][16] */
	uint16_t *mark;                  /* [tiles][padded] a bit per row */
	float *row, *inverse;            /* [tiles][16] row scales, and 1 / row */
	double *slab, *wide, *sum, *own; /* scratch: columns of a group */
	struct xfp_compact_groups groups;
};

/* Bytes of a batch's memory, which is aligned to 64 bytes; init sets the pointers, and all rows to zero. */
size_t xfp_feedback_batch_bytes(const struct xfp_feedback *feedback, size_t rows);
void xfp_feedback_batch_init(struct xfp_feedback_batch *batch, const struct xfp_feedback *feedback, void *buffer,
			     size_t rows);

/* Load row `at` of the batch: x, from the block's first column on, marked weights included; marks as in compact.h, or
 * NULL; and the row scale. */
void xfp_feedback_load(struct xfp_feedback_batch *batch, size_t at, const float *x, const uint16_t *marked, float row);

/* Encode all rows, with `tried` of the search's bytes: 1, the best without feedback within the group, or
 * XFP_COMPACT_TRIED. */
void xfp_feedback_encode(struct xfp_feedback_batch *batch, const struct xfp_compact_book *book, unsigned tried);

/* One pass over the columns of encoded rows. */
void xfp_feedback_pass(struct xfp_feedback_batch *batch, const struct xfp_compact_book *book);

/* Store row `at` in storage order: the bytes of the block's groups; indices, [padded]; and residuals, fp16, [padded],
 * of which only those of marked columns are set. `book` is the one that the rows were encoded with. */
void xfp_feedback_store(const struct xfp_feedback_batch *batch, size_t at, const struct xfp_compact_book *book,
			uint8_t *byte, uint8_t *index, uint16_t *residual);

/* Copy group `group` of row `at` to group `to` of a sample for xfp_compact_train: y becomes the targets, 0 if marked;
 * mark, and a code of 0 if marked, 1 otherwise. Returns its byte and stores its indices. */
uint8_t xfp_feedback_sample(const struct xfp_feedback_batch *batch, size_t at, size_t group,
			    const struct xfp_compact_groups *sample, size_t to, uint8_t *index);

/* ---- predictions ------------------------------------------------------------------------------------------- */

#define XFP_FEEDBACK_DAMPING 0.06f

/* Errors with feedback, given a quantizer's error t - q that has the same mean square in all columns and is not
 * correlated: sums over the columns of the block, for a mean square of 1. Without feedback, both are its number of
 * columns if H has the trace of I. */
struct xfp_feedback_growth {
	double outputs; /* of (y - q) (H - 0.06 I) (y - q)^T: the sum of R[c][c]^2 less the damping of `weights` */
	double weights; /* of (y - q)^2: the mean of sixteen rows whose t - q are pseudorandom signs */
};
/* `x` is scratch memory, [padded][16]. R must be divided. */
struct xfp_feedback_growth xfp_feedback_growth(const struct xfp_feedback *feedback, float *x);

/* Sum y (H - 0.06 I) y^T of each of sixteen rows, a tile of [padded][16] in order. */
void xfp_feedback_norms(const struct xfp_feedback *feedback, const float *tile, double out[XFP_LANES]);

/* ---- outputs ----------------------------------------------------------------------------------------------- */

/* Inputs, bf16, as panels of sixteen: [panels][cols][16]; those that are missing in the last panel are zero. */
size_t xfp_feedback_panels_values(size_t cols, size_t inputs);
void xfp_feedback_panels_load(const uint16_t *x, size_t inputs, size_t cols, double *panels);

/* Multiply sixteen rows, a tile of [cols][16], by each input: out has [16] sums over columns, in order, for each input
 * of the panels. */
void xfp_feedback_outputs(const double *panels, size_t inputs, const float *tile, size_t cols, double *out);

#endif
