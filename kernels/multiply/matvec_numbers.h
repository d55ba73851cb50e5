/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_numbers.h - rows without codebooks, f32 to fp8. A part of matvec_rows.h; uses its sums.
 */
#ifndef XFP_MATVEC_NUMBERS_H
#define XFP_MATVEC_NUMBERS_H

/* Return the row's scale, and process the last columns if they are fewer than sixteen. */
INLINE double row_factor(enum xfp_matvec_mode mode, const struct xfp_matvec *w, size_t row)
{
	float scale;

	if (mode != XFP_MATVEC_FP8)
		return w->unit;
	memcpy(&scale, (const uint8_t *)w->code + row * sizeof scale, sizeof scale);
	return w->unit * (scale * 0x1p8); /* numbers are 1/256 of their value */
}

INLINE void last_numbers(enum xfp_matvec_mode mode, unsigned tile, const uint8_t *from, size_t left, const float *lanes,
			 struct sums *sums)
{
	uint8_t last[64] = { 0 };

	memcpy(last, from, left * element_bytes(mode));
	add_weights(tile, 0, stored_numbers(mode, last), lanes, sums);
}

INLINE void number_rows(enum xfp_matvec_mode mode, unsigned tile, const struct xfp_matvec *w,
			const struct xfp_matvec_x *x, size_t first, size_t rows, bool add, float *y, size_t stride)
{
	size_t size = element_bytes(mode);

	for (size_t r = first; r < first + rows; r++) {
		const uint8_t *from = w->index + r * w->row_bytes;
		const float *lanes = x->lanes;
		struct sums sums;
		size_t c = 0;

		clear(tile, &sums);
		for (; c + 64 <= w->cols; c += 64, from += 64 * size, lanes += (size_t)64 * tile) {
			UNROLL
			for (unsigned v = 0; v < 4; v++)
				add_weights(tile, v, stored_numbers(mode, from + 16 * v * size),
					    lanes + (size_t)16 * v * tile, &sums);
			UNROLL
			for (unsigned line = 0; line < size; line++)
				m_prefetch(from + 64 * line);
		}
		for (; c + 16 <= w->cols; c += 16, from += 16 * size, lanes += (size_t)16 * tile)
			add_weights(tile, 0, stored_numbers(mode, from), lanes, &sums);
		if (c < w->cols)
			last_numbers(mode, tile, from, w->cols - c, lanes, &sums);
		finish(tile, &sums, row_factor(mode, w, r), x, add, y + (r - first), stride);
	}
}

/* Four or eight vectors: rows take turns on a segment of the vectors that stays in the L1 cache, and a few rows share
 * each load. Matrices that were decoded to f32 use this, too. */
#define BATCH_ROWS 12
#define BATCH_COLUMNS(tile) (6144 / (tile))
#ifndef ROWS_AT_ONCE
#define ROWS_AT_ONCE 1
#define m_hold(a) ((void)(a))
#endif

INLINE void many_part(enum xfp_matvec_mode mode, unsigned tile, unsigned count, const uint8_t *from, size_t row_bytes,
		      size_t columns, const float *lanes, struct sums *sums)
{
	struct sums here[ROWS_AT_ONCE];

	UNROLL
	for (unsigned i = 0; i < count; i++)
		here[i] = sums[i];
	for (; columns >= 16; columns -= 16, from += 16 * element_bytes(mode), lanes += (size_t)16 * tile) {
		vf weight[ROWS_AT_ONCE];

		UNROLL
		for (unsigned i = 0; i < count; i++) {
			weight[i] = stored_numbers(mode, from + i * row_bytes);
			m_prefetch(from + i * row_bytes);
		}
		UNROLL
		for (unsigned m = 0; m < tile; m++) {
			vf vector = vf_load(lanes + (size_t)16 * m);

			m_hold(vector);
			UNROLL
			for (unsigned i = 0; i < count; i++)
				here[i].of[m] = vf_fma(weight[i], vector, here[i].of[m]);
		}
	}
	UNROLL
	for (unsigned i = 0; i < count; i++)
		sums[i] = here[i];
}

INLINE void many_rows(enum xfp_matvec_mode mode, unsigned tile, const struct xfp_matvec *w,
		      const struct xfp_matvec_x *x, size_t first, size_t rows, bool add, float *y, size_t stride)
{
	size_t size = element_bytes(mode), row_bytes = w->row_bytes, whole = w->cols / 16 * 16;

	for (size_t r = first, batch; r < first + rows; r += batch) {
		const uint8_t *from = w->index + r * row_bytes;
		struct sums sums[BATCH_ROWS];

		batch = first + rows - r < BATCH_ROWS ? first + rows - r : BATCH_ROWS;
		for (size_t i = 0; i < batch; i++)
			clear(tile, &sums[i]);
		for (size_t c = 0, columns; c < whole; c += columns) {
			size_t i = 0;

			columns = whole - c < BATCH_COLUMNS(tile) ? whole - c : BATCH_COLUMNS(tile);
			for (; i + ROWS_AT_ONCE <= batch; i += ROWS_AT_ONCE)
				many_part(mode, tile, ROWS_AT_ONCE, from + i * row_bytes + c * size, row_bytes, columns,
					  x->lanes + c * tile, &sums[i]);
			for (; i < batch; i++)
				many_part(mode, tile, 1, from + i * row_bytes + c * size, row_bytes, columns,
					  x->lanes + c * tile, &sums[i]);
		}
		for (size_t i = 0; i < batch; i++) {
			if (whole < w->cols)
				last_numbers(mode, tile, from + i * row_bytes + whole * size, w->cols - whole,
					     x->lanes + whole * tile, &sums[i]);
			finish(tile, &sums[i], row_factor(mode, w, r + i), x, add, y + (r + i - first), stride);
		}
	}
}

#endif
