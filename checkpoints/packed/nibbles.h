/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nibbles.h - 4-bit codes, two per byte, the lower half first. Private to checkpoints/packed/.
 */
#ifndef XFP_NIBBLES_H
#define XFP_NIBBLES_H

#include <stdint.h>
#include <string.h>

/* The values of both codes of a byte, for these sixteen numbers: one row per upper half. */
#define XFP_NIBBLE_ROW(u, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)                                             \
	{ a, u }, { b, u }, { c, u }, { d, u }, { e, u }, { f, u }, { g, u }, { h, u }, { i, u }, { j, u }, { k, u }, \
		{ l, u }, { m, u }, { n, u }, { o, u },                                                               \
	{                                                                                                             \
		p, u                                                                                                  \
	}
#define XFP_NIBBLE_PAIRS(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)                   \
	{                                                                                  \
		XFP_NIBBLE_ROW(a, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p),         \
			XFP_NIBBLE_ROW(b, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), \
			XFP_NIBBLE_ROW(c, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), \
			XFP_NIBBLE_ROW(d, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), \
			XFP_NIBBLE_ROW(e, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), \
			XFP_NIBBLE_ROW(f, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), \
			XFP_NIBBLE_ROW(g, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), \
			XFP_NIBBLE_ROW(h, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), \
			XFP_NIBBLE_ROW(i, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), \
			XFP_NIBBLE_ROW(j, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), \
			XFP_NIBBLE_ROW(k, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), \
			XFP_NIBBLE_ROW(l, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), \
			XFP_NIBBLE_ROW(m, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), \
			XFP_NIBBLE_ROW(n, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), \
			XFP_NIBBLE_ROW(o, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p), \
			XFP_NIBBLE_ROW(p, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)  \
	}

/* Decode codes [first, first + count) from `bytes`. */
static inline void xfp_nibble_values(const float pairs[256][2], const unsigned char *bytes, uint64_t first,
				     uint64_t count, float *value)
{
	uint64_t i = 0;

	if (first % 2 && count)
		value[i++] = pairs[bytes[first / 2]][1];
	for (bytes += (first + i) / 2; i + 2 <= count; i += 2)
		memcpy(value + i, pairs[*bytes++], 2 * sizeof *value);
	if (i < count)
		value[i] = pairs[*bytes][0];
}

/* Expand the eight codes of a word to one byte each. */
static inline uint64_t xfp_nibbles_expand(uint32_t word)
{
	uint64_t codes = word;

	codes = (codes | codes << 16) & UINT64_C(0x0000ffff0000ffff);
	codes = (codes | codes << 8) & UINT64_C(0x00ff00ff00ff00ff);
	return (codes | codes << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
}

#endif
