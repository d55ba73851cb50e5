/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_vbmi.c - rows with codebooks in bytes, with AVX-512 VBMI and VNNI: 64 weights a look-up.
 *
 * A weight is step * (256 H + L - 32768), an activation step * (256 h + l); H and L are looked up in two tables of
 * bytes, and  65536 H h + 256 (H l + L h)  is added up in integers, a block of 256 columns at a time. L l is left
 * out; what it is on average, and the 32768, are in the activations' offset, which is the same for every row. Where
 * an instruction takes 16 lanes of f32, this takes 64 of bytes, seven instructions where f32 takes twelve.
 */
#include <immintrin.h>
#include <string.h>

#include "lane_index.h"
#include "matvec.h"
#include "matvec_tables.h"
#include "scale.h"

#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define PREFETCH_AHEAD 2048

/* The shift is one of 16 bits: what comes in from the next byte is above the index. */
#define SHIFT(w, count) _mm512_srli_epi16(w, count)
#define MERGE(a, b, mask) _mm512_ternarylogic_epi32(a, b, _mm512_set1_epi8(mask), 0xe4)

/* Slot i of all bytes of a chunk, at their low end. */
INLINE __m512i slot(unsigned k, const __m512i *w, unsigned i)
{
	switch (k) {
	case 2:
		return SHIFT(w[0], 2 * i);
	case 3:
		if (i < 6)
			return SHIFT(w[i / 2], 3 * (i % 2));
		return MERGE(SHIFT(w[i - 6], 6), SHIFT(w[2], i - 2), 3);
	case 4:
		return SHIFT(w[0], 4 * i);
	case 5:
		if (i < 5)
			return w[i];
		if (i < 7)
			return MERGE(SHIFT(w[i - 5], 5), SHIFT(w[i - 2], 2), 7);
		return MERGE(MERGE(SHIFT(w[2], 5), SHIFT(w[3], 4), 7), SHIFT(w[4], 3), 15);
	default:
		if (i < 3)
			return w[i];
		return MERGE(MERGE(SHIFT(w[0], 6), SHIFT(w[1], 4), 3), SHIFT(w[2], 2), 15);
	}
}

INLINE void load_words(unsigned k, const uint8_t *packed, unsigned lanes, __m512i *w)
{
	UNROLL
	for (unsigned i = 0; i < xfp_lane_words(k); i++) {
		w[i] = lanes == 16 ? _mm512_loadu_si512(packed + 64 * i)
				   : _mm512_maskz_loadu_epi32((__mmask16)((1u << lanes) - 1),
							      packed + (size_t)4 * lanes * i);
		_mm_prefetch((const char *)packed + 64 * i + PREFETCH_AHEAD, _MM_HINT_T0);
	}
}

/* Of a block, and of the blocks before. */
struct sums {
	__m512i high[XFP_MAX_BATCH], middle[XFP_MAX_BATCH], other;
	__m512 all[XFP_MAX_BATCH];
};

INLINE void add_products(unsigned tile, __m512i high, __m512i low, const int8_t *bytes, struct sums *s)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++) {
		__m512i h = _mm512_load_si512(bytes + 128 * m), l = _mm512_load_si512(bytes + 128 * m + 64);

		s->high[m] = _mm512_dpbusd_epi32(s->high[m], high, h);
		s->middle[m] = _mm512_dpbusd_epi32(s->middle[m], high, l);
		if (tile == 1)
			s->other = _mm512_dpbusd_epi32(s->other, low, h);
		else
			s->middle[m] = _mm512_dpbusd_epi32(s->middle[m], low, h);
	}
}

INLINE void begin_block(unsigned tile, struct sums *s)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		s->high[m] = s->middle[m] = _mm512_setzero_si512();
	s->other = _mm512_setzero_si512();
}

/* At most 2^28: sixteen products of a byte each, 256 times. */
INLINE void end_block(unsigned tile, const float *step, struct sums *s)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++) {
		__m512i sum = _mm512_add_epi32(_mm512_slli_epi32(s->high[m], 8), s->middle[m]);

		if (tile == 1)
			sum = _mm512_add_epi32(sum, s->other);
		s->all[m] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(step[m]), s->all[m]);
	}
}

