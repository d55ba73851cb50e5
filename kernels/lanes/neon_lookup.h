/* SPDX-License-Identifier: Apache-2.0 */
/*
 * neon_lookup.h - sixteen look-ups at once in tables of 32-bit entries with NEON. A part of neon.h.
 *
 * NEON looks up bytes. A table of four or eight entries is in one or two registers, unchanged, and an index becomes
 * the numbers of its entry's four bytes. Larger tables are in four planes: the first bytes of all entries, then the
 * second ones and so on. Sixteen indices look up sixteen bytes in each plane, which are interleaved afterwards.
 */
#ifndef XFP_LANES_NEON_LOOKUP_H
#define XFP_LANES_NEON_LOOKUP_H

struct few {
	uint8x16x2_t part;
};

struct planes {
	uint8x16x4_t part[4]; /* sixteen entries each */
};

LANES_INLINE struct few load_few(unsigned size, const void *table)
{
	struct few t;

	t.part.val[0] = vld1q_u8(table);
	t.part.val[1] = size == 4 ? t.part.val[0] : vld1q_u8((const uint8_t *)table + 16);
	return t;
}

/* 16, 32 or 64. */
LANES_INLINE struct planes load_planes(unsigned size, const void *table)
{
	struct planes t;

	t.part[0] = vld4q_u8(table);
	for (unsigned i = 1; i < size / 16; i++)
		t.part[i] = vld4q_u8((const uint8_t *)table + 64 * i);
	return t;
}

/* Indices below 4 or 8. */
LANES_INLINE vi look_up_few(unsigned size, const struct few *t, vi index)
{
	EACH_REGISTER
	{
		uint32x4_t at = vmlaq_u32(vdupq_n_u32(0x03020100), (uint32x4_t)index.of[i], vdupq_n_u32(0x04040404));
		uint8x16_t bytes = (uint8x16_t)at;

		index.of[i] = (int32x4_t)(size == 4 ? vqtbl1q_u8(t->part.val[0], bytes) : vqtbl2q_u8(t->part, bytes));
	}
	return index;
}

/* Return the low byte of every lane. */
LANES_INLINE uint8x16_t low_bytes(vi a)
{
	uint16x8_t low = vuzp1q_u16((uint16x8_t)a.of[0], (uint16x8_t)a.of[1]);
	uint16x8_t high = vuzp1q_u16((uint16x8_t)a.of[2], (uint16x8_t)a.of[3]);

	return vuzp1q_u8((uint8x16_t)low, (uint8x16_t)high);
}

LANES_INLINE uint8x16_t look_up_plane(unsigned size, const struct planes *t, unsigned byte, uint8x16_t index)
{
	const uint8x16x4_t *p = t->part;

	if (size == 16)
		return vqtbl1q_u8(p[0].val[byte], index);
	if (size == 32)
		return vqtbl2q_u8((uint8x16x2_t){ { p[0].val[byte], p[1].val[byte] } }, index);
	return vqtbl4q_u8((uint8x16x4_t){ { p[0].val[byte], p[1].val[byte], p[2].val[byte], p[3].val[byte] } }, index);
}

LANES_INLINE vi look_up_planes(unsigned size, const struct planes *t, uint8x16_t index)
{
	uint8x16_t p0 = look_up_plane(size, t, 0, index), p1 = look_up_plane(size, t, 1, index);
	uint8x16_t p2 = look_up_plane(size, t, 2, index), p3 = look_up_plane(size, t, 3, index);
	uint16x8_t low_a = (uint16x8_t)vzip1q_u8(p0, p1), low_c = (uint16x8_t)vzip2q_u8(p0, p1);
	uint16x8_t high_a = (uint16x8_t)vzip1q_u8(p2, p3), high_c = (uint16x8_t)vzip2q_u8(p2, p3);

	return (vi){ { (int32x4_t)vzip1q_u16(low_a, high_a), (int32x4_t)vzip2q_u16(low_a, high_a),
		       (int32x4_t)vzip1q_u16(low_c, high_c), (int32x4_t)vzip2q_u16(low_c, high_c) } };
}

#endif
