/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_rows.h - rows of every mode times prepared activations, in f32: once, on the sixteen lanes that
 * matvec_table_plain.h, _avx2.h, _avx512.h or _neon.h defines.
 *
 * There is a copy for every mode, k and number of vectors, so that tables and sums stay in registers. Whole chunks
 * times one vector, the case of text generation, are unrolled with constant shifts (except in plain C, MATVEC_SMALL).
 * In all other cases a chunk is first split into its slots.
 */
#ifndef XFP_MATVEC_ROWS_H
#define XFP_MATVEC_ROWS_H

#include "kernels/multiply/matvec_instances.h"
#include "kernels/multiply/matvec_lanes.h"

/* Independent sums: enough that an addition does not wait for the previous one. */
#ifndef OPEN_SUMS
#define OPEN_SUMS 4
#endif

struct sums {
	vf of[XFP_MAX_BATCH > OPEN_SUMS ? XFP_MAX_BATCH : OPEN_SUMS];
};

/* Add sixteen weights to the sums; `v` selects one of the independent sums. */
INLINE void add_weights(unsigned tile, unsigned v, vf weight, const float *x, struct sums *sums)
{
	unsigned open = tile >= OPEN_SUMS ? 1 : OPEN_SUMS / tile;

	UNROLL
	for (unsigned m = 0; m < tile; m++) {
		vf *sum = &sums->of[v % open * tile + m];

		*sum = vf_fma(weight, vf_load(x + (size_t)16 * m), *sum);
	}
}

INLINE void clear(unsigned tile, struct sums *sums)
{
	UNROLL
	for (unsigned i = 0; i < (tile > OPEN_SUMS ? tile : OPEN_SUMS); i++)
		sums->of[i] = vf_all(0);
}

/* Compute the row's results: the sums times `factor`. */
INLINE void finish(unsigned tile, const struct sums *sums, double factor, const struct xfp_matvec_x *x, bool add,
		   float *y, size_t stride)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++) {
		vf sum = sums->of[m];
		float value;

		UNROLL
		for (unsigned i = m + tile; i < OPEN_SUMS; i += tile)
			sum = vf_add(sum, sums->of[i]);
		if (m < x->count) {
			value = (float)(vf_total(sum) * factor);
			y[m * stride] = add ? y[m * stride] + value : value;
		}
	}
}

/* ---- v2 ---------------------------------------------------------------------------------------- */

INLINE void v2_chunk(unsigned k, unsigned tile, const struct table *table, const uint8_t *packed, unsigned lanes,
		     const float *x, struct sums *sums)
{
	if (tile == 1 && lanes == 16 && WRITTEN_OUT) {
		vi w[XFP_MAX_WORDS];

		load_words(k, packed, 16, w);
		UNROLL
		for (unsigned v = 0; v < xfp_lane_columns(k); v++)
			add_weights(1, v, table_lookup(k, table, slot(k, w, v / 4, v % 4)), x + (size_t)16 * v, sums);
	} else {
		unsigned at_once = tile < OPEN_SUMS ? OPEN_SUMS / tile : 1;
		vi index[MAX_VECTORS];

		unpack_lanes(k, packed, lanes, index);
		for (unsigned v = 0; v < xfp_lane_columns(k); v += at_once)
			UNROLL
		for (unsigned i = 0; i < at_once; i++)
			add_weights(tile, i, table_lookup(k, table, index[v + i]), x + (size_t)16 * tile * (v + i),
				    sums);
	}
}

INLINE void v2_rows(unsigned k, unsigned tile, const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first,
		    size_t rows, bool add, float *y, size_t stride)
{
	size_t chunk = xfp_chunk_columns(k), whole = w->cols / chunk, left = w->cols % chunk;

	for (size_t r = first; r < first + rows; r++) {
		const uint8_t *packed = w->index + r * w->row_bytes;
		const float *lanes = x->lanes;
		struct table table;
		struct sums sums;

		table_of_halves(k, (const uint8_t *)w->code + (r << (k + 1)), &table);
		clear(tile, &sums);
		for (size_t c = 0; c < whole; c++, packed += 4 * k * chunk / 32, lanes += chunk * tile)
			v2_chunk(k, tile, &table, packed, 16, lanes, &sums);
		if (left)
			v2_chunk(k, tile, &table, packed, xfp_chunk_lanes(k, left), lanes, &sums);
		finish(tile, &sums, w->unit, x, add, y + (r - first), stride);
	}
}

/* ---- v2a, v2c ---------------------------------------------------------------------------------- */

/* A table serves `run` vectors, or all vectors of a group if `run` is 0. */
INLINE void group_chunk(unsigned k, unsigned tile, bool scaled, unsigned run, const struct groups *g, size_t column,
			const uint8_t *packed, const float *x, struct sums *sums)
{
	struct table table;

	if (run && WRITTEN_OUT) {
		vi w[XFP_MAX_WORDS];

		load_words(k, packed, 16, w);
		UNROLL
		for (unsigned v = 0; v < xfp_lane_columns(k); v++) {
			if (v % run == 0)
				group_table(k, scaled, g, (column + (size_t)16 * v) >> g->group, &table);
			add_weights(tile, v, table_lookup(k, &table, slot(k, w, v / 4, v % 4)),
				    x + (size_t)16 * tile * v, sums);
		}
	} else {
		size_t within = ((size_t)1 << g->group) - 1;
		vi index[MAX_VECTORS];

		unpack_lanes(k, packed, 16, index);
		for (unsigned v = 0; v < xfp_lane_columns(k); v++) {
			size_t at = column + (size_t)16 * v;

			if (v == 0 || (at & within) == 0)
				group_table(k, scaled, g, at >> g->group, &table);
			add_weights(tile, 0, table_lookup(k, &table, index[v]), x + (size_t)16 * tile * v, sums);
		}
	}
}