INLINE void finish(unsigned tile, const struct sums *s, double factor, const struct xfp_matvec_x *x, bool add, float *y,
		   size_t stride)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		if (m < x->count) {
			float value = (float)((_mm512_reduce_add_ps(s->all[m]) - x->offset[m]) * factor);

			y[m * stride] = add ? y[m * stride] + value : value;
		}
}

/* ---- v2 ---------------------------------------------------------------------------------------- */

struct byte_table {
	__m512i high, low;
	float step;
};

/* False when an entry is not finite. */
INLINE bool make_table(unsigned k, const uint8_t *code, struct byte_table *t)
{
	const __m512 most_finite = _mm512_set1_ps(65504);
	unsigned parts = k > 4 ? 1u << (k - 4) : 1;
	__m512 entry[4], most = _mm512_setzero_ps(), per_step;
	__mmask16 wrong = 0;
	__m128i high[4], low[4];
	int64_t four;

	memcpy(&four, code, sizeof four);
	entry[0] = _mm512_cvtph_ps(k == 2   ? _mm256_set1_epi64x(four)
				   : k == 3 ? _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)code))
					    : _mm256_loadu_si256((const __m256i *)code));
	UNROLL
	for (unsigned i = 1; i < parts; i++)
		entry[i] = _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(code + 32 * i)));
	UNROLL
	for (unsigned i = 0; i < parts; i++) {
		__m512 size = _mm512_abs_ps(entry[i]);

		wrong |= _mm512_cmp_ps_mask(size, most_finite, _CMP_NLE_UQ);
		most = _mm512_max_ps(most, size);
	}
	if (wrong)
		return false;

	/* Of all lanes in every lane; those of a table that repeats are fewer. */
	if (k >= 4)
		most = _mm512_max_ps(most, _mm512_shuffle_f32x4(most, most, 0x4e));
	if (k >= 3)
		most = _mm512_max_ps(most, _mm512_shuffle_f32x4(most, most, 0xb1));
	most = _mm512_max_ps(most, _mm512_permute_ps(most, 0x4e));
	most = _mm512_max_ps(most, _mm512_permute_ps(most, 0xb1));
	t->step = _mm512_cvtss_f32(most) / 32767;
	/* The least half is 2^-24: no quotient is infinite but that of zeros. */
	per_step = _mm512_div_ps(_mm512_set1_ps(32767), _mm512_max_ps(most, _mm512_set1_ps(0x1p-24f)));
	UNROLL
	for (unsigned i = 0; i < parts; i++) {
		__m512i q = _mm512_add_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(entry[i], per_step)),
					     _mm512_set1_epi32(32768));

		low[i] = _mm512_cvtepi32_epi8(q);
		high[i] = _mm512_cvtepi32_epi8(_mm512_srli_epi32(q, 8));
	}
	if (k <= 4) {
		t->high = _mm512_broadcast_i32x4(high[0]);
		t->low = _mm512_broadcast_i32x4(low[0]);
	} else {
		__m256i h = _mm256_set_m128i(high[1], high[0]), l = _mm256_set_m128i(low[1], low[0]);

		t->high = k == 5 ? _mm512_broadcast_i64x4(h)
				 : _mm512_inserti64x4(_mm512_castsi256_si512(h), _mm256_set_m128i(high[3], high[2]), 1);
		t->low = k == 5 ? _mm512_broadcast_i64x4(l)
				: _mm512_inserti64x4(_mm512_castsi256_si512(l), _mm256_set_m128i(low[3], low[2]), 1);
	}
	return true;
}

/* A chunk of k = 4 is half a block, one of k = 3 and 5 two. */
#define BLOCK_SLOTS 4

