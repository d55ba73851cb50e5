/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_dotprod.c - rows with codebooks times one to eight vectors, with NEON's dot products of bytes.
 *
 * A weight is step * (256 H + L), an activation step * (256 h + l), with signed bytes. H and L are looked up in tables
 * of bytes, 16 at a time, and 256 H h + (H l + L h) is summed in integers, per block of 256 columns. The term L l,
 * whose average is zero, is dropped.
 */
#ifndef __clang__
/* -march in CFLAGS comes after this file's own flags, and would override them. */
#pragma GCC target("arch=armv8.2-a+dotprod")
/* With scheduling before register allocation, the look-ups of a chunk would need ten times as many registers. */
#pragma GCC optimize("no-schedule-insns")
#endif
#include <arm_neon.h>
#include <string.h>

#ifndef __ARM_FEATURE_DOTPROD
#error "this file needs dot products: add +dotprod to -march in CFLAGS, or leave -march out"
#endif

#include "kernels/common/number.h"
#include "kernels/multiply/matvec_unroll.h"
#include "kernels/multiply/matvec_whole.h"

#define MAX_PARTS 4 /* registers of 16 entries of a table, maximum */
#define PREFETCH_AHEAD 2048

/* ---- indices ----------------------------------------------------------------------------------- */

/* Load the words of a chunk so that those of columns 0 to 31 of every slot, and those of columns 32 to 63, are in two
 * registers each. */
INLINE void load_halves(unsigned k, const uint8_t *packed, uint8x16_t half[2][2][XFP_MAX_WORDS])
{
	UNROLL
	for (unsigned i = 0; i < xfp_lane_words(k); i++, packed += 64) {
		UNROLL
		for (unsigned p = 0; p < 2; p++) {
			uint16x8_t one = vreinterpretq_u16_u8(vld1q_u8(packed + 32 * p));
			uint16x8_t other = vreinterpretq_u16_u8(vld1q_u8(packed + 32 * p + 16));

			half[0][p][i] = vreinterpretq_u8_u16(vtrn1q_u16(one, other));
			half[1][p][i] = vreinterpretq_u8_u16(vtrn2q_u16(one, other));
		}
		__builtin_prefetch(packed + PREFETCH_AHEAD);
	}
}

INLINE uint8x16_t bits(uint8x16_t w, unsigned mask)
{
	return vandq_u8(w, vdupq_n_u8((uint8_t)mask));
}

/* Slot i of all bytes of a chunk; the rest of a byte is zero. Tables of fewer than 16 entries repeat them. */
INLINE uint8x16_t slot(unsigned k, const uint8x16_t *w, unsigned i)
{
	switch (k) {
	case 2:
		if (i < 2)
			return bits(i ? vshrq_n_u8(w[0], 2) : w[0], 15);
		return i == 2 ? vshrq_n_u8(w[0], 4) : vshrq_n_u8(w[0], 6);
	case 3:
		if (i < 6)
			return bits(i % 2 ? vshrq_n_u8(w[i / 2], 3) : w[i / 2], 15);
		return i == 6 ? vsriq_n_u8(vshrq_n_u8(w[2], 4), w[0], 6) : vsriq_n_u8(vshrq_n_u8(w[2], 5), w[1], 6);
	case 4:
		return i ? vshrq_n_u8(w[0], 4) : bits(w[0], 15);
	case 5:
		if (i < 5)
			return bits(w[i], 31);
		if (i < 7)
			return bits(vsriq_n_u8(vshrq_n_u8(w[i - 2], 2), w[i - 5], 5), 31);
		return vsriq_n_u8(vsriq_n_u8(vshrq_n_u8(w[4], 3), w[3], 4), w[2], 5);
	default:
		if (i < 3)
			return bits(w[i], 63);
		return vsriq_n_u8(vsriq_n_u8(vshrq_n_u8(w[2], 2), w[1], 4), w[0], 6);
	}
}

/* ---- tables ------------------------------------------------------------------------------------ */

struct dot_table {
	uint8x16_t high[MAX_PARTS], low[MAX_PARTS];
};

