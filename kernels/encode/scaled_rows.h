/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaled_rows.h - the loops of scaled.h, on the lanes of the kernels/lanes/ header included before it. Include it after
 * codebook_rows.h, whose find_cell it uses.
 */
#include <math.h> /* sqrtf, which IEEE 754 rounds correctly */
#include <string.h>

#include "kernels/encode/scaled.h"

#define COUNT_BITS XFP_SCALED_COUNT_BITS
#define COUNT_MASK ((1 << COUNT_BITS) - 1)

/* Return the limit of q, which is also the number of prefix counts, less one for the total. */
static inline unsigned scaled_cells(bool fine)
{
	return fine ? 255 : 63;
}

static inline vi scaled_lookup(bool fine, const int32_t *upto, vi index)
{
	return fine ? vi_lookup(upto, index) : vi_lookup64(upto, index);
}

/* ---- a group's counts ---- */

/* Compute the weights minus their mean, and the range of these. */
static void centre_group(struct xfp_scaled_group *group, const float *x, const uint16_t *keep, float *centred)
{
	vf sums = vf_all(0), lows = sums, highs = sums;

	for (unsigned v = 0; v < group->vectors; v++)
		sums = vf_add(sums, vf_where(vm_from_bits(keep[v]), vf_load(x + v * XFP_LANES), vf_all(0)));
	group->share = group->count ? 1 / (float)group->count : 0;
	group->mean = group->count ? vf_total(sums) / (float)group->count : 0;
	for (unsigned v = 0; v < group->vectors; v++) {
		vf here = vf_sub(vf_load(x + v * XFP_LANES), vf_all(group->mean));

		here = vf_where(vm_from_bits(keep[v]), here, vf_all(0));
		vf_store(centred + v * XFP_LANES, here);
		highs = vf_larger(highs, here);
		lows = vf_larger(lows, vf_sub(vf_all(0), here));
	}
	group->low = -vf_largest(lows);
	group->step = (vf_largest(highs) - group->low) / (float)(scaled_cells(group->fine) - 1);
}

static void scaled_load(struct xfp_scaled_group *group, const float *x, const uint16_t *keep, float *centred)
{
	unsigned cells = scaled_cells(group->fine);
	int32_t q[XFP_SCALED_MAX_GROUP], what[XFP_SCALED_MAX_GROUP], *upto = group->upto;
	vi total = vi_all(0);
	vf squares = vf_all(0);
	float inverse, sum, variance;

	centre_group(group, x, keep, centred);
	memset(upto, 0, (cells + 1) * sizeof *upto);
	group->q_mean = group->q_sigma = 0;
	if (!(group->step > 0x1p-40f)) /* constant, or far below the smallest fp16 */
		return;
	inverse = 1 / group->step;
	for (unsigned v = 0; v < group->vectors; v++) {
		vf over = vf_mul(vf_sub(vf_load(centred + v * XFP_LANES), vf_all(group->low)), vf_all(inverse));
		vi cell = vf_round_small(over);

		over = vf_where(vm_from_bits(keep[v]), vf_from_i(cell), vf_all(0));
		squares = vf_add(squares, vf_mul(over, over));
		vi_store(q + v * XFP_LANES, vi_add(cell, vi_all(1)));
		vi_store(what + v * XFP_LANES, vi_add(vi_left(cell, COUNT_BITS), vi_all(1)));
	}
	for (unsigned v = 0; v < group->vectors; v++) {
		if (keep[v] == 0xffff)
			for (unsigned i = v * XFP_LANES; i < (v + 1) * XFP_LANES; i++)
				upto[q[i]] += what[i];
		else
			for (unsigned i = v * XFP_LANES; i < (v + 1) * XFP_LANES; i++)
				upto[q[i]] += keep[v] >> (i % XFP_LANES) & 1 ? what[i] : 0;
	}
	for (unsigned i = 0; i <= cells; i += XFP_LANES) {
		vi here = vi_add(vi_running(vi_load(upto + i)), total);

		vi_store(upto + i, here);
		total = vi_all(upto[i + XFP_LANES - 1]);
	}
	sum = (float)(upto[cells] >> COUNT_BITS);
	group->q_mean = sum / (float)group->count;
	variance = (vf_total(squares) - sum * group->q_mean) / (float)group->count;
	group->q_sigma = variance > 0 ? sqrtf(variance) : 0;
}

/* ---- the search ---- */

struct lanes_fit {
	vf s, m, gain; /* in units of q */
};