INLINE void v2_chunk(unsigned k, unsigned tile, const struct byte_table *t, const uint8_t *packed, unsigned lanes,
		     const int8_t *bytes, const float *step, bool begins, bool ends, struct sums *s)
{
	unsigned slots = xfp_lane_columns(k) / 4;
	__m512i w[XFP_MAX_WORDS];

	load_words(k, packed, lanes, w);
	UNROLL
	for (unsigned i = 0; i < slots; i++) {
		__m512i index = slot(k, w, i);

		if (i % BLOCK_SLOTS == 0 && begins)
			begin_block(tile, s);
		add_products(tile, _mm512_permutexvar_epi8(index, t->high), _mm512_permutexvar_epi8(index, t->low),
			     bytes + (size_t)128 * tile * i, s);
		if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == slots)
			if (ends)
				end_block(tile, step + (size_t)i / BLOCK_SLOTS * tile, s);
	}
}

INLINE void v2_row(unsigned k, unsigned tile, const struct byte_table *t, const uint8_t *packed,
		   const struct xfp_matvec_x *x, struct sums *s)
{
	size_t chunk = xfp_chunk_columns(k), left = x->cols, chunk_bytes = 4 * k * chunk / 32;
	const int8_t *bytes = x->bytes;
	const float *step = x->step;

	UNROLL
	for (unsigned m = 0; m < tile; m++)
		s->all[m] = _mm512_setzero_ps();
	if (k == 4)
		for (; left >= 2 * chunk; left -= 2 * chunk, packed += 2 * chunk_bytes) {
			v2_chunk(k, tile, t, packed, 16, bytes, step, true, false, s);
			v2_chunk(k, tile, t, packed + chunk_bytes, 16, bytes + 2 * chunk * tile, step, false, true, s);
			bytes += 4 * chunk * tile;
			step += tile;
		}
	else
		for (; left >= chunk; left -= chunk, packed += chunk_bytes) {
			v2_chunk(k, tile, t, packed, 16, bytes, step, true, true, s);
			bytes += 2 * chunk * tile;
			step += chunk / 256 * tile;
		}
	if (k == 4 && left >= chunk) {
		v2_chunk(k, tile, t, packed, 16, bytes, step, true, left == chunk, s);
		left -= chunk;
		if (left)
			v2_chunk(k, tile, t, packed + chunk_bytes, xfp_chunk_lanes(k, left), bytes + 2 * chunk * tile,
				 step, false, true, s);
	} else if (left) {
		v2_chunk(k, tile, t, packed, xfp_chunk_lanes(k, left), bytes, step, true, true, s);
	}
}

INLINE void v2_rows(unsigned k, unsigned tile, const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first,
		    size_t rows, bool add, float *y, size_t stride)
{
	size_t row_bytes = xfp_matvec_row_bytes(XFP_MATVEC_V2, k, w->cols);

	for (size_t r = first; r < first + rows; r++) {
		struct byte_table table;
		struct sums sums;

		if (!make_table(k, (const uint8_t *)w->code + (r << (k + 1)), &table)) {
			xfp_matvec_avx512.rows(w, x, r, 1, add, y + (r - first), stride);
			continue;
		}
		v2_row(k, tile, &table, w->index + r * row_bytes, x, &sums);
		finish(tile, &sums, w->unit * table.step, x, add, y + (r - first), stride);
	}
}

/* ---- v2c --------------------------------------------------------------------------------------- */

/* Two groups of a slot in one table, of k up to 4: high and low bytes of the one, then of the other. */
#define OTHER_GROUP 0x20
#define LOW_BYTES 0x10

/* The columns of a slot of the last chunk that are of one group. */
struct part {
	size_t group;
	__mmask64 lanes;
};

/* Of the last chunk, the same for all rows. */
struct rest {
	unsigned lanes; /* 0: there is none */
	struct part part[8][5];
};

