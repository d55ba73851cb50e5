/* SPDX-License-Identifier: Apache-2.0 */
/*
 * neon_lookup.h - sixteen look-ups at once in tables of 32-bit entries with NEON, for lanes_neon.h and
 * matvec_lanes_neon.h.
 *
 * NEON looks up bytes. Tables of four or eight entries are in one or two registers as they are, and an index becomes
 * the numbers of its entry's four bytes. Larger ones are in four planes, the first bytes of all entries, then the
 * second and so on: sixteen indices look up sixteen bytes in each, which are put together afterwards.
 */
#ifndef XFP_NEON_LOOKUP_H
#define XFP_NEON_LOOKUP_H

#include <arm_neon.h>
#include <stdint.h>

#define ALWAYS static inline __attribute__((always_inline))

/* Sixteen lanes of whatever has 32 bits. */
struct words {
	uint32x4_t a, b, c, d; /* lanes 0-3, 4-7, 8-11, 12-15 */
};

struct few {
	uint8x16x2_t part;
};

struct planes {
	uint8x16x4_t part[4]; /* of sixteen entries each */
};

ALWAYS struct few load_few(unsigned size, const void *table)
{
	struct few t;

	t.part.val[0] = vld1q_u8(table);
	t.part.val[1] = size == 4 ? t.part.val[0] : vld1q_u8((const uint8_t *)table + 16);
	return t;
}

/* 16, 32 or 64. */
ALWAYS struct planes load_planes(unsigned size, const void *table)
{
	struct planes t;

	t.part[0] = vld4q_u8(table);
	for (unsigned i = 1; i < size / 16; i++)
		t.part[i] = vld4q_u8((const uint8_t *)table + 64 * i);
	return t;
}

ALWAYS uint32x4_t look_up_four(unsigned size, const struct few *t, uint32x4_t index)
{
	uint8x16_t at = vreinterpretq_u8_u32(vmlaq_u32(vdupq_n_u32(0x03020100), index, vdupq_n_u32(0x04040404)));

	return vreinterpretq_u32_u8(size == 4 ? vqtbl1q_u8(t->part.val[0], at) : vqtbl2q_u8(t->part, at));
}

ALWAYS struct words look_up_few(unsigned size, const struct few *t, struct words index)
{
	return (struct words){ look_up_four(size, t, index.a), look_up_four(size, t, index.b),
			       look_up_four(size, t, index.c), look_up_four(size, t, index.d) };
}

/* The low byte of every lane. */
ALWAYS uint8x16_t low_bytes(struct words a)
{
	uint16x8_t low = vuzp1q_u16(vreinterpretq_u16_u32(a.a), vreinterpretq_u16_u32(a.b));
	uint16x8_t high = vuzp1q_u16(vreinterpretq_u16_u32(a.c), vreinterpretq_u16_u32(a.d));

	return vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
}

ALWAYS uint8x16_t look_up_plane(unsigned size, const struct planes *t, unsigned byte, uint8x16_t index)
{
	const uint8x16x4_t *p = t->part;

	if (size == 16)
		return vqtbl1q_u8(p[0].val[byte], index);
	if (size == 32)
		return vqtbl2q_u8((uint8x16x2_t){ { p[0].val[byte], p[1].val[byte] } }, index);
	return vqtbl4q_u8((uint8x16x4_t){ { p[0].val[byte], p[1].val[byte], p[2].val[byte], p[3].val[byte] } }, index);
}

ALWAYS struct words look_up_planes(unsigned size, const struct planes *t, uint8x16_t index)
{
	uint8x16_t p0 = look_up_plane(size, t, 0, index), p1 = look_up_plane(size, t, 1, index);
	uint8x16_t p2 = look_up_plane(size, t, 2, index), p3 = look_up_plane(size, t, 3, index);
	uint16x8_t low_a = vreinterpretq_u16_u8(vzip1q_u8(p0, p1)), low_c = vreinterpretq_u16_u8(vzip2q_u8(p0, p1));
	uint16x8_t high_a = vreinterpretq_u16_u8(vzip1q_u8(p2, p3)), high_c = vreinterpretq_u16_u8(vzip2q_u8(p2, p3));

	return (struct words){ vreinterpretq_u32_u16(vzip1q_u16(low_a, high_a)),
			       vreinterpretq_u32_u16(vzip2q_u16(low_a, high_a)),
			       vreinterpretq_u32_u16(vzip1q_u16(low_c, high_c)),
			       vreinterpretq_u32_u16(vzip2q_u16(low_c, high_c)) };
}

#endif
