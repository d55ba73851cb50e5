/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact.h - compact groups (v2c): one byte per group of 16, 32 or 64 columns.
 *
 * The byte of a group contains the number of an entry of the unit's library, byte >> ratio_bits, and of a ratio, the
 * low ratio_bits; entries times ratios is 256. A row has one byte d. Index q of a group decodes to
 *
 *     x' = RN32( (entry[e][q] * ratio[r]) * row )        row = 2^14 * 2^(-d/4), see xfp_balance_down of scale.h
 *
 * Entries and ratios are fp16, so their product is exact in f32 and x' is rounded once. ratio[0] is 0.
 *
 * The fit works on y = RN32(x * (1 / row)), in groups. Marked weights (outliers), and columns past the end of a row,
 * are 0 there and have no effect.
 *
 *   load     convert a row to groups: y, marks, the largest |y|, the sum of y^2, and a code for each y: one of 249
 *            steps from -largest to largest. All are independent of k.
 *   seed     initialize the library from constants, and the ratios from a histogram of the groups' largest |y|
 *   prepare  compute thresholds and, for every pair of an entry and a scale (relative to the largest |y|), a table of
 *            the squared errors of the codes, in 8 bits
 *   assign   find the best pair of each entry by the sum of table values over the group's codes; then try the two best
 *            entries exactly, each with the ratio nearest to the pair's scale, and with the ratio nearest to the least
 *            squares scale for the resulting indices
 *   train    on a sample of the groups: accumulate sums, and update library and ratios from them; a few rounds
 *   finish   round to fp16
 *
 * Values that affect decisions are f32, each operation rounded once; sums over a group run in sixteen lanes, value c in
 * lane c mod 16, and the lanes are then added 0 + 8, 1 + 9, ..., then 0 + 4, ..., 0 + 2, 0 + 1.
 */
#ifndef XFP_COMPACT_H
#define XFP_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/lanes/lanes.h"

#define XFP_COMPACT_ENTRIES 16 /* maximum */
#define XFP_COMPACT_RATIOS 64
#define XFP_COMPACT_GROUP 64
#define XFP_COMPACT_PAIRS 64
#define XFP_COMPACT_CODES 256
#define XFP_COMPACT_ZERO 128  /* code of 0 */
#define XFP_COMPACT_STEPS 124 /* codes from 0 to the largest |y| */
#define XFP_COMPACT_TRIED 4   /* bytes that the search evaluates exactly: two entries, two ratios each */

/* The groups of a row, a unit or a sample. */
struct xfp_compact_groups {
	unsigned group; /* 16, 32 or 64 values each */
	float *y;       /* [groups][group] */
	uint16_t *mark; /* [groups][group / 16], bit c of a word is set if value c is marked */
	uint8_t *code;  /* [groups][group]; 0 if marked */
	float *largest; /* [groups]; 0 if negligible: the group is then stored as zeros */
	float *square;  /* [groups] */
};

/* The stored library, converted to f32. */
struct xfp_compact_library {
	unsigned k, group;
	unsigned entries, ratios, ratio_bits;
	float entry[XFP_COMPACT_ENTRIES][64]; /* ascending, 2^k each */
	float ratio[XFP_COMPACT_RATIOS];      /* ascending, the first is 0 */
};

struct xfp_compact_book {
	struct xfp_compact_library library;

	/* Computed by xfp_compact_prepare. */
	float edge[XFP_COMPACT_ENTRIES][64];  /* midpoints of neighbours */
	float ratio_edge[XFP_COMPACT_RATIOS]; /* midpoints of the ratios */
	float inverse[XFP_COMPACT_RATIOS];    /* 1 / ratio, or 0 */
	float target[XFP_COMPACT_PAIRS];      /* scale of a pair, relative to the largest |y| */
	int32_t order[XFP_COMPACT_PAIRS];     /* the pair's number, or a value above all others if there is no pair */
	_Alignas(64) uint16_t table[XFP_COMPACT_CODES][32]; /* two pairs per word: word p % 32, low byte first */
};

/* Histogram of the groups' largest |y|: sixteen cells per octave. */
#define XFP_COMPACT_PEAKS 512

struct xfp_compact_sums {
	double above[XFP_COMPACT_ENTRIES][64], below[XFP_COMPACT_ENTRIES][64]; /* sums of w s y, w s s; s the ratio */
	double ratio_above[XFP_COMPACT_RATIOS], ratio_below[XFP_COMPACT_RATIOS];
	double values[XFP_COMPACT_ENTRIES], groups;
};

static inline size_t xfp_compact_groups_of(size_t cols, unsigned group)
{
	return (cols + group - 1) / group;
}

/* Return the shift of codes before a look-up, by k. */
static inline unsigned xfp_compact_shift(unsigned k)
{
	return k <= 3 ? 2 : k == 4 ? 1 : 0;
}

