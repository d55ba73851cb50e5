/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compact.h - compact groups (v2c): one byte for each group of 16, 32 or 64 columns.
 *
 * The byte of a group names an entry of the unit's library, byte >> ratio_bits, and one of its ratios, the low
 * ratio_bits; entries times ratios is 256. A row has one byte d. Index q of a group stands for
 *
 *     x' = RN32( (entry[e][q] * ratio[r]) * row )        row = 2^14 * 2^(-d/4), see xfp_balance_down of scale.h
 *
 * Entries and ratios are fp16, so their product is exact in f32 and x' is rounded once. ratio[0] is 0.
 *
 * The fit works on y = RN32(x * (1 / row)), in groups. Marked weights (outliers), and columns past the end of a row,
 * are 0 there and count nowhere.
 *
 *   load     row to groups: y, marks, the largest |y|, the sum of y^2, and a code for each y: its place among 249
 *            steps from -largest to largest. None of it depends on k.
 *   seed     library from constants; ratios from a count of the largest |y| of the unit's groups
 *   prepare  thresholds, and for every pair of an entry and a scale, relative to the largest |y|, a table of the
 *            squared errors of the codes, in 8 bits
 *   assign   of the pairs, the best of each entry by the sum of the table's numbers over the group's codes; the two
 *            best entries are then tried exactly, each with the ratio nearest to the pair's scale and with the one
 *            nearest to the least squares scale for the indices which that gave
 *   train    on a sample of the groups: sums for the library and the ratios, and new ones from the sums; a few rounds
 *   finish   fp16
 *
 * Numbers that decide are f32, each operation rounded once; sums over a group run in sixteen lanes, value c in lane c
 * mod 16, and the lanes are then added 0 + 8, 1 + 9, ..., then 0 + 4, ..., 0 + 2, 0 + 1.
 */
#ifndef XFP_COMPACT_H
#define XFP_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XFP_COMPACT_ENTRIES 16 /* at most */
#define XFP_COMPACT_RATIOS 64
#define XFP_COMPACT_GROUP 64
#define XFP_COMPACT_PAIRS 64
#define XFP_COMPACT_CODES 256
#define XFP_COMPACT_ZERO 128  /* the code of 0 */
#define XFP_COMPACT_STEPS 124 /* codes from it to that of the largest |y| */

/* Groups of a row, a unit or a sample. */
struct xfp_compact_groups {
	unsigned group; /* 16, 32 or 64 values each */
	float *y;       /* [groups][group] */
	uint16_t *mark; /* [groups][group / 16], bit c of a word: value c is marked */
	uint8_t *code;  /* [groups][group]; 0: marked */
	float *largest; /* [groups]; 0 where it is too small to matter: then nothing but zeros is found for the group */
	float *square;  /* [groups] */
};

/* What is stored, as f32. */
struct xfp_compact_library {
	unsigned k, group;
	unsigned entries, ratios, ratio_bits;
	float entry[XFP_COMPACT_ENTRIES][64]; /* ascending, 2^k each */
	float ratio[XFP_COMPACT_RATIOS];      /* ascending, the first is 0 */
};

struct xfp_compact_book {
	struct xfp_compact_library library;

	/* By xfp_compact_prepare. */
	float edge[XFP_COMPACT_ENTRIES][64];  /* halfway between two neighbours */
	float ratio_edge[XFP_COMPACT_RATIOS]; /* the same of the ratios */
	float inverse[XFP_COMPACT_RATIOS];    /* 1 / ratio, or 0 */
	float target[XFP_COMPACT_PAIRS];      /* scale of a pair, in units of the largest |y| */
	int32_t order[XFP_COMPACT_PAIRS];     /* the pair's number, or what is above all where there is none */
	_Alignas(64) uint16_t table[XFP_COMPACT_CODES][32]; /* two pairs a word: p % 32 is the word, low byte first */
};

/* The largest |y| of groups, counted: sixteen cells an octave. */
#define XFP_COMPACT_PEAKS 512

