/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_vbmi.c - v2c with 16-bit entries, on the bytes of matvec_bytes.h; and the choice of a kernel.
 */
#include "kernels/multiply/matvec_bytes.h"
#include "kernels/multiply/matvec_instances.h"

/* ---- v2c --------------------------------------------------------------------------------------- */

INLINE void v2c_rest(unsigned k, unsigned tile, const uint8_t *tables, const struct rest *rest, const uint8_t *byte,
		     const uint8_t *packed, const int8_t *bytes, const float *step, struct byte_sums *s)
{
	unsigned slots = xfp_lane_columns(k) / 4;
	__m512i w[XFP_MAX_WORDS];

	load_words(k, packed, rest->lanes, PREFETCH_AHEAD, w);
	UNROLL
	for (unsigned i = 0; i < slots; i++) {
		__m512i high, low;

		look_up_rest(k, tables, rest->part[i], byte, slot(k, w, i), &high, &low);
		if (i % BLOCK_SLOTS == 0)
			begin_block(tile, s);
		add_products(tile, high, low, bytes + (size_t)128 * tile * i, s);
		if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == slots)
			end_block(tile, false, step + (size_t)i / BLOCK_SLOTS * tile, s);
	}
}

/* Rows that share the loads of the vectors: as many as their sums leave registers for. With a sanitizer, compiling that
 * much unrolled code takes minutes. */
#ifdef __SANITIZE_ADDRESS__
#define MAX_ROWS 2
#else
#define MAX_ROWS 4
#endif
#define GROUPS_AHEAD 1024

struct v2c_row {
	const uint8_t *packed, *byte; /* at the next column; at the first column */
	struct byte_sums sums;
};

/* Return the bytes of the groups of some columns, as if groups had 32 columns. */
INLINE uint64_t groups_of(unsigned group, unsigned log2, const uint8_t *byte, size_t column, unsigned count)
{
	uint64_t of = 0;

	if (group)
		memcpy(&of, byte + column / 32, count);
	else
		for (unsigned i = 0; i < count; i++)
			of |= (uint64_t)byte[(column + (size_t)32 * i) >> log2] << 8 * i;
	return of;
}

/* Process whole chunks that form blocks; the last chunk of k = 4 may be half a block, which is scaled like the others.
 * `group` is 5 for groups of 32 columns, or 0 for longer ones. */
INLINE void v2c_chunks(unsigned k, unsigned tile, unsigned group, unsigned at_once, unsigned chunks, unsigned log2,
		       const uint8_t *tables, size_t column, const int8_t *bytes, const float *step, size_t ahead,
		       struct v2c_row *row)
{
	unsigned slots = xfp_lane_columns(k) / 4, size = xfp_table_bytes(k);
	__m512i word[MAX_ROWS][XFP_MAX_WORDS];
	uint64_t of[MAX_ROWS];

	UNROLL
	for (unsigned i = 0; i < chunks * slots; i++) {
		UNROLL
		for (unsigned r = 0; r < at_once; r++) {
			__m512i high, low;

			if (i % slots == 0)
				load_words(k, row[r].packed + (size_t)8 * k * i, 16, ahead, word[r]);
			if (i % BLOCK_SLOTS == 0) {
				begin_block(tile, &row[r].sums);
				/* In a register, split by shifts, because loads are the bottleneck. */
				of[r] = groups_of(group, log2, row[r].byte, column + (size_t)64 * i,
						  chunks * slots < BLOCK_SLOTS ? 4 : 8);
			}
			look_up_two(k, tables + size * (of[r] & 255), tables + size * (of[r] >> 8 & 255),
				    slot(k, word[r], i % slots), &high, &low);
			of[r] >>= 16;
			add_products(tile, high, low, bytes + (size_t)128 * tile * i, &row[r].sums);
			if ((i + 1) % BLOCK_SLOTS == 0 || i + 1 == chunks * slots)
				end_block(tile, false, step + (size_t)i / BLOCK_SLOTS * tile, &row[r].sums);
		}
	}
	UNROLL
	for (unsigned r = 0; r < at_once; r++)
		row[r].packed += (size_t)8 * k * chunks * slots;
}

