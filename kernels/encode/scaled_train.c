/* SPDX-License-Identifier: Apache-2.0 */
/* The library of scaled.h: preparation for the search, and training. */
#include <math.h> /* sqrtf, which IEEE 754 rounds correctly */
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/encode/scaled.h"

#define SHAPES (2 * XFP_SCALED_MAX_LIBRARY)

size_t xfp_scaled_library_bytes(unsigned k, unsigned size)
{
	size_t tables = XFP_SCALED_KIN_TABLES + XFP_SCALED_PILOTS;
	size_t numbers = 2 * size * xfp_scaled_stride(k) + tables * xfp_scaled_table_size(k);

	return (sizeof(struct xfp_scaled_library) + numbers * sizeof(float) + 63) / 64 * 64;
}

static float *entry_of(struct xfp_scaled_library *library, unsigned e)
{
	return library->buffer + e * xfp_scaled_stride(library->k);
}

static float *table_of(struct xfp_scaled_library *library, unsigned number)
{
	return library->buffer + 2 * library->size * xfp_scaled_stride(library->k) +
	       number * xfp_scaled_table_size(library->k);
}

/* ---- preparation ---- */

static float mirrored(const struct xfp_scaled_library *library, unsigned shape, unsigned j)
{
	const float *entry = xfp_scaled_entry(library, shape / 2);

	return shape & 1 ? -entry[(1u << library->k) - 1 - j] : entry[j];
}

/* Return 1 / the length of an entry minus its mean. */
static float inverse_length(const struct xfp_scaled_library *library, unsigned e)
{
	const float *entry = xfp_scaled_entry(library, e);
	unsigned entries = 1u << library->k;
	float mean = 0, square = 0;

	for (unsigned j = 0; j < entries; j++)
		mean += entry[j];
	mean /= (float)entries;
	for (unsigned j = 0; j < entries; j++)
		square += (entry[j] - mean) * (entry[j] - mean);
	return square > 0 ? 1 / sqrtf(square) : 0;
}

/* Compute the correlation of a shape with all shapes. */
static void compare_shapes(const struct xfp_scaled_library *library, const float *inverse, unsigned shape, float *like)
{
	unsigned entries = 1u << library->k;
	float normal[64], mean = 0;

	for (unsigned j = 0; j < entries; j++)
		mean += normal[j] = mirrored(library, shape, j);
	mean /= (float)entries;
	for (unsigned j = 0; j < entries; j++)
		normal[j] = (normal[j] - mean) * inverse[shape / 2];
	for (unsigned e = 0; e < library->size; e++) {
		const float *entry = xfp_scaled_entry(library, e);
		float same = 0, mirror = 0;

		for (unsigned j = 0; j < entries; j++) {
			same += normal[j] * entry[j];
			mirror -= normal[entries - 1 - j] * entry[j];
		}
		like[2 * e] = same * inverse[e];
		like[2 * e + 1] = mirror * inverse[e];
	}
}

static void fill_table(struct xfp_scaled_library *library, unsigned number, const uint16_t *shape)
{
	unsigned entries = 1u << library->k;
	float *table = table_of(library, number);

	for (unsigned i = 0; i < XFP_LANES; i++) {
		float *lane = table + i, last = mirrored(library, shape[i], entries - 1);
		float mean = library->moments[shape[i] / 2].mean;

		for (unsigned j = 0; j + 1 < entries; j++, lane += 3 * XFP_LANES) {
			float a = mirrored(library, shape[i], j), b = mirrored(library, shape[i], j + 1);

			lane[0] = (a + b) * 0.5f;
			lane[XFP_LANES] = b - a;
			lane[2 * XFP_LANES] = b * b - a * a;
		}
		lane[0] = last;
		lane[XFP_LANES] = last * last;
		lane[2 * XFP_LANES] = shape[i] & 1 ? -mean : mean;
		lane[3 * XFP_LANES] = 1 / library->moments[shape[i] / 2].sigma;
	}
}

/* Find the most similar shapes, starting with the shape itself. A library of fewer shapes repeats them. Overwrites
 * `like`. */
