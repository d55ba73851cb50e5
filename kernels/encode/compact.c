/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and groups, and the initial state of a fit. */
#include "kernels/encode/compact.h"

#include <math.h> /* fabsf */
#include <string.h>

#include "kernels/common/decode.h"
#include "kernels/common/scale.h"
#include "kernels/encode/compact_seed.h"

#define PEAK_BASE ((127 - 16) << 4) /* the first cell is that of 2^-16 */

float xfp_compact_row(uint8_t d)
{
	return 0x1p14f * xfp_balance_down(d);
}

float xfp_compact_value(const struct xfp_compact_book *book, uint8_t byte, uint8_t index, uint8_t d)
{
	const struct xfp_compact_library *l = &book->library;

	return l->entry[byte >> l->ratio_bits][index] * l->ratio[byte & (l->ratios - 1)] * xfp_compact_row(d);
}

uint8_t xfp_compact_row_byte(double mean_square)
{
	uint64_t bits;
	double mantissa;
	int quarters;

	memcpy(&bits, &mean_square, sizeof bits);
	quarters = 2 * ((int)(bits >> 52 & 2047) - 1023);
	bits = (bits & 0xfffffffffffff) | 0x3ff0000000000000;
	memcpy(&mantissa, &bits, sizeof mantissa);
	/* A quarter octave of the rms is half an octave of its square: 2^(1/4) and 2^(3/4) are halfway. */
	quarters += (mantissa >= 0x1.306fe0a31b715p0) + (mantissa >= 0x1.ae89f995ad3adp0);
	quarters = 56 - quarters;
	return (uint8_t)(quarters < 0 ? 0 : quarters > 255 ? 255 : quarters);
}

void xfp_compact_copy(struct xfp_compact_groups *to, size_t at, const struct xfp_compact_groups *from, size_t group)
{
	const size_t size = to->group, words = size / 16;

	memcpy(to->y + at * size, from->y + group * size, size * sizeof *to->y);
	memcpy(to->mark + at * words, from->mark + group * words, words * sizeof *to->mark);
	memcpy(to->code + at * size, from->code + group * size, size);
	to->largest[at] = from->largest[group];
	to->square[at] = from->square[group];
}

void xfp_compact_count(const struct xfp_compact_groups *groups, size_t first, size_t count,
		       uint64_t peaks[XFP_COMPACT_PEAKS])
{
	for (size_t i = 0; i < count; i++) {
		uint32_t bits;
		int32_t cell;

		if (!(groups->largest[first + i] > 0))
			continue;
		memcpy(&bits, &groups->largest[first + i], sizeof bits);
		cell = (int32_t)(bits >> 19) - PEAK_BASE;
		peaks[cell < 0 ? 0 : cell >= XFP_COMPACT_PEAKS ? XFP_COMPACT_PEAKS - 1 : cell]++;
	}
}