/* Process up to `at_once` rows; if there are fewer, the last one is repeated. */
INLINE void v2c_some(unsigned k, unsigned tile, unsigned group, unsigned at_once, const struct xfp_matvec *w,
		     const struct xfp_matvec_x *x, const struct rest *rest, size_t first, size_t rows, bool add,
		     float *y, size_t stride)
{
	size_t chunk = xfp_chunk_columns(k), whole = w->cols / chunk * chunk, c = 0;
	size_t step = k == 4 ? 2 * chunk : chunk, others = (at_once - 1) * w->row_bytes;
	const uint8_t *tables = xfp_tables_bytes(w->tables, k);
	struct v2c_row row[MAX_ROWS];

	UNROLL
	for (unsigned r = 0; r < at_once; r++) {
		size_t number = first + (r < rows ? r : rows - 1);

		row[r].packed = w->index + number * w->row_bytes;
		row[r].byte = w->byte + number * w->row_groups;
		UNROLL
		for (unsigned m = 0; m < tile; m++)
			row[r].sums.all[m] = _mm512_setzero_ps();
		for (size_t i = 0; i < w->row_groups; i += 64)
			_mm_prefetch((const char *)row[r].byte + i + GROUPS_AHEAD, _MM_HINT_T0);
	}
	for (; c + step <= whole; c += step) {
		/* After the end of a row come the other rows of the batch. */
		size_t ahead = PREFETCH_AHEAD + (c / 8 * k + PREFETCH_AHEAD < w->row_bytes ? 0 : others);

		v2c_chunks(k, tile, group, at_once, k == 4 ? 2 : 1, w->group, tables, c, x->bytes + 2 * c * tile,
			   x->step + c / 256 * tile, ahead, row);
	}
	if (k == 4 && c < whole)
		v2c_chunks(4, tile, group, at_once, 1, w->group, tables, c, x->bytes + 2 * c * tile,
			   x->step + c / 256 * tile, PREFETCH_AHEAD + others, row);
	UNROLL
	for (unsigned r = 0; r < at_once; r++)
		if (r < rows) {
			double scale = (double)xfp_tables_head(w->tables)->step * xfp_row_scale(w->row[first + r]);

			if (rest->lanes)
				v2c_rest(k, tile, tables, rest, row[r].byte, row[r].packed, x->bytes + 2 * whole * tile,
					 x->step + whole / 256 * tile, &row[r].sums);
			finish(tile, row[r].sums.all, w->unit * scale, x->offset, x, add, y + r, stride);
		}
}

INLINE void v2c_rows(unsigned k, unsigned tile, unsigned group, const struct xfp_matvec *w,
		     const struct xfp_matvec_x *x, size_t first, size_t rows, bool add, float *y, size_t stride)
{
	size_t chunk = xfp_chunk_columns(k), whole = w->cols / chunk * chunk;
	unsigned at_once = !group ? 1 : tile == 1 ? MAX_ROWS : MAX_ROWS / 2;
	struct rest rest;

	divide_rest(k, w->group, whole, w->cols, &rest);
	for (size_t r = 0; r < rows; r += at_once)
		v2c_some(k, tile, group, at_once, w, x, &rest, first + r, rows - r, add, y + r, stride);
}

/* ---- instances --------------------------------------------------------------------------------- */

#define COPY(k, tile)                          \
	static void v2_##k##_##tile(ARGUMENTS) \
	{                                      \
		v2_rows(k, tile, PASSED);      \
	}
#define COPY_V2C(k, tile)                             \
	static void v2c_##k##_##tile(ARGUMENTS)       \
	{                                             \
		if (w->group == 5)                    \
			v2c_rows(k, tile, 5, PASSED); \
		else                                  \
			v2c_rows(k, tile, 0, PASSED); \
	}
#define COPY_V2A(k, tile)                         \
	static void v2a_##k##_##tile(ARGUMENTS)   \
	{                                         \
		v2a_rows(k, tile, false, PASSED); \
	}
#define COPIES(k, tile) COPY(k, tile) COPY_V2C(k, tile) COPY_V2A(k, tile)
#define COPIES_OF_K(k) COPIES(k, 1) COPIES(k, 2)
COPIES_OF_K(2)
COPIES_OF_K(3)
COPIES_OF_K(4)
COPIES_OF_K(5)
COPIES_OF_K(6)

#define BY_K(name)                                                                                  \
	{                                                                                           \
		{ name##_2_1, name##_2_2 }, { name##_3_1, name##_3_2 }, { name##_4_1, name##_4_2 }, \
			{ name##_5_1, name##_5_2 }, { name##_6_1, name##_6_2 },                     \
	}

static bool bytes_fit(const struct xfp_matvec *w, const struct xfp_matvec_x *x)
{
	switch (w->mode) {
	case XFP_MATVEC_V2:
		return x->bytes_fit;
	case XFP_MATVEC_V2C:
		return x->bytes_fit && w->group >= 5 && xfp_tables_head(w->tables)->bytes_fit;
	case XFP_MATVEC_V2A:
		return x->bytes_fit && x->groups && w->group == 7 && xfp_tables_head(w->tables)->bytes_fit;
	default:
		return false;
	}
}

static bool narrow_fit(const struct xfp_matvec *w)
{
	return w->mode != XFP_MATVEC_V2 && xfp_tables_head(w->tables)->narrow_fit;
}

static void multiply_rows(ARGUMENTS)
{
	static xfp_matvec_fn *const in_bytes[3][5][2] = { BY_K(v2), BY_K(v2a), BY_K(v2c) };

	if (!bytes_fit(w, x))
		xfp_matvec_avx512.rows(PASSED);
	else if (x->tile > 2)
		xfp_matvec_words(PASSED);
	else if (narrow_fit(w))
		xfp_matvec_narrow(PASSED);
	else
		in_bytes[w->mode - XFP_MATVEC_V2][w->k - 2][x->tile - 1](PASSED);
}

const struct xfp_matvec_set xfp_matvec_vbmi = { multiply_rows, xfp_matvec_outliers_avx512, xfp_matvec_integers,
						xfp_panel_avx512, XFP_AVX512_PANEL_WIDTH };