INLINE unsigned parts(unsigned k)
{
	return k > 4 ? 1u << (k - 4) : 1;
}

INLINE void load_table(unsigned k, const uint8_t *from, struct dot_table *t)
{
	UNROLL
	for (unsigned i = 0; i < parts(k); i++) {
		t->high[i] = vld1q_u8(from + 16 * i);
		t->low[i] = vld1q_u8(from + xfp_table_half(k) + 16 * i);
	}
}

INLINE int8x16_t look_up(unsigned k, const uint8x16_t *t, uint8x16_t index)
{
	return vreinterpretq_s8_u8(k <= 4   ? vqtbl1q_u8(t[0], index)
				   : k == 5 ? vqtbl2q_u8((uint8x16x2_t){ { t[0], t[1] } }, index)
					    : vqtbl4q_u8((uint8x16x4_t){ { t[0], t[1], t[2], t[3] } }, index));
}

/* Make the table of a row of v2. Returns false if an entry is not finite. */
INLINE bool make_table(unsigned k, const uint8_t *code, struct dot_table *t, float *step)
{
	uint16x8_t half[2 * MAX_PARTS], most = vdupq_n_u16(0);
	float max, per_step;

	UNROLL
	for (unsigned i = 0; i < 2 * parts(k); i++) {
		half[i] = k == 2        ? vcombine_u16(vld1_u16((const uint16_t *)(const void *)code),
						       vld1_u16((const uint16_t *)(const void *)code))
			  : i && k == 3 ? half[0]
					: vreinterpretq_u16_u8(vld1q_u8(code + 16 * i));
		most = vmaxq_u16(most, vandq_u16(half[i], vdupq_n_u16(0x7fff)));
	}
	if (vmaxvq_u16(most) >= 0x7c00)
		return false;
	max = xfp_half_to_float(vmaxvq_u16(most));
	*step = max / XFP_BYTES_LIMIT;
	per_step = max > 0 ? XFP_BYTES_LIMIT / max : 0;
	UNROLL
	for (unsigned i = 0; i < parts(k); i++) {
		int16x8_t number[2];

		UNROLL
		for (unsigned j = 0; j < 2; j++) {
			float16x8_t entry = vreinterpretq_f16_u16(half[2 * i + j]);
			float32x4_t one = vmulq_n_f32(vcvt_f32_f16(vget_low_f16(entry)), per_step);
			float32x4_t other = vmulq_n_f32(vcvt_high_f32_f16(entry), per_step);

			number[j] = vcombine_s16(vmovn_s32(vcvtnq_s32_f32(one)), vmovn_s32(vcvtnq_s32_f32(other)));
		}
		t->high[i] = vreinterpretq_u8_s8(vcombine_s8(vrshrn_n_s16(number[0], 8), vrshrn_n_s16(number[1], 8)));
		t->low[i] = vreinterpretq_u8_s8(vcombine_s8(vmovn_s16(number[0]), vmovn_s16(number[1])));
	}
	return true;
}

/* ---- products ---------------------------------------------------------------------------------- */

struct dot_row {
	struct stored_row stored;
	struct dot_table table; /* v2 */
	float step;             /* v2: value of a step */
	bool fit;
	float32x4_t all[XFP_MAX_BATCH];
	float middle[XFP_MAX_BATCH]; /* v2a: contribution of the midpoints; otherwise 0 */
};

/* Sums of the current block, and of the blocks before. */
struct dot_sums {
	int32x4_t high[XFP_MAX_BATCH], middle[XFP_MAX_BATCH];
	float32x4_t all[XFP_MAX_BATCH];
};

INLINE void begin_block(unsigned tile, struct dot_sums *s)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		s->high[m] = s->middle[m] = vdupq_n_s32(0);
}

INLINE void end_block(unsigned tile, const float *step, float scale, struct dot_sums *s)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		s->all[m] = vfmaq_n_f32(s->all[m], vcvtq_f32_s32(vaddq_s32(vshlq_n_s32(s->high[m], 8), s->middle[m])),
					step[m] * scale);
}