static void divide_rest(unsigned k, unsigned group, size_t column, size_t cols, struct rest *rest)
{
	memset(rest, 0, sizeof *rest);
	rest->lanes = column < cols ? xfp_chunk_lanes(k, cols - column) : 0;
	for (unsigned v = 0; rest->lanes && v < xfp_lane_columns(k); v++)
		for (unsigned l = 0; l < rest->lanes && column < cols; l++, column++) {
			struct part *part = rest->part[v / 4];

			while (part->lanes && part->group != column >> group)
				part++;
			part->group = column >> group;
			part->lanes |= (__mmask64)1 << (4 * l + v % 4);
		}
}

INLINE void v2c_rest(unsigned k, unsigned tile, const uint8_t *tables, const struct rest *rest, const uint8_t *byte,
		     const uint8_t *packed, const int8_t *bytes, const float *step, struct sums *s)
{
	unsigned slots = xfp_lane_columns(k) / 4;
	__m512i w[XFP_MAX_WORDS];

	load_words(k, packed, rest->lanes, w);
	UNROLL
	for (unsigned i = 0; i < slots; i++) {
		__m512i index = _mm512_and_si512(slot(k, w, i), _mm512_set1_epi8(15));
		__m512i high = _mm512_setzero_si512(), low = high;

		for (const struct part *part = rest->part[i]; part->lanes; part++) {
			const __m128i *table = (const __m128i *)(tables + 32 * (size_t)byte[part->group]);

			high = _mm512_mask_permutexvar_epi8(high, part->lanes, index,
							    _mm512_castsi128_si512(_mm_loadu_si128(table)));
			low = _mm512_mask_permutexvar_epi8(low, part->lanes, index,
							   _mm512_castsi128_si512(_mm_loadu_si128(table + 1)));
		}
		if (i % BLOCK_SLOTS == 0)
			begin_block(tile, s);
		add_products(tile, high, low, bytes + (size_t)128 * tile * i, s);
		if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == slots)
			end_block(tile, step + (size_t)i / BLOCK_SLOTS * tile, s);
	}
}

INLINE void v2c_slot(unsigned tile, const uint8_t *tables, unsigned one, unsigned other, __m512i index,
		     const int8_t *bytes, struct sums *s)
{
	const __m512i groups = _mm512_set1_epi32(OTHER_GROUP << 16 | OTHER_GROUP << 24);
	__m256i first = _mm256_loadu_si256((const __m256i *)(tables + 32 * (size_t)one));
	__m512i table = _mm512_inserti64x4(_mm512_castsi256_si512(first),
					   _mm256_loadu_si256((const __m256i *)(tables + 32 * (size_t)other)), 1);

	/* index & 15 | groups */
	index = _mm512_ternarylogic_epi32(index, _mm512_set1_epi8(15), groups, 0xea);
	add_products(tile, _mm512_permutexvar_epi8(index, table),
		     _mm512_permutexvar_epi8(_mm512_or_si512(index, _mm512_set1_epi8(LOW_BYTES)), table), bytes, s);
}

/* Groups of 32 columns or more. */
INLINE void v2c_rows(unsigned k, unsigned tile, const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first,
		     size_t rows, bool add, float *y, size_t stride)
{
	size_t row_bytes = xfp_matvec_row_bytes(XFP_MATVEC_V2C, k, w->cols), chunk = xfp_chunk_columns(k);
	size_t groups = (w->cols + ((size_t)1 << w->group) - 1) >> w->group, whole = w->cols / chunk * chunk;
	const uint8_t *tables = xfp_tables_bytes(w->tables);
	unsigned slots = xfp_lane_columns(k) / 4;
	struct rest rest;

	divide_rest(k, w->group, whole, w->cols, &rest);
	for (size_t r = first; r < first + rows; r++) {
		const uint8_t *packed = w->index + r * row_bytes, *byte = w->byte + r * groups;
		const int8_t *bytes = x->bytes;
		const float *step = x->step;
		struct sums s;

		UNROLL
		for (unsigned m = 0; m < tile; m++)
			s.all[m] = _mm512_setzero_ps();
		for (size_t c = 0; c < whole; c += chunk, packed += 4 * k * chunk / 32) {
			__m512i word[XFP_MAX_WORDS];

			load_words(k, packed, 16, word);
			UNROLL
			for (unsigned i = 0; i < slots; i++, bytes += 128 * tile) {
				size_t at = c + (size_t)64 * i;

				/* Chunks of k = 4 are half a block, which is scaled like the other. */
				if (i % BLOCK_SLOTS == 0)
					begin_block(tile, &s);
				v2c_slot(tile, tables, byte[at >> w->group], byte[(at + 32) >> w->group],
					 slot(k, word, i), bytes, &s);
				if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == slots)
					end_block(tile, step + at / 256 * tile - c / 256 * tile, &s);
			}
			step += (c + chunk) / 256 * tile - c / 256 * tile;
		}
		if (rest.lanes)
			v2c_rest(k, tile, tables, &rest, byte, packed, bytes, step, &s);
		finish(tile, &s, w->unit * xfp_tables_head(w->tables)->step * (0x1p14f * xfp_balance_down(w->row[r])),
		       x, add, y + (r - first), stride);
	}
}

