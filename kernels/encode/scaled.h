/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaled.h - groups of a row that share a library of codebooks, each group with a scale and a midpoint (v2a).
 *
 * A group of G weights, or fewer at the end of a row, is stored as the number of a library entry, a scale s and a
 * midpoint m in fp16. Index j decodes to d[j] = fma(entry[j], s, m) in f32 (xfp_scaled_value of decode.h); a weight
 * gets the index with the nearest d, the lower one if it is halfway. s may be negative: the group then uses the
 * mirrored entry, so that 32 entries give 64 shapes. Marked weights are ignored by every fit.
 *
 * The search for a group works on a histogram: its weights are rounded to q = 0..62 between its minimum and its maximum
 * (0..254 if codebooks have 32 or 64 entries, `fine`), and counted. Prefix counts and sums, exact integers, give the
 * count and sum between any thresholds with one look-up each. A shape (an entry or its mirror image) is tried by
 *
 *     s, m from the group's mean and deviation, and those of the shape's groups in training;
 *     cells between the shape's midpoints, s and m by least squares; gain = the reduction of the squared error
 *
 * in sixteen lanes, sixteen shapes at a time. First the pilots, a few shapes that differ from each other; then the kin
 * of the best pilots, the sixteen shapes most similar to each. The shapes of the largest gain (the first among equals)
 * continue with exact rounds over the weights: cells, least squares. The best of them is rounded to fp16. In a library
 * of more than 32 entries at most 64 shapes are pilots; the others are tried only as kin.
 *
 * The library is trained on a sample of groups: seeds, then rounds of search and of entry[j] = the mean of (x - m) / s
 * over the weights in cell j, weighted by s^2, which minimizes the squared error of x.
 *
 * All decisions are in f32 with + - * / sqrt in the order of the sixteen lanes, in integers, or in double in the order
 * of the sample: the same bits on any machine. The result depends only on the weights and the stored library, including
 * its moments.
 */
#ifndef XFP_SCALED_H
#define XFP_SCALED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/encode/encode.h"

#define XFP_SCALED_MIN_GROUP 16 /* group sizes are powers of two */
#define XFP_SCALED_MAX_GROUP 1024
#define XFP_SCALED_MAX_LIBRARY 256 /* library sizes are powers of two, from 1 */
#define XFP_SCALED_PILOTS 64       /* maximum */
#define XFP_SCALED_KIN 16
#define XFP_SCALED_COUNT_BITS 11 /* bits of a prefix count, below the prefix sum */

/* Return whether codebooks of k bits need the fine histogram. A row or sample and its library must agree. */
static inline bool xfp_scaled_fine(unsigned k)
{
	return k > 4;
}

/* A group's histogram: weight = mean + low + step * q. */
struct xfp_scaled_group {
	const float *x;       /* weights minus `mean`; 0 if marked or past the end; NULL in a sample */
	const uint16_t *keep; /* bit i is set if weight i of these sixteen is unmarked */
	int32_t *upto;        /* sum << XFP_SCALED_COUNT_BITS | count of the weights with q < i */
	bool fine;
	unsigned vectors, count; /* vectors of sixteen weights; unmarked weights */
	float mean, low, step;
	float share;           /* 1 / count */
	float q_mean, q_sigma; /* 0 if all are equal, or all are marked */
};

/* Search effort. */
struct xfp_scaled_effort {
	unsigned pilots;    /* 16, 32, 48 or 64 */
	unsigned best;      /* pilots whose kin are tried, 1 to 4 */
	unsigned passes;    /* passes over the kin, at least 1 */
	unsigned exact;     /* exact rounds over the weights */
	unsigned finalists; /* shapes in the exact rounds, at least 1; the largest gain wins */
};

/* Statistics of an entry's groups in training, in its own units: the start of a group's search. */
struct xfp_scaled_moments {
	float mean, sigma;
};

/* A library prepared for the search. Shape 2 e is entry e, 2 e + 1 its mirror image. */
struct xfp_scaled_library {
	unsigned k, size;
	struct xfp_scaled_effort effort;
	unsigned pilots; /* number of lanes; some shapes may repeat */
	uint16_t pilot[XFP_SCALED_PILOTS], kin[XFP_SCALED_PILOTS][XFP_SCALED_KIN];
	struct xfp_scaled_moments moments[XFP_SCALED_MAX_LIBRARY];
	/* `size` entries, the edges between them, and tables of sixteen shapes each: of the pilots, then of each
	 * pilot's kin. */
	_Alignas(64) float buffer[];
};

/* Entries and edges are padded to vectors. */
static inline size_t xfp_scaled_stride(unsigned k)
{
	return xfp_padded((size_t)1 << k);
}
static inline const float *xfp_scaled_entry(const struct xfp_scaled_library *library, unsigned entry)
{
	return library->buffer + entry * xfp_scaled_stride(library->k);
}
static inline const float *xfp_scaled_edge(const struct xfp_scaled_library *library, unsigned entry)
{
	return library->buffer + (library->size + entry) * xfp_scaled_stride(library->k);
}
/* Return the size of a table, in lines of sixteen lanes: for every edge its value, and what an index gains there in
 * value and in its square; then the last entry, its square, the mean, and the inverse of the deviation. */
static inline size_t xfp_scaled_table_size(unsigned k)
{
	return ((size_t)3 * (1u << k) + 1) * XFP_LANES;
}
static inline const float *xfp_scaled_table(const struct xfp_scaled_library *library, unsigned number)
{
	return library->buffer + 2 * library->size * xfp_scaled_stride(library->k) +
	       number * xfp_scaled_table_size(library->k);
}
#define XFP_SCALED_KIN_TABLES (XFP_SCALED_PILOTS / XFP_LANES) /* number of the first pilot's table */