static void find_kin(struct xfp_scaled_library *library, unsigned lane, float *like)
{
	unsigned shapes = 2 * library->size;

	like[library->pilot[lane]] = 3;
	for (unsigned i = 0; i < XFP_SCALED_KIN; i++) {
		unsigned pick = 0;

		for (unsigned b = 1; b < shapes; b++)
			if (like[b] > like[pick])
				pick = b;
		like[pick] = -4;
		library->kin[lane][i] = i < shapes ? (uint16_t)pick : library->kin[lane][i - shapes];
	}
}

static void prepare(struct xfp_scaled_library *library, const struct xfp_scaled_effort *effort)
{
	unsigned shapes = 2 * library->size, entries = 1u << library->k, pilots;
	float like[SHAPES], nearest[SHAPES], inverse[XFP_SCALED_MAX_LIBRARY];

	library->effort = *effort;
	for (unsigned e = 0; e < library->size; e++) {
		float *entry = entry_of(library, e), *edge = entry_of(library, library->size + e);

		memset(edge, 0, xfp_scaled_stride(library->k) * sizeof *edge);
		for (unsigned j = 0; j + 1 < entries; j++)
			edge[j] = (entry[j] + entry[j + 1]) * 0.5f;
		inverse[e] = inverse_length(library, e);
	}
	/* Pilots: each is the least similar to those before it. */
	pilots = effort->pilots < shapes ? effort->pilots : shapes;
	library->pilots = (unsigned)xfp_padded(pilots);
	for (unsigned a = 0; a < shapes; a++)
		nearest[a] = -2;
	for (unsigned i = 0; i < library->pilots; i++) {
		unsigned pick = 0;

		for (unsigned a = 1; a < shapes; a++)
			if (nearest[a] < nearest[pick])
				pick = a;
		if (i >= shapes)
			pick = library->pilot[i - shapes];
		library->pilot[i] = (uint16_t)pick;
		compare_shapes(library, inverse, pick, like);
		for (unsigned a = 0; a < shapes; a++)
			nearest[a] = like[a] > nearest[a] ? like[a] : nearest[a];
		nearest[pick] = 2;
		find_kin(library, i, like);
		fill_table(library, XFP_SCALED_KIN_TABLES + i, library->kin[i]);
	}
	for (unsigned i = 0; i < library->pilots; i += XFP_LANES)
		fill_table(library, i / XFP_LANES, library->pilot + i);
}

/* ---- training ---- */

/* Add the sums of a group's fit to its entry. */
static void add_group(const struct xfp_scaled_library *library, const struct xfp_scaled_group *group,
		      const struct xfp_scaled_fit *fit, struct xfp_scaled_training *sums)
{
	const unsigned entries = 1u << library->k, cells = group->fine ? 255 : 63, e = fit->entry;
	const float *entry = xfp_scaled_entry(library, e), s = fit->scale / group->step,
		    m = (fit->midpoint - group->mean - group->low) / group->step;
	const double square = (double)fit->scale * fit->scale, back = 1 / (double)s;
	double first = 0, second = 0;
	int32_t below[64], before = s < 0 ? group->upto[cells] : 0;

	xfp_encoder()->scaled->below(library->k, xfp_scaled_edge(library, e), s, m, group, below);
	/* If s is negative the edges descend, and the part below an edge belongs to the entries after it. */
	below[entries - 1] = s < 0 ? 0 : group->upto[cells];
	for (unsigned j = 0; j < entries; j++) {
		int32_t part = s < 0 ? before - below[j] : below[j] - before;
		double n = (double)(part & ((1 << XFP_SCALED_COUNT_BITS) - 1)), c = (double)entry[j];

		sums->sum[e][j] += square * ((double)(part >> XFP_SCALED_COUNT_BITS) - (double)m * n) * back;
		sums->weight[e][j] += square * n;
		first += c * n;
		second += c * c * n;
		before = below[j];
	}
	sums->first[e] += first;
	sums->second[e] += second;
	sums->count[e] += (double)group->count;
	sums->worth[e] += square * (double)group->count;
}