/* ---- v2a --------------------------------------------------------------------------------------- */

/* Groups of 128 columns, and chunks that are whole. A group's weights are scale * entry + midpoint, so its share is
 * the scale times what the entries give, and the midpoint times the sum of x; sixteen groups' at a time. */
#define GROUP 128
#define SEGMENT 16

INLINE void v2a_rows(unsigned k, unsigned tile, const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first,
		     size_t rows, bool add, float *y, size_t stride)
{
	size_t row_bytes = xfp_matvec_row_bytes(XFP_MATVEC_V2A, k, w->cols), chunk = xfp_chunk_columns(k);
	size_t groups = w->cols / GROUP;
	const uint8_t *tables = xfp_tables_bytes(w->tables);
	double entry_step = xfp_tables_head(w->tables)->step;
	unsigned slots = xfp_lane_columns(k) / 4;

	for (size_t r = first; r < first + rows; r++) {
		const uint8_t *packed = w->index + r * row_bytes, *byte = w->byte + r * groups;
		const uint8_t *pair = (const uint8_t *)w->pair + r * groups * 4;
		const int8_t *bytes = x->bytes;
		__m512 offset[XFP_MAX_BATCH], middle[XFP_MAX_BATCH];
		struct sums s;

		UNROLL
		for (unsigned m = 0; m < tile; m++)
			s.all[m] = offset[m] = middle[m] = _mm512_setzero_ps();
		for (size_t from = 0; from < groups; from += SEGMENT) {
			size_t count = groups - from < SEGMENT ? groups - from : SEGMENT, end = (from + count) * GROUP;
			__m512i pairs = _mm512_maskz_loadu_epi32((__mmask16)((1u << count) - 1), pair + 4 * from);
			__m512 scale = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(pairs));
			__m512 midpoint = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(pairs, 16)));
			float step[XFP_MAX_BATCH][SEGMENT];

			UNROLL
			for (unsigned m = 0; m < tile; m++) {
				size_t at = m * x->groups + from;

				_mm512_storeu_ps(step[m], _mm512_mul_ps(scale, _mm512_loadu_ps(x->group_step + at)));
				offset[m] = _mm512_fmadd_ps(scale, _mm512_loadu_ps(x->group_offset + at), offset[m]);
				middle[m] = _mm512_fmadd_ps(midpoint, _mm512_loadu_ps(x->group_sum + at), middle[m]);
			}
			for (size_t c = from * GROUP; c < end; c += chunk, packed += 4 * k * chunk / 32) {
				__m512i word[XFP_MAX_WORDS], high, low;

				load_words(k, packed, 16, word);
				UNROLL
				for (unsigned i = 0; i < slots; i++, bytes += 128 * tile) {
					size_t g = c / GROUP + i / 2;
					__m512i index = slot(k, word, i);

					if (i % 2 == 0) {
						const __m128i *table = (const __m128i *)(tables + 32 * (size_t)byte[g]);

						high = _mm512_broadcast_i32x4(_mm_loadu_si128(table));
						low = _mm512_broadcast_i32x4(_mm_loadu_si128(table + 1));
						begin_block(tile, &s);
					}
					add_products(tile, _mm512_permutexvar_epi8(index, high),
						     _mm512_permutexvar_epi8(index, low), bytes, &s);
					if (i % 2) {
						float at[XFP_MAX_BATCH];

						UNROLL
						for (unsigned m = 0; m < tile; m++)
							at[m] = step[m][g - from];
						end_block(tile, at, &s);
					}
				}
			}
		}
		UNROLL
		for (unsigned m = 0; m < tile; m++)
			if (m < x->count) {
				double entries = _mm512_reduce_add_ps(_mm512_sub_ps(s.all[m], offset[m]));
				double value = entries * entry_step + _mm512_reduce_add_ps(middle[m]);
				float *to = y + m * stride + (r - first);

				*to = (float)(value * w->unit) + (add ? *to : 0);
			}
	}
}