static double peak_value(unsigned cell)
{
	uint32_t bits = ((cell + PEAK_BASE) << 19) + (1 << 18);
	float value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

/* Newton's method from above, which never falls below the root; a > 0. */
static double cube_root(double a)
{
	double root = a > 1 ? a : 1;

	for (int i = 0; i < 200; i++) {
		double next = (2 * root + a / (root * root)) / 3;

		if (!(next < root))
			break;
		root = next;
	}
	return root;
}

/* Compute initial levels for the counted values: divide the cube root of their density evenly, then run Lloyd's
 * iteration. */
static void seed_levels(const uint64_t peaks[XFP_COMPACT_PEAKS], float *level, unsigned count)
{
	double value[XFP_COMPACT_PEAKS], density[XFP_COMPACT_PEAKS], total = 0, run = 0;
	unsigned j = 0;

	for (unsigned i = 0; i < XFP_COMPACT_PEAKS; i++) {
		double width;

		value[i] = peak_value(i);
		width = value[i] / 16;
		density[i] = peaks[i] ? cube_root((double)peaks[i] / width) * width : 0;
		total += density[i];
	}
	for (unsigned i = 0; i < XFP_COMPACT_PEAKS; i++) {
		run += density[i];
		while (j < count && run > total * (j + 0.5) / count)
			level[j++] = (float)value[i];
	}
	for (; j < count; j++)
		level[j] = j ? level[j - 1] : 1;
	for (int round = 0; round < 20; round++) {
		unsigned i = 0;

		for (j = 0; j < count; j++) {
			double sum = 0, n = 0, upto;

			upto = j + 1 < count ? 0.5 * ((double)level[j] + level[j + 1]) : value[XFP_COMPACT_PEAKS - 1];
			for (; i < XFP_COMPACT_PEAKS && value[i] <= upto; i++) {
				sum += (double)peaks[i] * value[i];
				n += (double)peaks[i];
			}
			if (n > 0)
				level[j] = (float)(sum / n);
		}
	}
}

unsigned xfp_compact_entries(unsigned k)
{
	return k <= 4 ? 16 : k == 5 ? 8 : 4;
}

/* Initialize an empty library of this shape. */
static void begin(struct xfp_compact_library *l, unsigned k, unsigned group, unsigned entries)
{
	memset(l, 0, sizeof *l);
	l->k = k;
	l->group = group;
	l->entries = entries;
	l->ratios = 256 / entries;
	while (1u << l->ratio_bits < l->ratios)
		l->ratio_bits++;
}

void xfp_compact_open(struct xfp_compact_book *book, unsigned k, unsigned group, unsigned entries, const uint16_t *code)
{
	struct xfp_compact_library *l = &book->library;

	begin(l, k, group, entries);
	for (unsigned e = 0; e < entries; e++, code += 1u << k)
		xfp_decode_halves(code, 1u << k, l->entry[e]);
	xfp_decode_halves(code, l->ratios, l->ratio);
	xfp_compact_prepare(book);
}

void xfp_compact_start(struct xfp_compact_book *book, unsigned k, unsigned group, unsigned entries,
		       const float *library, const uint64_t peaks[XFP_COMPACT_PEAKS])
{
	struct xfp_compact_library *l = &book->library;
	/* The outermost number of a scaled entry, relative to the group's largest |y|. */
	static const float usual[] = { [2] = 0.832f, [3] = 0.927f, [4] = 0.970f, [5] = 0.976f, [6] = 0.994f };
	const unsigned n = 1u << k;
	float mean = 0;

	begin(l, k, group, entries);
	for (unsigned e = 0; e < entries; e++) {
		float largest = 0;

		for (unsigned q = 0; q < n; q++) {
			float value = library[e * n + q];

			l->entry[e][q] = value;
			largest = fabsf(value) > largest ? fabsf(value) : largest;
		}
		mean += 1 / largest;
	}
	mean = mean / (float)entries * usual[k];
	seed_levels(peaks, l->ratio + 1, l->ratios - 1);
	for (unsigned r = 1; r < l->ratios; r++)
		l->ratio[r] *= mean;
}

void xfp_compact_seed(struct xfp_compact_book *book, unsigned k, unsigned group, unsigned entries,
		      const uint64_t peaks[XFP_COMPACT_PEAKS])
{
	static const int16_t *const seeds[] = { *seed_2, *seed_3, *seed_4, *seed_5, *seed_6 };
	const unsigned n = 1u << k, apart = xfp_compact_entries(k) / entries;
	float library[XFP_COMPACT_ENTRIES * 64];

	/* Entries come in mirrored pairs; use every `apart`th pair. */
	for (unsigned e = 0; e < entries; e++) {
		const int16_t *seed = seeds[k - 2] + ((e / 2 * apart + apart / 2) * 2 + e % 2) * n;

		for (unsigned q = 0; q < n; q++)
			library[e * n + q] = seed[q];
	}
	xfp_compact_start(book, k, group, entries, library, peaks);
}