/* Recompute an entry and its moments from the sums of its groups. */
static void move_entry(struct xfp_scaled_library *library, unsigned e, const struct xfp_scaled_training *sums)
{
	double n = sums->count[e], mean, variance;

	if (n == 0)
		return;
	for (unsigned j = 0; j < 1u << library->k; j++)
		if (sums->weight[e][j] > 0)
			entry_of(library, e)[j] = (float)(sums->sum[e][j] / sums->weight[e][j]);
	mean = sums->first[e] / n;
	variance = sums->second[e] / n - mean * mean;
	library->moments[e].mean = (float)mean;
	library->moments[e].sigma = variance > 0 ? (float)sqrt(variance) : 1;
}

/* Replace unused entries by copies of the entries with the largest sums, with their outer numbers moved outwards. */
static void split_unused(struct xfp_scaled_library *library, struct xfp_scaled_training *sums)
{
	unsigned last = (1u << library->k) - 1;

	for (unsigned e = 0; e < library->size; e++) {
		unsigned from = 0;
		float *entry = entry_of(library, e), out;

		if (sums->worth[e] > 0)
			continue;
		for (unsigned b = 1; b < library->size; b++)
			if (sums->worth[b] > sums->worth[from])
				from = b;
		if (!(sums->worth[from] > 0))
			return;
		sums->worth[from] /= 2;
		memcpy(entry, entry_of(library, from), (last + 1) * sizeof *entry);
		out = (entry[last] - entry[0]) / 32;
		library->moments[e] = library->moments[from];
		entry[0] -= out;
		entry[last] += out;
	}
}

static void train_round(struct xfp_scaled_library *library, const struct xfp_scaled_sample *sample,
			struct xfp_scaled_training *sums)
{
	memset(sums, 0, sizeof *sums);
	for (size_t i = 0; i < sample->count; i++) {
		struct xfp_scaled_fit fit;

		xfp_encoder()->scaled->search(library, &sample->group[i], &fit);
		if (fit.scale != 0)
			add_group(library, &sample->group[i], &fit, sums);
	}
	for (unsigned e = 0; e < library->size; e++)
		move_entry(library, e, sums);
	split_unused(library, sums);
}

static const struct xfp_scaled_effort training = { 16, 1, 2, 0, 1 };

/* Return the effort by k; more shapes need more pilots. */
static struct xfp_scaled_effort effort_of(unsigned k, unsigned size)
{
	struct xfp_scaled_effort effort = { k == 2 ? 32 : 16, 1, k < 4 ? 3 : 2, 1, 2 };

	for (; size > 32 && effort.pilots < XFP_SCALED_PILOTS; size /= 2)
		effort.pilots *= 2;
	return effort;
}

void xfp_scaled_train(struct xfp_scaled_library *library, unsigned k, unsigned size, struct xfp_scaled_sample *sample,
		      unsigned rounds, struct xfp_scaled_training *sums, uint16_t *entries,
		      struct xfp_scaled_moments *moments)
{
	struct xfp_scaled_effort effort = training;

	effort.pilots = size > 32 ? effort_of(k, size).pilots : effort.pilots;
	xfp_scaled_seed(library, k, size, sample);
	for (unsigned round = 0; round < rounds; round++) {
		prepare(library, &effort);
		train_round(library, sample, sums);
	}
	for (unsigned e = 0; e < size; e++)
		for (unsigned j = 0; j < 1u << k; j++)
			entries[(e << k) + j] = xfp_scaled_half((double)entry_of(library, e)[j]);
	memcpy(moments, library->moments, size * sizeof *moments);
	xfp_scaled_open(library, k, size, entries, moments);
}

void xfp_scaled_open(struct xfp_scaled_library *library, unsigned k, unsigned size, const uint16_t *entries,
		     const struct xfp_scaled_moments *moments)
{
	struct xfp_scaled_effort effort = effort_of(k, size);

	memset(library, 0, xfp_scaled_library_bytes(k, size));
	library->k = k;
	library->size = size;
	for (unsigned e = 0; e < size; e++)
		library->moments[e] = moments ? moments[e] : (struct xfp_scaled_moments){ 0, 1 };
	for (unsigned e = 0; e < size; e++)
		for (unsigned j = 0; j < 1u << k; j++)
			entry_of(library, e)[j] = xfp_half_to_float(entries[(e << k) + j]);
	prepare(library, &effort);
}
