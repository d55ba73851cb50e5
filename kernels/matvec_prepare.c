/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_prepare.c - activations and libraries, once a call, as the kernels read them.
 */
#include <string.h>

#include "lane_index.h"
#include "matvec.h"
#include "matvec_tables.h"
#include "number.h"
#include "round.h"

#define BLOCK_VECTORS 16 /* of bytes: 256 columns */
#define MOST_BYTES 32512 /* 127 * 256, so that the low byte of the largest is 0, of a row of equal ones too */
#define PAIR_VECTORS 8   /* of words: 128 columns */
#define MOST_WORD 16384  /* so that eight products of two are at most 2^31 */
#define ALIGN 64

static size_t aligned(size_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

size_t xfp_matvec_row_bytes(enum xfp_matvec_mode mode, unsigned k, size_t cols)
{
	switch (mode) {
	case XFP_MATVEC_F32:
		return cols * 4;
	case XFP_MATVEC_F16:
	case XFP_MATVEC_BF16:
		return cols * 2;
	case XFP_MATVEC_FP8:
		return cols;
	default:
		return ((cols + 31) / 32 * 4 * k + 15) / 16 * 16;
	}
}

void xfp_matvec_whole(struct xfp_matvec *w)
{
	w->row_bytes = xfp_matvec_row_bytes(w->mode, w->k, w->cols);
	w->row_groups = (w->cols + ((size_t)1 << w->group) - 1) >> w->group;
}

/* ---- activations ------------------------------------------------------------------------------- */

static size_t vectors_of(unsigned k, size_t cols)
{
	size_t chunk = k ? xfp_chunk_columns(k) : 16;

	return (cols + chunk - 1) / chunk * (chunk / 16);
}

static unsigned tile_of(unsigned count)
{
	return count <= 2 ? count : count <= 4 ? 4 : 8;
}

/* From four vectors on, words. */
static bool in_words(unsigned tile)
{
	return tile >= 4;
}

static size_t blocks_of(size_t vectors, unsigned tile)
{
	size_t block = in_words(tile) ? PAIR_VECTORS : BLOCK_VECTORS;

	return (vectors + block - 1) / block;
}

#define GROUP 128 /* columns, of v2a in bytes */

static size_t groups_of(unsigned k, size_t cols)
{
	return k && cols % xfp_chunk_columns(k) == 0 ? (cols / GROUP + 15) / 16 * 16 : 0;
}

size_t xfp_matvec_x_room(unsigned k, size_t cols, unsigned count)
{
	size_t vectors = vectors_of(k, cols);
	unsigned tile = tile_of(count);

	return aligned(count * cols * sizeof(float)) + aligned(vectors * tile * 16 * sizeof(float)) +
	       aligned(vectors * tile * 32) + aligned(blocks_of(vectors, tile) * tile * sizeof(float)) +
	       3 * groups_of(k, cols) * tile * sizeof(float);
}

/* One vector in natural order to its lanes. */
static void spread(const struct xfp_matvec_x *x, unsigned m, const float *from)
{
	size_t chunk = x->k ? xfp_chunk_columns(x->k) : 16, vector = 0;

	for (size_t left = x->cols; left; vector += chunk / 16) {
		size_t lanes = x->k ? xfp_chunk_lanes(x->k, left) : 16, count = left < chunk ? left : chunk;

		for (size_t v = 0; v < chunk / 16; v++) {
			size_t at = v * lanes, here = at >= count ? 0 : count - at < lanes ? count - at : lanes;

			memcpy(x->lanes + ((vector + v) * x->tile + m) * 16, from + at, here * sizeof *from);
		}
		from += count;
		left -= count;
	}
}

#define TOO_LARGE 0x1p120f

/* The largest magnitude; TOO_LARGE for what is larger or NaN. */
static float larger(float most, float value)
{
	value = value < 0 ? -value : value;
	return !(value < TOO_LARGE) ? TOO_LARGE : value > most ? value : most;
}

static float largest(const struct xfp_matvec_x *x, unsigned m, size_t first, size_t end)
{
	float most = 0;

	for (size_t v = first; v < end; v++)
		for (size_t i = 0; i < 16; i++)
			most = larger(most, x->lanes[(v * x->tile + m) * 16 + i]);
	return most;
}

static void make_group(struct xfp_matvec_x *x, unsigned m, size_t g)
{
	float step = x->step[g * GROUP / 256 * x->tile + m];
	int64_t offset = 0;
	double sum = 0;

	for (size_t v = g * GROUP / 16; v < (g + 1) * GROUP / 16; v++) {
		const int8_t *bytes = x->bytes + (v / 4 * x->tile + m) * 128 + v % 4;

		for (size_t i = 0; i < 16; i++) {
			sum += x->lanes[(v * x->tile + m) * 16 + i];
			offset += 32768 * (256 * (int64_t)bytes[4 * i] + bytes[4 * i + 64]) - 128 * bytes[4 * i + 64];
		}
	}
	x->group_step[m * x->groups + g] = step;
	x->group_offset[m * x->groups + g] = (float)((double)step * 0x1p-8 * (double)offset);
	x->group_sum[m * x->groups + g] = (float)sum;
}

static bool make_bytes(struct xfp_matvec_x *x, unsigned m)
{
	for (size_t b = 0; b < blocks_of(x->vectors, x->tile); b++) {
		size_t first = b * BLOCK_VECTORS,
		       end = first + BLOCK_VECTORS < x->vectors ? first + BLOCK_VECTORS : x->vectors;
		float most = largest(x, m, first, end);
		float step = most / MOST_BYTES, per_step = most >= 0x1p-100f ? MOST_BYTES / most : 0;
		int64_t sum = 0;

		if (most == TOO_LARGE)
			return false;
		for (size_t v = first; v < end; v++) {
			const float *lane = x->lanes + (v * x->tile + m) * 16;
			int8_t *to = x->bytes + (v / 4 * x->tile + m) * 128 + v % 4;

			for (size_t i = 0; i < 16; i++) {
				int value = (int)xfp_round_even((double)lane[i] * per_step);
				int high = (value + 128) >> 8, low = value - high * 256;

				to[4 * i] = (int8_t)high;
				to[4 * i + 64] = (int8_t)low;
				/* What the kernels leave out, the low byte of a weight times this one, is on
				 * average 128 times it. */
				sum += 32768 * (int64_t)value - 128 * low;
			}
		}
		x->step[b * x->tile + m] = step * 0x1p8f;
		x->offset[m] += (double)step * (double)sum;
	}
	for (size_t g = 0; x->groups && g < x->cols / GROUP; g++)
		make_group(x, m, g);
	return true;
}

/* What is of one 16-byte part of 64 columns, as it is looked up, is eight words of the first 32 and eight of the
 * second. */
static bool make_words(struct xfp_matvec_x *x, unsigned m)
{
	for (size_t b = 0; b < blocks_of(x->vectors, x->tile); b++) {
		size_t first = b * PAIR_VECTORS, end = first + PAIR_VECTORS;
		float most = largest(x, m, first, end), per_step = most >= 0x1p-100f ? MOST_WORD / most : 0;

		if (most == TOO_LARGE)
			return false;
		for (size_t v = first; v < end; v++) {
			const float *lane = x->lanes + (v * x->tile + m) * 16;
			int16_t *to = x->words + (v / 4 * x->tile + m) * 64 + v % 4;

			for (size_t i = 0; i < 16; i++)
				to[i / 4 * 8 + i % 2 * 4 + i / 2 % 2 * 32] =
					(int16_t)xfp_round_even((double)lane[i] * per_step);
		}
		x->step[b * x->tile + m] = most / MOST_WORD;
	}
	for (size_t g = 0; x->groups && g < x->cols / GROUP; g++) {
		double sum = 0;

		for (size_t v = g * PAIR_VECTORS; v < (g + 1) * PAIR_VECTORS; v++)
			for (size_t i = 0; i < 16; i++)
				sum += x->lanes[(v * x->tile + m) * 16 + i];
		x->group_sum[g * x->tile + m] = (float)sum;
	}
	return true;
}

void xfp_matvec_x_init(struct xfp_matvec_x *x, unsigned k, size_t cols, unsigned count, int dtype, const void *source,
		       size_t stride, const float *down, void *room)
{
	size_t size = dtype == 1 ? 4 : 2; /* F32 of base/dtype.h */
	size_t lane_bytes;
	uint8_t *at = room;

	*x = (struct xfp_matvec_x){ .cols = cols, .k = k, .count = count, .tile = tile_of(count) };
	x->vectors = vectors_of(k, cols);
	lane_bytes = aligned(x->vectors * x->tile * 16 * sizeof(float));
	x->natural = (float *)(void *)at;
	at += aligned(count * cols * sizeof(float));
	x->lanes = (float *)(void *)at;
	at += lane_bytes;
	x->bytes = (int8_t *)at;
	x->words = (int16_t *)(void *)at;
	at += aligned(x->vectors * x->tile * 32);
	x->step = (float *)(void *)at;
	at += aligned(blocks_of(x->vectors, x->tile) * x->tile * sizeof(float));
	x->groups = groups_of(k, cols);
	x->group_step = (float *)(void *)at;
	x->group_offset = x->group_step + x->groups * x->tile;
	x->group_sum = x->group_offset + x->groups * x->tile;
	memset(at, 0, 3 * x->groups * x->tile * sizeof(float));
	memset(x->lanes, 0, lane_bytes);
	for (unsigned m = 0; m < count; m++) {
		float *natural = x->natural + m * cols;

		xfp_to_float(dtype, (const uint8_t *)source + m * stride * size, cols, natural);
		for (size_t c = 0; down && c < cols; c++)
			natural[c] *= down[c];
		spread(x, m, natural);
	}
	x->bytes_fit = k != 0;
	memset(x->bytes, 0, x->vectors * x->tile * 32);
	for (unsigned m = 0; x->bytes_fit && m < x->tile; m++)
		x->bytes_fit = in_words(x->tile) ? make_words(x, m) : make_bytes(x, m);
}

/* ---- libraries --------------------------------------------------------------------------------- */

size_t xfp_matvec_tables_room(unsigned k)
{
	return sizeof(struct xfp_tables_head) + XFP_TABLES_ALL * ((sizeof(float) << k) + 2 * xfp_table_bytes(k));
}

/* Every entry by steps of `most` / `steps`, `offset` added. */
static void tables_of(unsigned k, unsigned made, const float *value, double most, double steps, int offset,
		      uint8_t *bytes)
{
	size_t half = xfp_table_half(k);

	for (unsigned t = 0; t < made; t++)
		for (size_t i = 0; i < half; i++) {
			double exact = most > 0 ? value[(t << k) + i % ((size_t)1 << k)] * steps / most : 0;
			unsigned q = (unsigned)(offset + (int)xfp_round_even(exact));

			bytes[2 * half * t + i] = (uint8_t)(q >> 8);
			bytes[2 * half * t + half + i] = (uint8_t)q;
		}
}

void xfp_matvec_tables(unsigned k, unsigned codebooks, const uint16_t *entry, const uint16_t *ratio, void *room)
{
	struct xfp_tables_head *head = room;
	float *value = (float *)(void *)(head + 1), most = 0;
	uint8_t *bytes = (uint8_t *)(value + ((size_t)XFP_TABLES_ALL << k));
	unsigned ratios = ratio ? 256 / codebooks : 1, entries = 1u << k, made = codebooks * ratios;

	memset(room, 0, xfp_matvec_tables_room(k));
	for (unsigned i = 0; i < (unsigned)XFP_TABLES_ALL << k; i++) {
		unsigned table = i >> k;
		/* Exact: both have eleven bits. */
		value[i] = table >= made ? __builtin_nanf("")
					 : xfp_half_to_float(entry[(table / ratios << k) + i % entries]) *
						   (ratio ? xfp_half_to_float(ratio[table % ratios]) : 1);
		if (table < made)
			most = larger(most, value[i]);
	}
	head->step = most / 32767;
	head->word_step = most / MOST_WORD;
	head->bytes_fit = most < TOO_LARGE;
	if (!head->bytes_fit)
		return;
	tables_of(k, made, value, most, 32767, 32768, bytes);
	tables_of(k, made, value, most, MOST_WORD, 0, bytes + XFP_TABLES_ALL * xfp_table_bytes(k));
}