/* Process the last chunk, which has fewer lanes. */
INLINE void group_rest(unsigned k, unsigned tile, bool scaled, const struct groups *g, size_t column, size_t cols,
		       const uint8_t *packed, const float *x, struct sums *sums)
{
	unsigned lanes = xfp_chunk_lanes(k, cols - column);
	vi index[MAX_VECTORS];

	unpack_lanes(k, packed, lanes, index);
	for (unsigned v = 0; column < cols; v++, column += lanes)
		add_weights(tile, 0,
			    group_lookup(k, scaled, g, column,
					 cols - column < lanes ? (unsigned)(cols - column) : lanes, index[v]),
			    x + (size_t)16 * tile * v, sums);
}

INLINE void group_rows(unsigned k, unsigned tile, bool scaled, unsigned run, const struct xfp_matvec *w,
		       const struct xfp_matvec_x *x, size_t first, size_t rows, bool add, float *y, size_t stride)
{
	size_t chunk = xfp_chunk_columns(k), whole = w->cols / chunk * chunk;
	struct groups g = { .entry = xfp_tables_entry(w->tables), .group = w->group };

	for (size_t r = first; r < first + rows; r++) {
		const uint8_t *packed = w->index + r * w->row_bytes;
		const float *lanes = x->lanes;
		double factor = w->unit;
		struct sums sums;

		g.byte = w->byte + r * w->row_groups;
		if (scaled)
			g.pair = (const uint8_t *)w->pair + r * w->row_groups * 4;
		else
			factor *= xfp_row_scale(w->row[r]);
		clear(tile, &sums);
		for (size_t c = 0; c < whole; c += chunk, packed += 4 * k * chunk / 32, lanes += chunk * tile)
			group_chunk(k, tile, scaled, run, &g, c, packed, lanes, &sums);
		if (whole < w->cols)
			group_rest(k, tile, scaled, &g, whole, w->cols, packed, lanes, &sums);
		finish(tile, &sums, factor, x, add, y + (r - first), stride);
	}
}

#include "kernels/multiply/matvec_numbers.h"

/* ---- instances --------------------------------------------------------------------------------- */

/* Unrolled for groups of 32 columns, and for 128 in v2a. */
#define COPIES_OF_K(k, tile)                                                   \
	static void v2_##k##_##tile(ARGUMENTS)                                 \
	{                                                                      \
		v2_rows(k, tile, PASSED);                                      \
	}                                                                      \
	static void v2a_##k##_##tile(ARGUMENTS)                                \
	{                                                                      \
		if (tile == 1 && w->group >= 7)                                \
			group_rows(k, tile, true, tile == 1 ? 8 : 0, PASSED);  \
		else                                                           \
			group_rows(k, tile, true, 0, PASSED);                  \
	}                                                                      \
	static void v2c_##k##_##tile(ARGUMENTS)                                \
	{                                                                      \
		if (tile == 1 && w->group >= 5)                                \
			group_rows(k, tile, false, tile == 1 ? 2 : 0, PASSED); \
		else                                                           \
			group_rows(k, tile, false, 0, PASSED);                 \
	}

#define NUMBERS(mode, tile) tile >= 4 ? many_rows(mode, tile, PASSED) : number_rows(mode, tile, PASSED)

#define COPIES(tile)                            \
	COPIES_OF_K(2, tile)                    \
	COPIES_OF_K(3, tile)                    \
	COPIES_OF_K(4, tile)                    \
	COPIES_OF_K(5, tile)                    \
	COPIES_OF_K(6, tile)                    \
	static void f32_##tile(ARGUMENTS)       \
	{                                       \
		NUMBERS(XFP_MATVEC_F32, tile);  \
	}                                       \
	static void f16_##tile(ARGUMENTS)       \
	{                                       \
		NUMBERS(XFP_MATVEC_F16, tile);  \
	}                                       \
	static void bf16_##tile(ARGUMENTS)      \
	{                                       \
		NUMBERS(XFP_MATVEC_BF16, tile); \
	}                                       \
	static void fp8_##tile(ARGUMENTS)       \
	{                                       \
		NUMBERS(XFP_MATVEC_FP8, tile);  \
	}

COPIES(1)
COPIES(2)
COPIES(4)
COPIES(8)

#define BY_TILE(name)                                  \
	{                                              \
		name##_1, name##_2, name##_4, name##_8 \
	}
#define BY_K(name)                                                                                            \
	{                                                                                                     \
		BY_TILE(name##_2), BY_TILE(name##_3), BY_TILE(name##_4), BY_TILE(name##_5), BY_TILE(name##_6) \
	}

static void multiply_rows(ARGUMENTS)
{
	static xfp_matvec_fn *const with_tables[3][5][4] = { BY_K(v2), BY_K(v2a), BY_K(v2c) };
	static xfp_matvec_fn *const numbers[4][4] = { BY_TILE(f32), BY_TILE(f16), BY_TILE(bf16), BY_TILE(fp8) };
	int tile = __builtin_ctz(x->tile);

	if (w->mode >= XFP_MATVEC_V2)
		with_tables[w->mode - XFP_MATVEC_V2][w->k - 2][tile](PASSED);
	else
		numbers[w->mode][tile](PASSED);
}

#endif