/* ---- a copy for each --------------------------------------------------------------------------- */

#define ARGUMENTS                                                                                                \
	const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows, bool add, float *y, \
		size_t stride
#define PASSED w, x, first, rows, add, y, stride

#define COPY(k, tile)                          \
	static void v2_##k##_##tile(ARGUMENTS) \
	{                                      \
		v2_rows(k, tile, PASSED);      \
	}
#define COPY_V2C(k, tile)                       \
	static void v2c_##k##_##tile(ARGUMENTS) \
	{                                       \
		v2c_rows(k, tile, PASSED);      \
	}
#define COPIES(k) COPY(k, 1) COPY(k, 2) COPY(k, 4) COPY(k, 8)
COPIES(2)
COPIES(3)
COPIES(4)
COPIES(5)
COPIES(6)
#define COPY_V2A(k, tile)                       \
	static void v2a_##k##_##tile(ARGUMENTS) \
	{                                       \
		v2a_rows(k, tile, PASSED);      \
	}
#define COPIES_V2A(k) COPY_V2A(k, 1) COPY_V2A(k, 2) COPY_V2A(k, 4) COPY_V2A(k, 8)
COPIES_V2A(2)
COPIES_V2A(3)
COPIES_V2A(4)
#define COPIES_V2C(k) COPY_V2C(k, 1) COPY_V2C(k, 2) COPY_V2C(k, 4) COPY_V2C(k, 8)
COPIES_V2C(2)
COPIES_V2C(3)
COPIES_V2C(4)

#define BY_TILE(name)                                  \
	{                                              \
		name##_1, name##_2, name##_4, name##_8 \
	}

static void multiply_rows(ARGUMENTS)
{
	static xfp_matvec_fn *const v2[5][4] = { BY_TILE(v2_2), BY_TILE(v2_3), BY_TILE(v2_4), BY_TILE(v2_5),
						 BY_TILE(v2_6) };
	static xfp_matvec_fn *const v2c[3][4] = { BY_TILE(v2c_2), BY_TILE(v2c_3), BY_TILE(v2c_4) };
	static xfp_matvec_fn *const v2a[3][4] = { BY_TILE(v2a_2), BY_TILE(v2a_3), BY_TILE(v2a_4) };
	int tile = __builtin_ctz(x->tile);

	if (w->mode == XFP_MATVEC_V2 && x->bytes_fit)
		v2[w->k - 2][tile](PASSED);
	else if (w->mode == XFP_MATVEC_V2C && x->bytes_fit && w->group >= 5 && xfp_tables_head(w->tables)->bytes_fit)
		v2c[w->k - 2][tile](PASSED);
	else if (w->mode == XFP_MATVEC_V2A && x->bytes_fit && x->groups && w->group == 7 &&
		 xfp_tables_head(w->tables)->bytes_fit)
		v2a[w->k - 2][tile](PASSED);
	else
		xfp_matvec_avx512.rows(PASSED);
}

const struct xfp_matvec_set xfp_matvec_vbmi = { "vbmi", multiply_rows };