struct xfp_compact_sums {
	double above[XFP_COMPACT_ENTRIES][64], below[XFP_COMPACT_ENTRIES][64]; /* of w s y and w s s, s the ratio */
	double ratio_above[XFP_COMPACT_RATIOS], ratio_below[XFP_COMPACT_RATIOS];
	double values[XFP_COMPACT_ENTRIES], groups;
};

static inline size_t xfp_compact_groups_of(size_t cols, unsigned group)
{
	return (cols + group - 1) / group;
}

/* Codes are looked up as code >> shift, by k. */
static inline unsigned xfp_compact_shift(unsigned k)
{
	return k <= 3 ? 2 : k == 4 ? 1 : 0;
}

/* Load, assign and decode, in every instruction set: xfp_encoder()->compact. */
struct xfp_compact_encoder {
	/* A row of x in units of `row` to the groups from `first` on; x is padded, `marked`
	 * has bit c % 16 of word c / 16 set where x is to be ignored, or is NULL. */
	void (*load)(const struct xfp_compact_groups *to, size_t first, const float *x, const uint16_t *marked,
		     size_t cols, float row);

	/* Groups [first, first + count): the byte of each, its indices, [count][group], 0 where the ratio is 0, and the
	 * sum of the squared differences of its unmarked y. index and error may be NULL. */
	void (*assign)(const struct xfp_compact_book *book, const struct xfp_compact_groups *groups, size_t first,
		       size_t count, uint8_t *byte, uint8_t *index, float *error);

	/* What the bytes and indices of a row stand for, padded. */
	void (*decode)(const struct xfp_compact_library *library, const uint8_t *byte, const uint8_t *index, float row,
		       size_t cols, float *x);
};

/* The byte d of a row whose unmarked x have this mean square, and its row scale. */
uint8_t xfp_compact_row_byte(double mean_square);
float xfp_compact_row(uint8_t d);

/* Copy a group, into a sample. */
void xfp_compact_copy(struct xfp_compact_groups *to, size_t at, const struct xfp_compact_groups *from, size_t group);

/* Count groups [first, first + count) as well. */
void xfp_compact_count(const struct xfp_compact_groups *groups, size_t first, size_t count,
		       uint64_t peaks[XFP_COMPACT_PEAKS]);

/* Entries that make 256 with ratios worth having, by k: 16, 8 or 4. */
unsigned xfp_compact_entries(unsigned k);

/* Begin with the constants. `entries` is xfp_compact_entries(k), or a half or a quarter of it, but at least 4. With a
 * library of its own, [entries][2^k] numbers in any unit: xfp_compact_start. */
void xfp_compact_seed(struct xfp_compact_book *book, unsigned k, unsigned group, unsigned entries,
		      const uint64_t peaks[XFP_COMPACT_PEAKS]);
void xfp_compact_start(struct xfp_compact_book *book, unsigned k, unsigned group, unsigned entries,
		       const float *library, const uint64_t peaks[XFP_COMPACT_PEAKS]);

/* Before groups are assigned, whenever library or ratios have changed. */
void xfp_compact_prepare(struct xfp_compact_book *book);

/* Add groups [0, count) that have been assigned; weight[i] is the square of the row scale of group i. The sums, all
 * zero before, are taken in order. */
void xfp_compact_train(const struct xfp_compact_book *book, const struct xfp_compact_groups *groups, size_t count,
		       const float *weight, const uint8_t *byte, const uint8_t *index, struct xfp_compact_sums *sums);

/* New ratios, and a new library unless it is to stay. */
void xfp_compact_update(struct xfp_compact_book *book, const struct xfp_compact_sums *sums, bool library);

/* Round library and ratios to fp16, and store them: entries * 2^k of the one, then the others (part CODE of
 * schemas/layout/bundle_layout.h). Prepare after it. */
void xfp_compact_finish(struct xfp_compact_book *book, uint16_t *code);

/* A stored library, ready for groups. */
void xfp_compact_open(struct xfp_compact_book *book, unsigned k, unsigned group, unsigned entries,
		      const uint16_t *code);

#endif
