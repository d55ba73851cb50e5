/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeds of a library, scaled.h: the sample's groups are sorted by the length of their longer tail, in deviations, and
 * divided into parts; each part is sorted by the other tail and divided again. The groups of a part, with the longer
 * tail upwards, mean zero and deviation one, are counted together, and Lloyd's iteration fits an entry to the counts.
 */
#include <string.h>

#include "kernels/common/round.h"
#include "kernels/encode/companded.h"
#include "kernels/encode/scaled.h"

#define CELLS 512 /* sixteen per deviation, on either side of zero */
#define CENTRE (CELLS / 2)
#define PARTS 16

static int above(const float *key, uint32_t a, uint32_t b)
{
	return key[a] == key[b] ? a > b : key[a] > key[b];
}

static void sift(const float *key, uint32_t *order, size_t root, size_t count)
{
	for (size_t child; (child = 2 * root + 1) < count; root = child) {
		uint32_t swap = order[root];

		child += child + 1 < count && above(key, order[child + 1], order[child]);
		if (!above(key, order[child], swap))
			return;
		order[root] = order[child];
		order[child] = swap;
	}
}

/* Sort ascending by key, equal keys by number: heap sort. */
static void sort(const float *key, uint32_t *order, size_t count)
{
	for (size_t i = count / 2; i--;)
		sift(key, order, i, count);
	for (size_t i = count; i-- > 1;) {
		uint32_t last = order[i];

		order[i] = order[0];
		order[0] = last;
		sift(key, order, 0, i);
	}
}

static float last_cell(const struct xfp_scaled_sample *sample)
{
	return sample->fine ? 254 : 62;
}

/* Compute the longer, or the shorter, tail of each group. */
static void measure_tails(struct xfp_scaled_sample *sample, bool longer)
{
	for (size_t i = 0; i < sample->count; i++) {
		const struct xfp_scaled_group *group = &sample->group[i];
		float low = group->q_mean, high = last_cell(sample) - low;

		sample->key[i] = 0;
		if (group->q_sigma > 0)
			sample->key[i] = ((high > low) == longer ? high : low) / group->q_sigma;
	}
}

static void pool(const struct xfp_scaled_sample *sample, size_t first, size_t end, int64_t *cells)
{
	const int32_t mask = (1 << XFP_SCALED_COUNT_BITS) - 1, last = (int32_t)last_cell(sample);

	memset(cells, 0, CELLS * sizeof *cells);
	for (size_t i = first; i < end; i++) {
		const struct xfp_scaled_group *group = &sample->group[sample->order[i]];
		float unit;

		if (group->q_sigma == 0)
			continue;
		unit = PARTS / group->q_sigma;
		if (group->q_mean * 2 > (float)last) /* the lower tail is the longer: mirrored */
			unit = -unit;
		for (int32_t q = 0; q <= last; q++) {
			int32_t count = (group->upto[q + 1] - group->upto[q]) & mask;
			float at = ((float)q - group->q_mean) * unit;

			at = at > -CENTRE ? at : -CENTRE;
			at = at < CENTRE - 1 ? at : CENTRE - 1;
			cells[CENTRE + xfp_round_even((double)at)] += count;
		}
	}
}

/* One round on the counts: a boundary belongs to the lower entry; an empty entry stays. */
static void move_entries(unsigned entries, const int64_t *cells, double *c)
{
	int cell = 0;

	for (unsigned j = 0; j < entries; j++) {
		double edge = j + 1 < entries ? (c[j] + c[j + 1]) / 2 : CELLS, sum = 0, count = 0;

		for (; cell < CELLS && cell - CENTRE <= edge; cell++) {
			sum += (double)(cell - CENTRE) * (double)cells[cell];
			count += (double)cells[cell];
		}
		if (count > 0)
			c[j] = sum / count;
	}
}

static void fit_pool(unsigned k, const int64_t *cells, float *entry)
{
	unsigned entries = 1u << k, j = 0;
	int64_t total = 0, seen = 0;
	double c[64];

	for (int i = 0; i < CELLS; i++)
		total += cells[i];
	for (int i = 0; i < CELLS; i++) {
		seen += cells[i];
		while (j < entries && seen > (int64_t)((uint64_t)xfp_companded[k][j] * (uint64_t)total >> 32))
			c[j++] = i - CENTRE;
	}
	for (; j < entries; j++) /* no counts at all */
		c[j] = ((double)j + 0.5 - entries / 2) * 4 * PARTS / entries;
	for (int round = 0; round < 4; round++)
		move_entries(entries, cells, c);
	for (j = 0; j < entries; j++)
		entry[j] = (float)(c[j] / PARTS);
}

void xfp_scaled_seed(struct xfp_scaled_library *library, unsigned k, unsigned size, struct xfp_scaled_sample *sample)
{
	unsigned lengths = size >= 32 ? 8 : size >= 8 ? 4 : 1, others = size / lengths, e = 0;
	int64_t cells[CELLS];

	memset(library, 0, xfp_scaled_library_bytes(k, size));
	library->k = k;
	library->size = size;
	for (size_t i = 0; i < sample->count; i++)
		sample->order[i] = (uint32_t)i;
	measure_tails(sample, true);
	sort(sample->key, sample->order, sample->count);
	measure_tails(sample, false);
	for (unsigned a = 0; a < lengths; a++) {
		size_t first = sample->count * a / lengths, count = sample->count * (a + 1) / lengths - first;

		sort(sample->key, sample->order + first, count);
		for (unsigned b = 0; b < others; b++, e++) {
			pool(sample, first + count * b / others, first + count * (b + 1) / others, cells);
			fit_pool(k, cells, library->buffer + e * xfp_scaled_stride(k));
			library->moments[e].sigma = 1;
		}
	}
}
