/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for the assignment, and the training rounds for library and ratios. */
#include "kernels/encode/compact.h"

#include <math.h> /* fabsf */
#include <string.h>

#include "kernels/common/number.h"

/* The scales tried with an entry, relative to the largest |y| over the entry's outermost number: each is `step` times
 * the previous one. With the maximum number of entries there are XFP_COMPACT_PAIRS of them. */
static const struct search {
	unsigned steps;
	float low, step;
} searches[7] = {
	[2] = { 4, 0.65f, 1.17f }, [3] = { 4, 0.80f, 1.10f },  [4] = { 4, 0.92f, 1.055f },
	[5] = { 8, 0.97f, 1.03f }, [6] = { 16, 0.96f, 1.02f },
};

static void make_table(struct xfp_compact_book *book, unsigned pair, unsigned e, float delta, float largest)
{
	const struct xfp_compact_library *l = &book->library;
	const float scale = delta / largest, inverse = largest / delta;
	/* 255 represents 4 * 4^-k of the largest |y|, squared. */
	const float unit = scale * scale * (63.75f * (float)(1 << 2 * l->k));
	const unsigned n = 1u << l->k, high = pair / 32 * 8, shift = xfp_compact_shift(l->k);
	unsigned q = 0;

	book->target[pair] = scale;
	book->order[pair] = (int32_t)pair;
	for (unsigned u = 1; u < (unsigned)XFP_COMPACT_CODES >> shift; u++) {
		/* The middle of the codes that share this table row. */
		float code = ((float)u + 0.5f) * (float)(1 << shift) - 0.5f - XFP_COMPACT_ZERO;
		float y = code * (1.0f / XFP_COMPACT_STEPS) * inverse, d;

		while (q + 1 < n && y > book->edge[e][q])
			q++;
		d = y - l->entry[e][q];
		d = d * d * unit;
		book->table[u][pair % 32] |= (uint16_t)((d < 255 ? (unsigned)(d + 0.5f) : 255) << high);
	}
}

void xfp_compact_prepare(struct xfp_compact_book *book)
{
	const struct xfp_compact_library *l = &book->library;
	const struct search *search = &searches[l->k];
	const unsigned n = 1u << l->k;
	for (unsigned r = 0; r < XFP_COMPACT_RATIOS; r++) {
		book->inverse[r] = r < l->ratios && l->ratio[r] > 0 ? 1 / l->ratio[r] : 0;
		book->ratio_edge[r] = r + 1 < l->ratios ? 0.5f * (l->ratio[r] + l->ratio[r + 1]) : 0;
	}
	memset(book->table, 0, sizeof book->table);
	for (unsigned pair = 0; pair < XFP_COMPACT_PAIRS; pair++) {
		book->target[pair] = 0;
		book->order[pair] = INT32_MAX;
	}
	for (unsigned e = 0; e < l->entries; e++) {
		const float *c = l->entry[e];
		float largest = fabsf(c[0]) > fabsf(c[n - 1]) ? fabsf(c[0]) : fabsf(c[n - 1]), delta = search->low;

		if (!(largest > 0))
			largest = 1;
		for (unsigned q = 0; q < 64; q++)
			book->edge[e][q] = q + 1 < n ? 0.5f * (c[q] + c[q + 1]) : 0;
		for (unsigned j = 0; j < search->steps; j++, delta *= search->step)
			make_table(book, j * l->entries + e, e, delta, largest);
	}
}

void xfp_compact_train(const struct xfp_compact_book *book, const struct xfp_compact_groups *groups, size_t count,
		       const float *weight, const uint8_t *byte, const uint8_t *index, struct xfp_compact_sums *sums)
{
	const struct xfp_compact_library *l = &book->library;
	const unsigned size = groups->group;

	for (size_t g = 0; g < count; g++) {
		const unsigned e = byte[g] >> l->ratio_bits, r = byte[g] & (l->ratios - 1);
		const double s = l->ratio[r], w = weight[g], ws = w * s, wss = w * s * s;
		const float *y = groups->y + g * size;
		const uint8_t *code = groups->code + g * size;
		double yc = 0, cc = 0;
		unsigned unmarked = 0;

		if (!r)
			continue;
		for (unsigned c = 0; c < size; c++) {
			const unsigned q = index[g * size + c];
			const double entry = l->entry[e][q];

			if (!code[c])
				continue;
			unmarked++;
			sums->above[e][q] += ws * y[c];
			sums->below[e][q] += wss;
			yc += y[c] * entry;
			cc += entry * entry;
		}
		sums->ratio_above[r] += w * yc;
		sums->ratio_below[r] += w * cc;
		sums->values[e] += unmarked;
		sums->groups++;
	}
}

/* Weighted means in which the old value counts as a few more values, or groups, of mean weight. So entries that few
 * values are assigned to move little. */
#define FEW 4

static void update_entry(float *entry, const double *above, const double *below, double values, unsigned n)
{
	double all = 0, few;

	for (unsigned q = 0; q < n; q++)
		all += below[q];
	if (!(all > 0))
		return;
	few = all / values * FEW;
	for (unsigned q = 0; q < n; q++)
		entry[q] = (float)((above[q] + few * entry[q]) / (below[q] + few));
	/* Means of neighbouring cells are in order, except for rounding. */
	for (unsigned q = 1; q < n; q++)
		entry[q] = entry[q] < entry[q - 1] ? entry[q - 1] : entry[q];
}

void xfp_compact_update(struct xfp_compact_book *book, const struct xfp_compact_sums *sums, bool library)
{
	struct xfp_compact_library *l = &book->library;
	double few = 0;

	for (unsigned e = 0; library && e < l->entries; e++)
		update_entry(l->entry[e], sums->above[e], sums->below[e], sums->values[e], 1u << l->k);
	for (unsigned r = 1; r < l->ratios; r++)
		few += sums->ratio_below[r];
	if (!(few > 0))
		return;
	few = few / sums->groups * FEW;
	for (unsigned r = 1; r < l->ratios; r++) {
		double above = sums->ratio_above[r] + few * l->ratio[r], below = sums->ratio_below[r] + few;
		float ratio = (float)(above / below);
		unsigned at = r;

		for (; at > 1 && l->ratio[at - 1] > ratio; at--)
			l->ratio[at] = l->ratio[at - 1];
		l->ratio[at] = ratio;
	}
}

/* Round to fp16, store it, and return its value; larger values saturate. */
static float rounded(float value, uint16_t *half)
{
	const float most = 65504;

	*half = xfp_float_to_half(value < -most ? -most : value > most ? most : value);
	return xfp_half_to_float(*half);
}

void xfp_compact_finish(struct xfp_compact_book *book, uint16_t *code)
{
	struct xfp_compact_library *l = &book->library;

	for (unsigned e = 0; e < l->entries; e++)
		for (unsigned q = 0; q < 1u << l->k; q++)
			l->entry[e][q] = rounded(l->entry[e][q], code++);
	for (unsigned r = 0; r < l->ratios; r++)
		l->ratio[r] = rounded(l->ratio[r], code++);
}