/* Compute the cells of sixteen shapes at s and m, and their least squares fit. */
LANES_BY_K struct lanes_fit try_shapes(unsigned entries, bool fine, const float *table,
				       const struct xfp_scaled_group *group, vf s, vf m)
{
	const float *last = table + 3 * (entries - 1) * XFP_LANES;
	const unsigned cells = scaled_cells(fine);
	const vf n = vf_all((float)group->count), zero = vf_all(0), most = vf_all((float)cells);
	const vf sum = vf_all((float)(group->upto[cells] >> COUNT_BITS)), inverse = vf_all(group->share);
	vf top = vf_load(last), c = vf_mul(top, n), cc = vf_mul(vf_load(last + XFP_LANES), n), qc = vf_mul(top, sum);
	vf mean, den, num;
	vm good;

	m = vf_add(m, vf_all(0.5f));
	for (; table < last; table += 3 * XFP_LANES) {
		vf at = vf_add(vf_mul(vf_load(table), s), m), rise = vf_load(table + XFP_LANES);
		vi below = scaled_lookup(fine, group->upto, vf_round_small(vf_smaller(vf_larger(at, zero), most)));
		vf count = vf_from_i(vi_and(below, vi_all(COUNT_MASK)));

		c = vf_sub(c, vf_mul(count, rise));
		cc = vf_sub(cc, vf_mul(count, vf_load(table + 2 * XFP_LANES)));
		qc = vf_sub(qc, vf_mul(vf_from_i(vi_right(below, COUNT_BITS)), rise));
	}
	mean = vf_mul(c, inverse);
	den = vf_sub(cc, vf_mul(c, mean));
	num = vf_sub(qc, vf_mul(mean, sum));
	good = vf_above(den, vf_all(1e-12f));
	s = vf_where(good, vf_div(num, vf_where(good, den, vf_all(1))), zero);
	s = vf_larger(s, zero); /* the mirror image is a separate shape */
	return (struct lanes_fit){ s, vf_sub(vf_mul(sum, inverse), vf_mul(s, mean)), vf_mul(s, num) };
}

LANES_BY_K struct lanes_fit first_try(unsigned entries, bool fine, const float *table,
				      const struct xfp_scaled_group *group)
{
	const float *last = table + 3 * (entries - 1) * XFP_LANES;
	vf s = vf_mul(vf_all(group->q_sigma), vf_load(last + 3 * XFP_LANES));
	vf m = vf_sub(vf_all(group->q_mean), vf_mul(s, vf_load(last + 2 * XFP_LANES)));

	return try_shapes(entries, fine, table, group, s, m);
}

/* Return the first lane of the largest gain. */
LANES_INLINE unsigned best_lane(const float *gain, unsigned lanes)
{
	vf most = vf_load(gain);

	for (unsigned i = XFP_LANES; i < lanes; i += XFP_LANES)
		most = vf_larger(most, vf_load(gain + i));
	most = vf_all(vf_largest(most));
	for (unsigned i = 0; i < lanes; i += XFP_LANES) {
		uint32_t bits = ~vm_bits(vf_above(most, vf_load(gain + i))) & 0xffff;

		if (bits)
			return i + (unsigned)__builtin_ctz(bits);
	}
	return 0;
}

struct group_sums {
	float c, cc, xc;
};

/* Compute exact sums of centred weights for an entry at s, m. */
LANES_BY_K struct group_sums exact_sums(unsigned entries, const float *entry, const float *edge,
					const struct xfp_scaled_group *group, float s, float m)
{
	const float over = 1 / s;
	vf c = vf_all(0), cc = c, xc = c, inverse = vf_all(over), offset = vf_all(-m * over);

	for (unsigned v = 0; v < group->vectors; v++) {
		vf x = vf_load(group->x + v * XFP_LANES);
		vi j = find_cell(entries, edge, vf_add(vf_mul(x, inverse), offset));
		vf value = vf_where(vm_from_bits(group->keep[v]), vf_lookup(entry, entries, j), vf_all(0));

		c = vf_add(c, value);
		cc = vf_add(cc, vf_mul(value, value));
		xc = vf_add(xc, vf_mul(x, value));
	}
	return (struct group_sums){ vf_total(c), vf_total(cc), vf_total(xc) };
}

/* Results of the search, by lanes: the kin of the best pilots. */
struct found {
	float gain[4 * XFP_LANES], s[4 * XFP_LANES], m[4 * XFP_LANES];
	const uint16_t *shape[4];
	unsigned lanes;
};

/* Evaluate the shapes of the largest gain on the weights themselves; the best of them wins. */
LANES_BY_K void finals(unsigned entries, const struct xfp_scaled_library *library, const struct xfp_scaled_group *group,
		       struct found *found, struct xfp_scaled_fit *fit)
{
	float most = -1;

	for (unsigned finalist = 0; finalist < library->effort.finalists; finalist++) {
		unsigned lane = best_lane(found->gain, found->lanes), shape, entry;
		float s = found->s[lane] * group->step, m = found->m[lane] * group->step + group->low, gain = 0;

		shape = found->shape[lane / XFP_LANES][lane % XFP_LANES];
		entry = shape / 2;
		found->gain[lane] = -1;
		if (shape & 1)
			s = -s;
		for (unsigned round = 0; round < library->effort.exact && s != 0; round++) {
			struct group_sums t = exact_sums(entries, xfp_scaled_entry(library, entry),
							 xfp_scaled_edge(library, entry), group, s, m);
			float mean = t.c * group->share, den = t.cc - t.c * mean;

			s = den > 0 ? t.xc / den : 0;
			m = -s * mean;
			gain = s * t.xc;
		}
		if (gain > most) {
			most = gain;
			*fit = (struct xfp_scaled_fit){ entry, s, m + group->mean };
		}
	}
}

