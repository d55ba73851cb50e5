/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec.h - y = W x, and small batches of it, computed directly from stored rows.
 *
 * Nothing is allocated. The caller provides buffers, prepares the activations once per call, and then multiplies rows,
 * in any division into ranges and threads.
 *
 * Results are the same from run to run and for any range, but not between instruction sets. Let S be the sum over the
 * row of |w x|, over stored weights and outliers, and x the balanced activations. Every result is within
 *
 *   (cols / 16 + 32) 2^-24 S                    of the double-precision reference, with floats;
 *   that, plus n e a 2^-14 summed over blocks   with bytes and words ("avx2", "vbmi", "dotprod"): n columns, a the
 *                                               largest |x| of a block of 256, or 2^-100 if that is larger, e the
 *                                               largest |entry| of the row's codebook; in v2c and v2a of the
 *                                               library (times the group's scale)
 *
 * if activations and entries are finite. Bytes and words are used only if both are, and activations less than 2^64.
 * With 8-bit entries ("vbmi", one or two vectors, if the library's narrow_fit; matvec_tables.h) the reference has these
 * entries: multiples of 1/127 of the largest. So the result is e / 254 times the sum of |x| further off, at most, from
 * that of the stored entries.
 */
#ifndef XFP_MATVEC_H
#define XFP_MATVEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/multiply/outlier_rows.h"

#define XFP_MAX_BATCH 8

/* Columns per block: of vectors as bytes, and of vectors as words, which tiles of four or more vectors use. */
#define XFP_BYTES_BLOCK 256
#define XFP_BYTES_GROUP 128 /* columns that have sums of their own, in v2a: groups are multiples of it */
#define XFP_WORDS_BLOCK 128
#define XFP_WORDS_TILE 4

/* Largest magnitudes of integers. */
#define XFP_BYTES_LIMIT 32512 /* 127 * 256, as a signed high and low byte: the low byte of the largest is 0 */
#define XFP_ENTRY_LIMIT 32767 /* of an entry in bytes on x86: the high byte is unsigned */
#define XFP_WORD_LIMIT 16384  /* eight sums of two products are at most 2^31 */

enum xfp_matvec_mode {
	XFP_MATVEC_F32,
	XFP_MATVEC_F16,
	XFP_MATVEC_BF16,
	XFP_MATVEC_FP8, /* e4m3 with one f32 scale per row */
	XFP_MATVEC_V2,
	XFP_MATVEC_V2A,
	XFP_MATVEC_V2C
};

/* A stored matrix, or a range of its columns; indices as in lane_index.h. A range begins at the start of a chunk and of
 * a group, and ends with a chunk or with the row. */
struct xfp_matvec {
	enum xfp_matvec_mode mode;
	unsigned k;     /* bits per index, for modes with codebooks */
	unsigned group; /* v2a, v2c: log2 of the columns per group, at least 4 */
	size_t rows, cols;
	size_t row_bytes, row_groups; /* distance between rows; see xfp_matvec_set_row_layout */
	double unit;                  /* factor of a stored weight: 2^-s, or 1 */
	const uint8_t *index;         /* rows, row_bytes apart */
	const void *code;             /* v2: fp16 entries; fp8: f32 scales, row by row */
	const void *pair;             /* v2a: fp16 scale and midpoint of every group, row_groups per row */
	const uint8_t *byte;          /* per group, v2a: codebook number; v2c: byte; row_groups per row */
	const uint8_t *row;           /* v2c: the byte of every row */
	const void *tables;           /* v2a, v2c: from xfp_matvec_tables */

	struct xfp_outlier_rows outliers; /* in units of stored weights; columns relative to first_column */
	size_t first_column;
};

size_t xfp_matvec_row_bytes(enum xfp_matvec_mode mode, unsigned k, size_t cols);
/* Set row_bytes and row_groups from mode, k, group and cols, for a matrix that has no other columns. */
void xfp_matvec_set_row_layout(struct xfp_matvec *w);

/* Build look-up tables of a library of v2a (`ratio` NULL) or v2c, fp16: `codebooks` codebooks of 2^k entries, at most
 * 256. A look-up with an invalid codebook number returns an undefined value. The buffer is aligned to 64 bytes. */
size_t xfp_matvec_tables_bytes(unsigned k);
void xfp_matvec_tables(unsigned k, unsigned codebooks, const uint16_t *entry, const uint16_t *ratio, void *buffer);

/* Activations become integers only if all are less than the first: products with steps, entries and fp16 scales, and
 * their sums, are finite. The step of a block is that of the largest magnitude in it, or of the second if that is
 * larger: its reciprocal is finite, too. */
#define XFP_X_TOO_LARGE 0x1p64f
#define XFP_X_SMALLEST 0x1p-100f

/* Prepared activations. */
struct xfp_matvec_x {
	size_t cols;
	unsigned k;           /* bits per index that they were prepared for; 0 for modes without codebooks */
	unsigned count, tile; /* number of vectors, and of those that kernels take at once: 1, 2, 4 or 8 */
	size_t vectors;       /* 16-column vectors per activation vector, zero-padded to whole chunks */
	float *natural;       /* [count][cols], balanced */
	float *lanes;         /* [vectors][tile][16]; may be `natural` */

	/* The set in use, which they were prepared for. If it has integers and all activations are less than
	 * XFP_X_TOO_LARGE, `bytes_fit` is true. VBMI, one or two vectors: 64 columns as int16,
	 * [vectors / 4][tile][2][64], first the high bytes, then the low bytes; per block of 256 columns the value of
	 * a step, [blocks][tile]; and what the offsets of 16-bit and of 8-bit entries add. */
	const struct xfp_matvec_set *set;
	bool bytes_fit;
	int8_t *bytes; /* dotprod: for all numbers of vectors, [vectors / 4][tile][4], 16 high bytes and 16 low bytes */
	float *step;
	double offset[XFP_MAX_BATCH], narrow_offset[XFP_MAX_BATCH];

	/* VBMI, more vectors: 64 columns as words, [vectors / 4][tile][2][32]; `step` per block of 128. AVX2: 64
	 * columns as words, and a step eight times as f32, [vectors / 4][tile][80]; the sum of these columns, in eight
	 * parts, [vectors / 4][tile][8]. */
	int16_t *words;
	float *sums;

	/* The same per group of 128 columns, and the sum of x, if all chunks are complete: [tile][groups]; for words
	 * only the sum, [groups][tile]. */
	size_t groups; /* a multiple of 16; 0 if a chunk is incomplete */
	float *group_step, *group_offset, *narrow_group_offset, *group_sum;
};

/* Prepare `count` vectors, up to XFP_MAX_BATCH, of a dtype of base/dtype.h (F32, F16 or BF16), `stride` elements apart.
 * `down` is xfp_balance_down of every column, or NULL. `buffer` is aligned to 64 bytes. */
size_t xfp_matvec_x_bytes(unsigned k, size_t cols, unsigned count);
void xfp_matvec_x_init(struct xfp_matvec_x *x, unsigned k, size_t cols, unsigned count, int dtype, const void *source,
		       size_t stride, const float *down, void *buffer);

/* Compute y[m * stride + r - first] = row r of W times vector m for rows [first, first + rows); with `add`, add to y.
 * Returns false if outliers are outside the matrix or a v2a group has an invalid codebook number; results are then
 * undefined. */
bool xfp_matvec_rows(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows, bool add,
		     float *y, size_t stride);

/* Check the codebook numbers of v2a groups in some rows against `codebooks`, a power of two; true for other modes. */
bool xfp_matvec_codebooks_exist(const struct xfp_matvec *w, unsigned codebooks, size_t first, size_t rows);

/* Decode a row to x[cols] in stored numbers: without the unit factor and without outliers. */
typedef void xfp_matvec_decode_fn(const struct xfp_matvec *w, size_t row, float *x);
xfp_matvec_decode_fn xfp_matvec_decode;

/* ---- the instruction sets ---------------------------------------------------------------------- */

/* Multiply rows, without outliers; `y` as above. */
typedef void xfp_matvec_fn(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows,
			   bool add, float *y, size_t stride);

/* Add the outliers of rows to `y`. Returns false if they are outside the matrix. */
typedef bool xfp_matvec_outliers_fn(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows,
				    float *y, size_t stride);
xfp_matvec_outliers_fn xfp_matvec_outliers;

/* Multiply `rows` rows of a tile, rounded up to XFP_TILE_ROWS, by a panel of `width` times sixteen vectors, from the
 * tile's first column on: sum[r * stride + m], or add to it. See panel.h. */
typedef void xfp_panel_fn(const float *tile, size_t rows, size_t columns, size_t part, const float *panel,
			  unsigned width, bool add, float *sum, size_t stride);

struct xfp_matvec_set {
	xfp_matvec_fn *rows;
	xfp_matvec_outliers_fn *outliers;
	/* Convert vectors to bytes or words; returns false if they do not fit. May be NULL. */
	bool (*integers)(struct xfp_matvec_x *x);
	xfp_panel_fn *panel;
	unsigned panel_width; /* maximum */
};

/* The set in use; see kernels/common/instructions.h. */
const struct xfp_matvec_set *xfp_matvec_set(void);

extern const struct xfp_matvec_set xfp_matvec_plain;
xfp_matvec_decode_fn xfp_matvec_decode_plain;
#ifdef XFP_X86
extern const struct xfp_matvec_set xfp_matvec_avx2, xfp_matvec_avx512, xfp_matvec_vbmi;
xfp_matvec_outliers_fn xfp_matvec_outliers_avx512;
xfp_panel_fn xfp_panel_avx2, xfp_panel_avx512;
#define XFP_AVX2_PANEL_WIDTH 1
#define XFP_AVX512_PANEL_WIDTH 4
xfp_matvec_decode_fn xfp_matvec_decode_avx2, xfp_matvec_decode_avx512;
bool xfp_matvec_integers(struct xfp_matvec_x *x);
#endif
#ifdef XFP_AARCH64
extern const struct xfp_matvec_set xfp_matvec_neon, xfp_matvec_dotprod;
xfp_panel_fn xfp_panel_neon;
#define XFP_NEON_PANEL_WIDTH 1
xfp_matvec_decode_fn xfp_matvec_decode_neon;
xfp_matvec_outliers_fn xfp_matvec_outliers_neon;
bool xfp_matvec_integers_dotprod(struct xfp_matvec_x *x);
#endif

#endif
