/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec.h - y = W x and small batches of it, straight from stored rows.
 *
 * Nothing is allocated: the caller gives buffers, prepares the activations once a call, and then has rows multiplied,
 * in as many ranges and threads as it likes.
 *
 * Results are the same from run to run and for any range, but not between instruction sets. With S the sum over the
 * row of |w x|, of stored weights and of outliers, x the balanced activations, every result is within
 *
 *   (cols / 16 + 32) 2^-24 S                          of the double-precision reference, with floats;
 *   that and n e a 2^-14 added up over the blocks     with bytes and words ("vbmi"): n columns, a the largest |x| of
 *                                                     a block of 256, e the largest |entry| of the row's codebook,
 *                                                     of v2c and v2a of the library (times the group's scale)
 *
 * unless activations or entries are not finite: bytes and words are used only where both are.
 */
#ifndef XFP_MATVEC_H
#define XFP_MATVEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/multiply/outlier_rows.h"

#define XFP_MAX_BATCH 8

/* Columns of one step, of vectors as bytes, and as words, which those of a tile of four or more are. */
#define XFP_BYTES_BLOCK 256
#define XFP_WORDS_BLOCK 128
#define XFP_WORDS_TILE 4

enum xfp_matvec_mode {
	XFP_MATVEC_F32,
	XFP_MATVEC_F16,
	XFP_MATVEC_BF16,
	XFP_MATVEC_FP8, /* e4m3 with one f32 scale a row */
	XFP_MATVEC_V2,
	XFP_MATVEC_V2A,
	XFP_MATVEC_V2C
};

/* A matrix as it is stored, or some of its columns; indices as in lane_index.h. Columns that are not all begin with a
 * chunk and with a group, and end with a chunk or with the row. */
struct xfp_matvec {
	enum xfp_matvec_mode mode;
	unsigned k;     /* of the modes with codebooks */
	unsigned group; /* v2a, v2c: log2 of a group's columns, at least 4 */
	size_t rows, cols;
	size_t row_bytes, row_groups; /* from a row to the next; see xfp_matvec_whole */
	double unit;                  /* what a stored weight is multiplied by: 2^-s, or 1 */
	const uint8_t *index;         /* rows, row_bytes apart */
	const void *code;             /* v2: fp16 entries; fp8: f32 scales, row by row */
	const void *pair;             /* v2a: fp16 scale and midpoint of every group, rows of them row_groups apart */
	const uint8_t *byte;          /* v2a: its codebook; v2c: its byte; likewise */
	const uint8_t *row;           /* v2c: the byte of every row */
	const void *tables;           /* v2a, v2c: what xfp_matvec_tables made */

	struct xfp_outlier_rows outliers; /* in units of the stored weights; columns count from `first_column` on */
	size_t first_column;
};

size_t xfp_matvec_row_bytes(enum xfp_matvec_mode mode, unsigned k, size_t cols);
/* Sets row_bytes and row_groups by mode, k, group and cols, for a matrix that has no other columns. */
void xfp_matvec_whole(struct xfp_matvec *w);

/* The library of v2a (`ratio` NULL) or v2c, fp16, as the kernels look it up. `codebooks` of 2^k entries, at most 256;
 * of one that is not there, any number may come. The buffer is aligned to 64 bytes. */
size_t xfp_matvec_tables_bytes(unsigned k);
void xfp_matvec_tables(unsigned k, unsigned codebooks, const uint16_t *entry, const uint16_t *ratio, void *buffer);

/* Activations, prepared. */
struct xfp_matvec_x {
	size_t cols;
	unsigned k;           /* that they were prepared for; 0: modes without codebooks */
	unsigned count, tile; /* vectors; as many as kernels take at once: 1, 2, 4 or 8 */
	size_t vectors;       /* of sixteen columns, those of the last chunk padded with zeros */
	float *natural;       /* [count][cols], balanced */
	float *lanes;         /* [vectors][tile][16] */

	/* Where the machine has instructions for them and all are finite, `bytes_fit`. Of up to two vectors: 64
	 * columns as int16, [vectors / 4][tile][2][64], the high bytes and then the low; by block of 256 columns, what
	 * one of them is worth, and the sum of all, [blocks][tile]. */
	bool bytes_fit;
	int8_t *bytes;
	float *step;
	double offset[XFP_MAX_BATCH];

	/* Of more vectors: 64 columns as words, [vectors / 4][tile][2][32]; `step` by block of 128. */
	int16_t *words;

	/* The same by group of 128 columns, and the sum of x, where all chunks are whole; [tile][groups], of words the
	 * sum alone, [groups][tile]. */
	size_t groups; /* a multiple of 16; 0 where not */
	float *group_step, *group_offset, *group_sum;
};

/* `count` vectors, up to XFP_MAX_BATCH, of a dtype of base/dtype.h (F32, F16 or BF16), `stride` elements apart.
 * `down`: xfp_balance_down of every column, or NULL. `buffer` is aligned to 64 bytes. */
size_t xfp_matvec_x_bytes(unsigned k, size_t cols, unsigned count);
void xfp_matvec_x_init(struct xfp_matvec_x *x, unsigned k, size_t cols, unsigned count, int dtype, const void *source,
		       size_t stride, const float *down, void *buffer);

/* y[m * stride + r - first] = row r of W times vector m, or, with `add`, that more, for rows [first, first + rows).
 * False when outliers are not within the matrix or a group of v2a has none of its codebooks; what was computed is then
 * undefined. */
bool xfp_matvec_rows(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows, bool add,
		     float *y, size_t stride);

/* Of v2a, whether all groups of some rows have one of so many codebooks, a power of two; of other modes they have. */
bool xfp_matvec_codebooks_exist(const struct xfp_matvec *w, unsigned codebooks, size_t first, size_t rows);

/* ---- the instruction sets ---------------------------------------------------------------------- */

/* Rows without outliers; `y` as above. */
typedef void xfp_matvec_fn(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows,
			   bool add, float *y, size_t stride);

/* The outliers of rows that have some, to be added to `y`. False when they are not within the matrix. */
typedef bool xfp_matvec_outliers_fn(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows,
				    float *y, size_t stride);
xfp_matvec_outliers_fn xfp_matvec_outliers;

/* A row as the numbers that are stored, x[cols]: not times the unit, and without outliers. */
typedef void xfp_matvec_decode_fn(const struct xfp_matvec *w, size_t row, float *x);

struct xfp_matvec_set {
	const char *name; /* "plain", "avx2", "avx512", "vbmi", "neon" */
	xfp_matvec_fn *rows;
	xfp_matvec_outliers_fn *outliers;
	xfp_matvec_decode_fn *decode;
	bool (*integers)(struct xfp_matvec_x *x); /* NULL, or vectors as bytes or words; false where they do not fit */
};

/* The best that this machine has; the one in use, which is that at first; and the named one from now on, false where
 * there is none or it cannot run. Not while other threads multiply. */
const struct xfp_matvec_set *xfp_matvec_best(void);
const struct xfp_matvec_set *xfp_matvec_set(void);
bool xfp_matvec_use(const char *name);

extern const struct xfp_matvec_set xfp_matvec_plain;
#ifdef XFP_X86
extern const struct xfp_matvec_set xfp_matvec_avx2, xfp_matvec_avx512, xfp_matvec_vbmi;
xfp_matvec_outliers_fn xfp_matvec_outliers_avx512;
xfp_matvec_decode_fn xfp_matvec_decode_avx512;
bool xfp_matvec_integers(struct xfp_matvec_x *x);
#endif
#ifdef XFP_AARCH64
extern const struct xfp_matvec_set xfp_matvec_neon;
#endif

#endif