struct xfp_scaled_fit {
	unsigned entry;
	float scale, midpoint; /* in units of weights, mean included */
};

/* The loops over a group, one implementation per instruction set: xfp_encoder()->scaled. */
struct xfp_scaled_encoder {
	/* Compute the histogram of a group whose number of vectors, count and keep bits are set, and its weights minus
	 * their mean. */
	void (*load)(struct xfp_scaled_group *group, const float *x, const uint16_t *keep, float *centred);

	/* Find the entry, scale and midpoint of a group. */
	void (*search)(const struct xfp_scaled_library *library, const struct xfp_scaled_group *group,
		       struct xfp_scaled_fit *fit);

	/* Return prefix counts up to the edges of an entry of 2^k, at s and m of q. */
	void (*below)(unsigned k, const float *edge, float s, float m, const struct xfp_scaled_group *group,
		      int32_t *below);

	/* Convert weights to indices of an entry at s and m, and to decoded values; either may be NULL. */
	void (*assign)(unsigned k, const float *entry, float s, float m, const float *x, size_t cols, uint8_t *index,
		       float *value);
};

/* ---- groups of a row and of a sample --- */

/* A row of groups. The caller owns its buffer, and that of a sample, aligned to 64 bytes. */
struct xfp_scaled_row {
	size_t cols, groups;
	unsigned length;
	bool fine;
	struct xfp_scaled_group *group;
	float *x;
	uint16_t *keep;
	int32_t *upto;
};
size_t xfp_scaled_row_bytes(size_t cols, unsigned length, bool fine);
void xfp_scaled_row_init(struct xfp_scaled_row *row, void *buffer, size_t cols, unsigned length, bool fine);

/* Load a padded row, |x| < 2^15, and the columns of its marked weights, ascending. */
void xfp_scaled_row_load(struct xfp_scaled_row *row, const float *x, const uint32_t *marked, size_t marks);

/* Groups without their weights. xfp_scaled_sample_count gives the number of groups that is enough for a unit: group
 * i * groups / count for each i. */
struct xfp_scaled_sample {
	size_t count;
	bool fine;
	struct xfp_scaled_group *group;
	int32_t *upto;
	uint32_t *order; /* order for seeds */
	float *key;
};
size_t xfp_scaled_sample_count(size_t groups, unsigned size);
size_t xfp_scaled_sample_bytes(size_t count, bool fine);
void xfp_scaled_sample_init(struct xfp_scaled_sample *sample, void *buffer, size_t count, bool fine);

/* Set group `number` of the sample to the weights [first, first + length) of a padded row, or to the row's end. */
void xfp_scaled_sample_set(struct xfp_scaled_sample *sample, size_t number, const float *x, size_t cols, size_t first,
			   unsigned length, const uint32_t *marked, size_t marks);

/* ---- the library ---- */

/* Return the bytes of a library, which must be aligned to 64 bytes. */
size_t xfp_scaled_library_bytes(unsigned k, unsigned size);

/* Sums of a training round. */
struct xfp_scaled_training {
	double sum[XFP_SCALED_MAX_LIBRARY][64], weight[XFP_SCALED_MAX_LIBRARY][64];
	double first[XFP_SCALED_MAX_LIBRARY], second[XFP_SCALED_MAX_LIBRARY], count[XFP_SCALED_MAX_LIBRARY];
	double worth[XFP_SCALED_MAX_LIBRARY]; /* sums of the squared scales of its weights */
};

#define XFP_SCALED_ROUNDS 6

/* Train a library: entries (fp16, [size][2^k]) and their moments after `rounds` rounds from the seeds. `library` is
 * working memory, and afterwards as after xfp_scaled_open. */
void xfp_scaled_train(struct xfp_scaled_library *library, unsigned k, unsigned size, struct xfp_scaled_sample *sample,
		      unsigned rounds, struct xfp_scaled_training *sums, uint16_t *entries,
		      struct xfp_scaled_moments *moments);

/* Open a stored library, ready for rows. Without moments (NULL) it can only be used by xfp_scaled_assign_row. */
void xfp_scaled_open(struct xfp_scaled_library *library, unsigned k, unsigned size, const uint16_t *entries,
		     const struct xfp_scaled_moments *moments);

/* Compute the seeds of the training. */
void xfp_scaled_seed(struct xfp_scaled_library *library, unsigned k, unsigned size, struct xfp_scaled_sample *sample);

/* ---- rows with a given library ---- */

/* Codes per group. */
struct xfp_scaled_codes {
	uint8_t *entry;
	uint16_t *scale, *midpoint; /* fp16, finite */
};

/* Fit the groups of the loaded row. */
void xfp_scaled_fit_row(const struct xfp_scaled_library *library, const struct xfp_scaled_row *row,
			const struct xfp_scaled_codes *codes);

/* Assign a padded row, including marked weights, with given codes: indices (a buffer of xfp_padded(cols)) and decoded
 * values (padded). Either may be NULL. */
void xfp_scaled_assign_row(const struct xfp_scaled_library *library, const struct xfp_scaled_codes *codes,
			   const float *x, size_t cols, unsigned length, uint8_t *index, float *value);

/* Round to fp16; larger values saturate. */
uint16_t xfp_scaled_half(double value);

#endif
