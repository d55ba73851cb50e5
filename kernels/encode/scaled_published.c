/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/encode/scaled_published.h"

#include <string.h>

#include "kernels/encode/scaled.h"

/* Sort ascending: shell sort. */
static void sort(float *value, unsigned n)
{
	static const unsigned gaps[] = { 701, 301, 132, 57, 23, 10, 4, 1 };

	for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++)
		for (unsigned gap = gaps[i], j = gap; j < n; j++) {
			float here = value[j];
			unsigned at = j;

			for (; at >= gap && value[at - gap] > here; at -= gap)
				value[at] = value[at - gap];
			value[at] = here;
		}
}

/* Lloyd's iteration on n sorted numbers; an edge belongs to the lower cell, an empty cell keeps its entry. */
static void iterate(unsigned entries, unsigned rounds, const float *value, unsigned n, float *c)
{
	double before[XFP_SCALED_MAX_GROUP + 1];

	before[0] = 0;
	for (unsigned i = 0; i < n; i++)
		before[i + 1] = before[i] + (double)value[i];
	for (unsigned j = 0; j < entries; j++)
		c[j] = value[0] + (value[n - 1] - value[0]) * ((float)j / (float)(entries - 1));
	for (unsigned round = 0; round < rounds; round++) {
		unsigned from = 0, to = 0;
		float next[64] = { 0 };

		for (unsigned j = 0; j < entries; j++, from = to) {
			double edge = j + 1 < entries ? ((double)c[j] + (double)c[j + 1]) / 2 : 0;

			while (to < n && (j + 1 == entries || (double)value[to] <= edge))
				to++;
			next[j] = to > from ? (float)((before[to] - before[from]) / (to - from)) : c[j];
		}
		if (!memcmp(c, next, entries * sizeof *c))
			break;
		memcpy(c, next, entries * sizeof *c);
	}
}

static void fit_group(unsigned k, unsigned rounds, float *value, unsigned n, float *codebook, uint16_t *scale,
		      uint16_t *midpoint)
{
	unsigned entries = 1u << k;
	float c[64], s, m, span;

	*scale = *midpoint = 0;
	memset(codebook, 0, entries * sizeof *codebook);
	if (!n)
		return;
	sort(value, n);
	iterate(entries, rounds, value, n, c);
	m = (c[0] + c[entries - 1]) / 2;
	s = (c[entries - 1] - c[0]) / 2;
	span = s > 1e-12f ? s : 1e-12f;
	for (unsigned j = 0; j < entries; j++)
		codebook[j] = (c[j] - m) / span;
	*scale = xfp_scaled_half((double)s);
	*midpoint = xfp_scaled_half((double)m);
}

void xfp_scaled_published_row(unsigned k, unsigned rounds, const float *x, size_t cols, unsigned length,
			      const uint32_t *marked, size_t marks, float *codebook, uint16_t *scale,
			      uint16_t *midpoint)
{
	size_t seen = 0;

	for (size_t first = 0, g = 0; first < cols; first += length, g++) {
		size_t end = cols - first < length ? cols : first + length;
		float value[XFP_SCALED_MAX_GROUP];
		unsigned n = 0;

		for (size_t c = first; c < end; c++) {
			if (seen < marks && marked[seen] == c)
				seen++;
			else
				value[n++] = x[c];
		}
		fit_group(k, rounds, value, n, codebook + (g << k), &scale[g], &midpoint[g]);
	}
}

static float distance_of(unsigned entries, const float *a, const float *b)
{
	float sum = 0;

	for (unsigned j = 0; j < entries; j++)
		sum += (a[j] - b[j]) * (a[j] - b[j]);
	return sum;
}

static unsigned nearest(unsigned entries, unsigned size, const float *library, const float *codebook)
{
	unsigned best = 0;
	float least = distance_of(entries, codebook, library);

	for (unsigned e = 1; e < size; e++) {
		float here = distance_of(entries, codebook, library + e * entries);

		if (here < least) {
			least = here;
			best = e;
		}
	}
	return best;
}

void xfp_scaled_published_choose(unsigned k, unsigned size, const float *library, const float *codebook, size_t count,
				 uint8_t *entry)
{
	for (size_t i = 0; i < count; i++)
		entry[i] = (uint8_t)nearest(1u << k, size, library, codebook + (i << k));
}

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Choose centres. The first is codebook draw mod count; each later one is the first codebook at which the prefix sum of
 * squared distances exceeds draw / 2^64 of the total. */
static void choose_centres(unsigned entries, unsigned size, const float *codebook, size_t count, double *distance,
			   float *library)
{
	uint64_t state = 0;
	size_t pick = draw(&state) % count;

	for (unsigned e = 0; e < size; e++) {
		double total = 0, part = 0, until;

		memcpy(library + e * entries, codebook + pick * entries, entries * sizeof *library);
		for (size_t i = 0; i < count; i++) {
			double here = (double)distance_of(entries, codebook + i * entries, library + e * entries);

			distance[i] = e && distance[i] < here ? distance[i] : here;
			total += distance[i];
		}
		until = (double)(draw(&state) >> 11) * 0x1p-53 * total;
		for (pick = 0; pick + 1 < count && (part += distance[pick]) <= until;)
			pick++;
	}
}

static void move_centres(unsigned entries, unsigned size, const float *codebook, size_t count, double *sums,
			 float *library)
{
	unsigned stride = entries + 1;

	memset(sums, 0, (size_t)size * stride * sizeof *sums);
	for (size_t i = 0; i < count; i++) {
		double *sum = sums + nearest(entries, size, library, codebook + i * entries) * stride;

		for (unsigned j = 0; j < entries; j++)
			sum[j] += (double)codebook[i * entries + j];
		sum[entries]++;
	}
	for (unsigned e = 0; e < size; e++, sums += stride)
		for (unsigned j = 0; j < entries && sums[entries] > 0; j++)
			library[e * entries + j] = (float)(sums[j] / sums[entries]);
}

void xfp_scaled_published_library(unsigned k, unsigned size, unsigned rounds, const float *codebook, size_t count,
				  double *buffer, float *library, uint16_t *entries)
{
	memset(library, 0, ((size_t)size << k) * sizeof *library);
	if (count <= size) { /* the codebooks are the library */
		memcpy(library, codebook, (count << k) * sizeof *library);
		rounds = 0;
	} else {
		choose_centres(1u << k, size, codebook, count, buffer, library);
	}
	for (unsigned round = 0; round < rounds; round++)
		move_centres(1u << k, size, codebook, count, buffer + count, library);
	for (size_t i = 0; i < (size_t)size << k; i++)
		entries[i] = xfp_scaled_half((double)library[i]);
}
