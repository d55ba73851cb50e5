/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_table_plain.h - tables of 2^k entries that the indices of sixteen lanes are looked up in, and stored numbers,
 * for any machine. matvec_table_avx2.h, matvec_table_avx512.h and matvec_table_neon.h define the same names;
 * matvec_rows.h is written on top of one of them.
 */
#ifndef XFP_MATVEC_TABLE_PLAIN_H
#define XFP_MATVEC_TABLE_PLAIN_H

#include <stddef.h>
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/lanes/plain.h"
#include "kernels/multiply/matvec.h"

#define PANEL_WIDTH 1
#define PANEL_ROWS(width) 2

struct table {
	float entry[64];
};

/* Prefetch the data read soon after `at`. */
#define m_prefetch(at) ((void)(at))

/* Look up by the low k bits. */
LANES_INLINE vf table_lookup(unsigned k, const struct table *t, vi index)
{
	vf a;

	EACH LANE(a, i) = t->entry[(uint32_t)LANE(index, i) & ((1u << k) - 1)];
	return a;
}

/* Load a table of 2^k entries: fp16 at any address, or f32 aligned to their size. */
LANES_INLINE void table_of_halves(unsigned k, const uint8_t *from, struct table *t)
{
	xfp_to_float(2, from, (size_t)1 << k, t->entry); /* F16 of base/dtype.h */
}

LANES_INLINE void table_of_floats(unsigned k, const float *from, struct table *t)
{
	memcpy(t->entry, from, sizeof(float) << k);
}

/* Multiply a table by an fp16 scale, and add the fp16 midpoint after it. */
LANES_INLINE void table_scale(unsigned k, struct table *t, const uint8_t *pair)
{
	float numbers[2];

	xfp_to_float(2, pair, 2, numbers);
	for (unsigned i = 0; i < 1u << k; i++)
		t->entry[i] = t->entry[i] * numbers[0] + numbers[1];
}

/* Load sixteen stored numbers; fp8 as 1/256 of its value. */
LANES_INLINE vf stored_numbers(enum xfp_matvec_mode mode, const uint8_t *from)
{
	float numbers[XFP_LANES];

	if (mode == XFP_MATVEC_FP8)
		EACH numbers[i] = xfp_e4m3_to_float(from[i]) * 0x1p-8f;
	else
		xfp_to_float(mode == XFP_MATVEC_F32 ? 1 : mode == XFP_MATVEC_F16 ? 2 : 3, from, XFP_LANES, numbers);
	return vf_load(numbers);
}

#endif