LANES_BY_K void search_k(unsigned entries, bool fine, const struct xfp_scaled_library *library,
			 const struct xfp_scaled_group *group, struct xfp_scaled_fit *fit)
{
	float gain[XFP_SCALED_PILOTS];
	struct found found;

	*fit = (struct xfp_scaled_fit){ 0, 0, group->mean };
	if (group->q_sigma == 0)
		return;
	for (unsigned i = 0; i < library->pilots; i += XFP_LANES)
		vf_store(gain + i, first_try(entries, fine, xfp_scaled_table(library, i / XFP_LANES), group).gain);
	found.lanes = library->effort.best * XFP_LANES;
	for (unsigned i = 0; i < library->effort.best; i++) {
		unsigned lane = best_lane(gain, library->pilots);
		const float *table = xfp_scaled_table(library, XFP_SCALED_KIN_TABLES + lane);
		struct lanes_fit at = first_try(entries, fine, table, group);

		gain[lane] = -1;
		for (unsigned pass = 1; pass < library->effort.passes; pass++)
			at = try_shapes(entries, fine, table, group, at.s, at.m);
		vf_store(found.gain + i * XFP_LANES, at.gain);
		vf_store(found.s + i * XFP_LANES, at.s);
		vf_store(found.m + i * XFP_LANES, at.m);
		found.shape[i] = library->kin[lane];
	}
	finals(entries, library, group, &found, fit);
}

static void scaled_search(const struct xfp_scaled_library *library, const struct xfp_scaled_group *group,
			  struct xfp_scaled_fit *fit)
{
	switch (library->k) {
	case 2:
		search_k(4, false, library, group, fit);
		break;
	case 3:
		search_k(8, false, library, group, fit);
		break;
	case 4:
		search_k(16, false, library, group, fit);
		break;
	case 5:
		search_k(32, true, library, group, fit);
		break;
	default:
		search_k(64, true, library, group, fit);
	}
}

/* ---- training: sums of the cells of a group's fit ---- */

static void scaled_below(unsigned k, const float *edge, float s, float m, const struct xfp_scaled_group *group,
			 int32_t *below)
{
	const vf most = vf_all((float)scaled_cells(group->fine));

	for (unsigned j = 0; j < xfp_scaled_stride(k); j += XFP_LANES) {
		vf at = vf_add(vf_mul(vf_load(edge + j), vf_all(s)), vf_all(m + 0.5f));
		vi cell = vf_round_small(vf_smaller(vf_larger(at, vf_all(0)), most));

		vi_store(below + j, scaled_lookup(group->fine, group->upto, cell));
	}
}

/* ---- stored values ---- */

/* Return the largest f32 not above (a + b) / 2, a <= b: round to nearest, and step down if that is above. */
LANES_INLINE vf edge_between(vf a, vf b)
{
	vf sum = vf_add(a, b), from_b = vf_sub(sum, a), from_a = vf_sub(sum, from_b);
	vf rest = vf_add(vf_sub(a, from_a), vf_sub(b, from_b));
	vi bits = vf_bits(sum);

	/* Below zero, bits increase as numbers decrease. A rounded sum is not zero. */
	bits = vi_add_where(bits, vf_above(vf_all(0), rest),
			    vi_where(vi_above(vi_all(0), bits), vi_all(1), vi_all(-1)));
	return vf_mul(vf_from_bits(bits), vf_all(0.5f));
}

LANES_BY_K void assign_group(unsigned entries, const float *entry, float s, float m, const float *x, size_t cols,
			     uint8_t *index, float *value)
{
	const float sign = s < 0 ? -1 : 1;
	float d[64 + XFP_LANES], mirrored[64 + XFP_LANES], edge[64];

	/* Ascending in both cases: if s is negative, for mirrored weights. */
	for (unsigned j = 0; j < entries; j += XFP_LANES) {
		vf here = vf_mul_add_halves(vf_load(entry + j), vf_all(s), vf_all(m));

		vf_store(d + j, here);
		vf_store(mirrored + j, vf_mul(here, vf_all(sign)));
	}
	vf_store(mirrored + xfp_padded(entries), vf_all(0));
	for (unsigned j = 0; j < entries; j += XFP_LANES)
		vf_store(edge + j, edge_between(vf_load(mirrored + j), vf_load(mirrored + j + 1)));
	for (size_t c = 0; c < cols; c += XFP_LANES) {
		vi j = find_cell(entries, edge, vf_mul(vf_load(x + c), vf_all(sign)));

		if (index)
			vi_store_bytes(index + c, j);
		if (value)
			vf_store(value + c, vf_lookup(d, entries, j));
	}
}

static void scaled_assign(unsigned k, const float *entry, float s, float m, const float *x, size_t cols, uint8_t *index,
			  float *value)
{
	BY_BITS(k, assign_group(1u << BITS, entry, s, m, x, cols, index, value))
}

static const struct xfp_scaled_encoder scaled_encoder = {
	scaled_load,
	scaled_search,
	scaled_below,
	scaled_assign,
};