INLINE void add_products(unsigned tile, int8x16_t high, int8x16_t low, const int8_t *bytes, struct dot_sums *s)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++) {
		int8x16_t h = vld1q_s8(bytes + 128 * m), l = vld1q_s8(bytes + 128 * m + 16);

		s->high[m] = vdotq_s32(s->high[m], high, h);
		s->middle[m] = vdotq_s32(s->middle[m], high, l);
		s->middle[m] = vdotq_s32(s->middle[m], low, h);
		/* Sum in this order: gcc would sum all of `high` first, and load activations again. */
		__asm__("" : "+w"(s->high[m]), "+w"(s->middle[m]));
	}
}

/* Parameters that are the same for all rows. */
struct dot_call {
	const uint8_t *tables;
	const struct xfp_matvec_x *x;
};

INLINE float half_at(const uint8_t *from)
{
	uint16_t half;

	memcpy(&half, from, sizeof half);
	return xfp_half_to_float(half);
}

/* The next columns of a row. */
struct dot_place {
	const uint8_t *packed, *byte; /* v2c with groups of 32: the first group of the chunk; otherwise, of the row */
	const int8_t *x;
	const float *step;
	size_t column;
};

/* Add a group's products and midpoint, v2a; `g` is the number of its 128 columns. */
INLINE void end_group(unsigned tile, const struct dot_call *call, const uint8_t *pair, const float *step, size_t g,
		      struct dot_row *row, struct dot_sums *s)
{
	float scale = half_at(pair), midpoint = half_at(pair + 2);

	end_block(tile, step, scale, s);
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		row->middle[m] += midpoint * call->x->group_sum[m * call->x->groups + g];
}

/* Process a whole chunk, and begin and end blocks unless it is half a block. */
INLINE void chunk_bytes(enum xfp_matvec_mode mode, unsigned k, unsigned tile, unsigned log2,
			const struct dot_call *call, struct dot_row *row, bool begins, bool ends, struct dot_place *at,
			struct dot_sums *s)
{
	const bool run = log2 == 5, scaled = mode == XFP_MATVEC_V2A;
	unsigned columns = xfp_chunk_columns(k), slots = columns / 64,
		 block = (scaled ? XFP_BYTES_GROUP : XFP_BYTES_BLOCK) / 64;
	uint8x16_t half[2][2][XFP_MAX_WORDS];
	struct dot_table table;

	load_halves(k, at->packed, half);
	UNROLL
	for (unsigned i = 0; i < slots; i++) {
		const float *step = at->step + i / 4 * tile;
		size_t group = 0;

		if (i % block == 0 && (begins || scaled))
			begin_block(tile, s);
		UNROLL
		for (unsigned h = 0; h < 2; h++) {
			const struct dot_table *t = mode == XFP_MATVEC_V2 ? &row->table : &table;

			group = run ? 2 * i + h : (at->column + (size_t)64 * i + 32 * h) >> log2;
			if (mode == XFP_MATVEC_V2C || (scaled && i % 2 == 0 && h == 0))
				load_table(k, call->tables + xfp_table_bytes(k) * at->byte[group], &table);
			UNROLL
			for (unsigned p = 0; p < 2; p++) {
				uint8x16_t index = slot(k, half[h][p], i);

				add_products(tile, look_up(k, t->high, index), look_up(k, t->low, index),
					     at->x + (size_t)128 * tile * i + 64 * h + 32 * p, s);
			}
		}
		if (scaled && i % 2)
			end_group(tile, call, row->stored.pair + 4 * group, step,
				  (at->column + (size_t)64 * i) / XFP_BYTES_GROUP, row, s);
		else if (!scaled && ((i + 1) % block == 0 || i + 1 == slots) && ends)
			end_block(tile, step, 1, s);
	}
	at->packed += columns / 8 * k;
	at->byte += run ? columns / 32 : 0;
	at->x += (size_t)columns * 2 * tile;
	at->column += columns;
	if (k != 4 || at->column % XFP_BYTES_BLOCK == 0)
		at->step += (columns + XFP_BYTES_BLOCK - 1) / XFP_BYTES_BLOCK * tile;
}

/* Columns of all vectors that stay in the L1 cache while a batch of rows is multiplied by them; a multiple of the
 * chunks and blocks of every k. */
