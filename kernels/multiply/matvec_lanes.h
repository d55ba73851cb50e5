/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_lanes.h - chunks of indices and look-up tables, on the sixteen lanes that matvec_table_plain.h, _avx2.h,
 * _avx512.h or _neon.h defines. Shared by matvec_rows.h, which multiplies, and matvec_decode.h.
 */
#ifndef XFP_MATVEC_LANES_H
#define XFP_MATVEC_LANES_H

#include <string.h>

#include "kernels/common/lane_index.h"
#include "kernels/common/number.h"
#include "kernels/multiply/matvec.h"
#include "kernels/multiply/matvec_tables.h"
#include "kernels/multiply/matvec_unroll.h"

/* Move slot i of byte b of every lane to its low end. */
INLINE vi slot(unsigned k, const vi *w, unsigned i, unsigned b)
{
	unsigned s = 8 * b;

	switch (k) {
	case 2:
		return vi_right(w[0], s + 2 * i);
	case 3:
		if (i < 6)
			return vi_right(w[i / 2], s + 3 * (i % 2));
		return vi_merge(vi_right(w[i - 6], s + 6), vi_right(w[2], s + i - 2), 3);
	case 4:
		return vi_right(w[0], s + 4 * i);
	case 5:
		if (i < 5)
			return vi_right(w[i], s);
		if (i < 7)
			return vi_merge(vi_right(w[i - 5], s + 5), vi_right(w[i - 2], s + 2), 7);
		return vi_merge(vi_merge(vi_right(w[2], s + 5), vi_right(w[3], s + 4), 7), vi_right(w[4], s + 3), 15);
	default:
		if (i < 3)
			return vi_right(w[i], s);
		return vi_merge(vi_merge(vi_right(w[0], s + 6), vi_right(w[1], s + 4), 3), vi_right(w[2], s + 2), 15);
	}
}

INLINE void load_words(unsigned k, const uint8_t *packed, unsigned lanes, vi *w)
{
	UNROLL
	for (unsigned i = 0; i < xfp_lane_words(k); i++) {
		w[i] = lanes == 16 ? vi_load(packed + 64 * i) : vi_load_first(packed + (size_t)4 * lanes * i, lanes);
		m_prefetch(packed + 64 * i);
	}
}

/* Iterate over all slots of a chunk, by vector. */
#define SLOTS(k)                                                                                       \
	static __attribute__((noinline)) void slots_##k(const uint8_t *packed, unsigned lanes, vi *to) \
	{                                                                                              \
		vi w[XFP_MAX_WORDS];                                                                   \
                                                                                                       \
		load_words(k, packed, lanes, w);                                                       \
		UNROLL                                                                                 \
		for (unsigned v = 0; v < xfp_lane_columns(k); v++)                                     \
			to[v] = slot(k, w, v / 4, v % 4);                                              \
	}
SLOTS(2)
SLOTS(3)
SLOTS(4)
SLOTS(5)
SLOTS(6)

INLINE void unpack_lanes(unsigned k, const uint8_t *packed, unsigned lanes, vi *to)
{
	k == 2   ? slots_2(packed, lanes, to)
	: k == 3 ? slots_3(packed, lanes, to)
	: k == 4 ? slots_4(packed, lanes, to)
	: k == 5 ? slots_5(packed, lanes, to)
		 : slots_6(packed, lanes, to);
}

#define MAX_VECTORS 32 /* vectors per chunk, maximum */

/* The groups of a row, v2a and v2c. */
struct groups {
	const float *entry;  /* entries of the tables */
	const uint8_t *byte; /* byte of the row's first group */
	const uint8_t *pair; /* v2a: scale and midpoint of the row's first group */
	unsigned group;
};

INLINE void group_table(unsigned k, bool scaled, const struct groups *g, size_t number, struct table *table)
{
	table_of_floats(k, g->entry + ((size_t)g->byte[number] << k), table);
	if (scaled)
		table_scale(k, table, g->pair + 4 * number);
}

/* Sixteen columns of the last chunk may belong to two groups. */
INLINE vf group_lookup(unsigned k, bool scaled, const struct groups *g, size_t column, unsigned lanes, vi index)
{
	size_t one = column >> g->group, other = (column + lanes - 1) >> g->group;
	vm before; /* the lanes of the first group */
	struct table table;
	vf weight;

	group_table(k, scaled, g, one, &table);
	weight = table_lookup(k, &table, index);
	if (one == other)
		return weight;
	group_table(k, scaled, g, other, &table);
	before = vm_from_bits((1u << ((other << g->group) - column)) - 1);
	return vf_where(before, weight, table_lookup(k, &table, index));
}

INLINE size_t element_bytes(enum xfp_matvec_mode mode)
{
	return mode == XFP_MATVEC_F32 ? 4 : mode == XFP_MATVEC_FP8 ? 1 : 2;
}

#endif
