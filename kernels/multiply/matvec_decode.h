/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_decode.h - decode rows, on the lanes of matvec_lanes.h. All sets produce the same bits.
 */
#ifndef XFP_MATVEC_DECODE_H
#define XFP_MATVEC_DECODE_H

#include "kernels/common/decode.h"
#include "kernels/multiply/matvec_lanes.h"

/* Store the first lanes of a vector, of which `left` columns are needed. */
INLINE void put_numbers(vf number, unsigned lanes, size_t left, float *to)
{
	float all[16];

	if (lanes == 16 && left >= 16) {
		vf_store(to, number);
		return;
	}
	vf_store(all, number);
	memcpy(to, all, (left < lanes ? left : lanes) * sizeof *all);
}

/* The last chunk: of fewer lanes, or not all of its columns. */
INLINE void last_v2_numbers(unsigned k, const struct table *table, const uint8_t *packed, size_t left, float *x)
{
	unsigned lanes = xfp_chunk_lanes(k, left);
	vi index[MAX_VECTORS];

	unpack_lanes(k, packed, lanes, index);
	for (size_t v = 0, at = 0; v < xfp_lane_columns(k) && at < left; v++, at += lanes)
		put_numbers(table_lookup(k, table, index[v]), lanes, left - at, x + at);
}

INLINE void v2_numbers(unsigned k, const struct xfp_matvec *w, size_t row, float *x)
{
	const uint8_t *packed = w->index + row * w->row_bytes;
	size_t chunk = xfp_chunk_columns(k), left = w->cols;
	struct table table;

	table_of_halves(k, (const uint8_t *)w->code + (row << (k + 1)), &table);
	for (; left >= chunk; left -= chunk, x += chunk, packed += 4 * k * chunk / 32) {
		vi words[XFP_MAX_WORDS];

		load_words(k, packed, 16, words);
		UNROLL
		for (unsigned v = 0; v < xfp_lane_columns(k); v++)
			vf_store(x + (size_t)16 * v, table_lookup(k, &table, slot(k, words, v / 4, v % 4)));
	}
	if (left)
		last_v2_numbers(k, &table, packed, left, x);
}

INLINE void last_group_numbers(unsigned k, bool scaled, const struct groups *g, size_t first, size_t cols, vf scale,
			       const uint8_t *packed, float *x)
{
	unsigned lanes = xfp_chunk_lanes(k, cols - first);
	vi index[MAX_VECTORS];

	unpack_lanes(k, packed, lanes, index);
	for (size_t v = 0, at = first; v < xfp_lane_columns(k) && at < cols; v++, at += lanes) {
		size_t left = cols - at;
		vf number = group_lookup(k, scaled, g, at, left < lanes ? (unsigned)left : lanes, index[v]);

		put_numbers(scaled ? number : vf_mul(number, scale), lanes, left, x + at);
	}
}

/* A table serves `run` vectors, or more if `run` is 0. */
INLINE void group_numbers(unsigned k, bool scaled, unsigned run, const struct xfp_matvec *w, size_t row, float *x)
{
	struct groups g = { .entry = xfp_tables_entry(w->tables),
			    .byte = w->byte + row * w->row_groups,
			    .group = w->group };
	const uint8_t *packed = w->index + row * w->row_bytes;
	size_t chunk = xfp_chunk_columns(k), within = ((size_t)1 << w->group) - 1, c = 0;
	vf scale = vf_all(scaled ? 1 : xfp_row_scale(w->row[row]));

	if (scaled)
		g.pair = (const uint8_t *)w->pair + row * w->row_groups * 4;
	for (; c + chunk <= w->cols; c += chunk, packed += 4 * k * chunk / 32) {
		vi words[XFP_MAX_WORDS];
		struct table table;

		load_words(k, packed, 16, words);
		UNROLL
		for (unsigned v = 0; v < xfp_lane_columns(k); v++) {
			size_t at = c + (size_t)16 * v;

			vf number;

			if (run ? v % run == 0 : v == 0 || (at & within) == 0)
				group_table(k, scaled, &g, at >> g.group, &table);
			number = table_lookup(k, &table, slot(k, words, v / 4, v % 4));
			vf_store(x + at, scaled ? number : vf_mul(number, scale));
		}
	}
	if (c < w->cols)
		last_group_numbers(k, scaled, &g, c, w->cols, scale, packed, x);
}

INLINE void plain_numbers(enum xfp_matvec_mode mode, const struct xfp_matvec *w, size_t row, float *x)
{
	const uint8_t *from = w->index + row * w->row_bytes;
	size_t size = element_bytes(mode), c = 0;
	uint8_t last[64] = { 0 };

	for (; c + 16 <= w->cols; c += 16)
		vf_store(x + c, stored_numbers(mode, from + c * size));
	memcpy(last, from + c * size, (w->cols - c) * size);
	put_numbers(stored_numbers(mode, last), 16, w->cols - c, x + c);
}

/* Unrolled for groups of 32 columns in v2c. */
#define NUMBERS_OF_K(k)                                                               \
	static void v2_numbers_##k(const struct xfp_matvec *w, size_t row, float *x)  \
	{                                                                             \
		v2_numbers(k, w, row, x);                                             \
	}                                                                             \
	static void v2a_numbers_##k(const struct xfp_matvec *w, size_t row, float *x) \
	{                                                                             \
		group_numbers(k, true, 0, w, row, x);                                 \
	}                                                                             \
	static void v2c_numbers_##k(const struct xfp_matvec *w, size_t row, float *x) \
	{                                                                             \
		if (w->group == 5)                                                    \
			group_numbers(k, false, 2, w, row, x);                        \
		else                                                                  \
			group_numbers(k, false, 0, w, row, x);                        \
	}
NUMBERS_OF_K(2)
NUMBERS_OF_K(3)
NUMBERS_OF_K(4)
NUMBERS_OF_K(5)
NUMBERS_OF_K(6)
#define EACH_K(name)                                             \
	{                                                        \
		name##_2, name##_3, name##_4, name##_5, name##_6 \
	}

static void decode_row(const struct xfp_matvec *w, size_t row, float *x)
{
	static xfp_matvec_decode_fn *const with_tables[3][5] = { EACH_K(v2_numbers), EACH_K(v2a_numbers),
								 EACH_K(v2c_numbers) };
	float scale;

	switch (w->mode) {
	case XFP_MATVEC_F32:
		plain_numbers(XFP_MATVEC_F32, w, row, x);
		break;
	case XFP_MATVEC_F16:
		plain_numbers(XFP_MATVEC_F16, w, row, x);
		break;
	case XFP_MATVEC_BF16:
		plain_numbers(XFP_MATVEC_BF16, w, row, x);
		break;
	case XFP_MATVEC_FP8:
		memcpy(&scale, (const uint8_t *)w->code + row * sizeof scale, sizeof scale);
		xfp_decode_fp8(w->index + row * w->row_bytes, scale, w->cols, x);
		break;
	default:
		with_tables[w->mode - XFP_MATVEC_V2][w->k - 2](w, row, x);
	}
}

#endif