#define SEGMENT_COLUMNS(tile) (8192 / (tile))

INLINE void multiply_part(enum xfp_matvec_mode mode, unsigned k, unsigned tile, unsigned log2,
			  const struct dot_call *call, struct dot_row *row, size_t column, size_t end)
{
	struct dot_place at = {
		.packed = row->stored.packed + column / 8 * k,
		.byte = row->stored.byte + (log2 == 5 ? column / 32 : 0),
		.x = call->x->bytes + column * 2 * tile,
		.step = call->x->step + column / XFP_BYTES_BLOCK * tile,
		.column = column,
	};
	struct dot_sums s;

	UNROLL
	for (unsigned m = 0; m < tile; m++)
		s.all[m] = row->all[m];
	if (k == 4)
		while (at.column + XFP_BYTES_BLOCK <= end) {
			chunk_bytes(mode, k, tile, log2, call, row, true, false, &at, &s);
			chunk_bytes(mode, k, tile, log2, call, row, false, true, &at, &s);
		}
	while (at.column < end)
		chunk_bytes(mode, k, tile, log2, call, row, true, true, &at, &s);
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		row->all[m] = s.all[m];
}

INLINE void begin_row(enum xfp_matvec_mode mode, unsigned k, unsigned tile, const struct xfp_matvec *w, size_t r,
		      struct dot_row *row)
{
	row->step = mode == XFP_MATVEC_V2 ? 0 : xfp_tables_head(w->tables)->step;
	if (mode == XFP_MATVEC_V2C)
		row->step *= xfp_row_scale(w->row[r]);
	row->fit = mode != XFP_MATVEC_V2 ||
		   make_table(k, (const uint8_t *)w->code + (r << (k + 1)), &row->table, &row->step);
	UNROLL
	for (unsigned m = 0; m < tile; m++) {
		row->all[m] = vdupq_n_f32(0);
		row->middle[m] = 0;
	}
}

INLINE void finish(unsigned tile, const struct dot_row *row, double unit, const struct xfp_matvec_x *x, bool add,
		   float *y, size_t stride)
{
	UNROLL
	for (unsigned m = 0; m < tile; m++)
		if (m < x->count) {
			double sum = (double)vaddvq_f32(row->all[m]) * row->step;
			float value = (float)((sum + row->middle[m]) * unit);

			y[m * stride] = add ? y[m * stride] + value : value;
		}
}

/* Return how many columns can be multiplied as bytes. */
static size_t columns_in_bytes(const struct xfp_matvec *w, const struct xfp_matvec_x *x)
{
	if ((w->mode == XFP_MATVEC_V2C && w->group < 5) || (w->mode == XFP_MATVEC_V2A && (w->group < 7 || !x->groups)))
		return 0;
	return x->bytes_fit ? whole_columns(w) : 0;
}

INLINE void begin_call(enum xfp_matvec_mode mode, unsigned k, const struct xfp_matvec *w, struct dot_call *call)
{
	if (mode != XFP_MATVEC_V2)
		call->tables = xfp_tables_bytes(w->tables, k);
}

#define ROW struct dot_row
#define CALL struct dot_call
#define COLUMNS columns_in_bytes(w, x)
#define IN_FLOATS xfp_matvec_neon.rows
#include "kernels/multiply/matvec_batches.h"

/* ---- instances --------------------------------------------------------------------------------- */

COPIES(multiply_batches)

static void multiply_rows(ARGUMENTS)
{
	static xfp_matvec_fn *const in_bytes[3][5][4] = { BY_K(v2), BY_K(v2a), BY_K(v2c) };

	if (columns_in_bytes(w, x))
		in_bytes[w->mode - XFP_MATVEC_V2][w->k - 2][__builtin_ctz(x->tile)](PASSED);
	else
		xfp_matvec_neon.rows(PASSED);
}

const struct xfp_matvec_set xfp_matvec_dotprod = { multiply_rows, xfp_matvec_outliers_neon, xfp_matvec_integers_dotprod,
						   xfp_panel_neon, XFP_NEON_PANEL_WIDTH };