/* Load, assign and decode, one implementation per instruction set: xfp_encoder()->compact. */
struct xfp_compact_encoder {
	/* Convert a row of x, in units of `row`, to the groups from `first` on. x is padded; `marked` has bit c % 16 of
	 * word c / 16 set if x[c] must be ignored, or is NULL. */
	void (*load)(const struct xfp_compact_groups *to, size_t first, const float *x, const uint16_t *marked,
		     size_t cols, float row);

	/* Assign groups [first, first + count): the byte of each group; its indices, [count][group], 0 if the ratio is
	 * 0; and the sum of squared differences of its unmarked y. index and error may be NULL. */
	void (*assign)(const struct xfp_compact_book *book, const struct xfp_compact_groups *groups, size_t first,
		       size_t count, uint8_t *byte, uint8_t *index, float *error);

	/* Compute code, largest and square of groups [first, first + count), at most sixteen, from y and mark. Then
	 * search as `assign` does: byte[0] is the best byte of each group, the others are those that were evaluated;
	 * all are 0 for a group that is stored as zeros. Bytes past `count` are undefined. */
	void (*propose)(const struct xfp_compact_book *book, const struct xfp_compact_groups *groups, size_t first,
			size_t count, uint8_t byte[XFP_COMPACT_TRIED + 1][XFP_LANES]);

	/* Decode the bytes and indices of a row; the result is padded. */
	void (*decode)(const struct xfp_compact_library *library, const uint8_t *byte, const uint8_t *index, float row,
		       size_t cols, float *x);

	/* Decode the bytes of a row whose groups are [first, first + groups of cols) with the indices that `assign`
	 * computes for them: the same as `decode`. */
	void (*reconstruct)(const struct xfp_compact_book *book, const struct xfp_compact_groups *groups, size_t first,
			    const uint8_t *byte, float row, size_t cols, float *x);

	/* Compute the indices that `assign` computes for the bytes of a row, from x, in units of `row`. Both x, which
	 * is 0 at marked columns, and index are padded. */
	void (*index)(const struct xfp_compact_book *book, const float *x, const uint8_t *byte, float row, size_t cols,
		      uint8_t *index);
};

/* Compute the byte d of a row from the mean square of its unmarked x, and the row scale of a byte. */
uint8_t xfp_compact_row_byte(double mean_square);
float xfp_compact_row(uint8_t d);

/* Decode an index of a group with this byte, in a row with byte d. */
float xfp_compact_value(const struct xfp_compact_book *book, uint8_t byte, uint8_t index, uint8_t d);

/* Copy a group to a sample. */
void xfp_compact_copy(struct xfp_compact_groups *to, size_t at, const struct xfp_compact_groups *from, size_t group);

/* Add groups [first, first + count) to the histogram. */
void xfp_compact_count(const struct xfp_compact_groups *groups, size_t first, size_t count,
		       uint64_t peaks[XFP_COMPACT_PEAKS]);

/* Return the number of entries that leaves a useful number of ratios, by k: 16, 8 or 4. */
unsigned xfp_compact_entries(unsigned k);

/* Initialize a book from the constants. `entries` is xfp_compact_entries(k), or a half or a quarter of it, at least 4.
 * xfp_compact_start uses a given library, [entries][2^k] numbers in any unit. */
void xfp_compact_seed(struct xfp_compact_book *book, unsigned k, unsigned group, unsigned entries,
		      const uint64_t peaks[XFP_COMPACT_PEAKS]);
void xfp_compact_start(struct xfp_compact_book *book, unsigned k, unsigned group, unsigned entries,
		       const float *library, const uint64_t peaks[XFP_COMPACT_PEAKS]);

/* Compute the tables for assignment; needed after every change of library or ratios. */
void xfp_compact_prepare(struct xfp_compact_book *book);

/* Add assigned groups [0, count) to the sums, in order; weight[i] is the square of the row scale of group i. The caller
 * sets the sums to zero before the first call. */
void xfp_compact_train(const struct xfp_compact_book *book, const struct xfp_compact_groups *groups, size_t count,
		       const float *weight, const uint8_t *byte, const uint8_t *index, struct xfp_compact_sums *sums);

/* Compute new ratios, and a new library if `library` is true. */
void xfp_compact_update(struct xfp_compact_book *book, const struct xfp_compact_sums *sums, bool library);

/* Round library and ratios to fp16 and store them: first entries * 2^k numbers, then the ratios (part CODE of
 * schemas/layout/bundle_layout.h). Call xfp_compact_prepare afterwards. */
void xfp_compact_finish(struct xfp_compact_book *book, uint16_t *code);

/* Open a stored library, ready for assignment. */
void xfp_compact_open(struct xfp_compact_book *book, unsigned k, unsigned group, unsigned entries,
		      const uint16_t *code);

#endif
