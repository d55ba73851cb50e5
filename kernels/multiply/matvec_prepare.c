/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_prepare.c - convert activations, once per call, to the layout that the kernels read.
 */
#include <string.h>

#include "kernels/common/lane_index.h"
#include "kernels/common/number.h"
#include "kernels/multiply/matvec.h"

#define ALIGN 64

static size_t aligned(size_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t vectors_of(unsigned k, size_t cols)
{
	size_t chunk = k ? xfp_chunk_columns(k) : 16;

	return (cols + chunk - 1) / chunk * (chunk / 16);
}

static unsigned tile_of(unsigned count)
{
	return count <= 2 ? count : count <= 4 ? 4 : 8;
}

static size_t blocks_of(size_t vectors, unsigned tile)
{
	size_t block = (tile >= XFP_WORDS_TILE ? XFP_WORDS_BLOCK : XFP_BYTES_BLOCK) / 16;

	return (vectors + block - 1) / block;
}

#define SUMS_AT 40      /* bytes of sixteen columns as integers; with AVX2, and a quarter of the step */
#define VECTOR_BYTES 48 /* that, and a quarter of the sums */

static size_t groups_of(unsigned k, size_t cols)
{
	return k && cols % xfp_chunk_columns(k) == 0 ? (cols / XFP_BYTES_GROUP + 15) / 16 * 16 : 0;
}

size_t xfp_matvec_x_bytes(unsigned k, size_t cols, unsigned count)
{
	size_t vectors = vectors_of(k, cols);
	unsigned tile = tile_of(count);

	return aligned(count * cols * sizeof(float)) + aligned(vectors * tile * 16 * sizeof(float)) +
	       aligned(vectors * tile * VECTOR_BYTES) + aligned(blocks_of(vectors, tile) * tile * sizeof(float)) +
	       4 * groups_of(k, cols) * tile * sizeof(float);
}

/* Whether lane order is natural order: one vector, all of whose chunks have sixteen lanes. */
static bool lanes_are_natural(const struct xfp_matvec_x *x)
{
	return x->tile == 1 && x->vectors * 16 == x->cols;
}

/* Convert a vector from natural order to lane order. */
static void spread(const struct xfp_matvec_x *x, unsigned m, const float *from)
{
	size_t chunk = x->k ? xfp_chunk_columns(x->k) : 16, vector = 0, left = x->cols;

	for (; left >= chunk; left -= chunk)
		for (size_t end = vector + chunk / 16; vector < end; vector++, from += 16)
			memcpy(x->lanes + (vector * x->tile + m) * 16, from, 16 * sizeof *from);
	for (size_t v = 0, lanes = x->k ? xfp_chunk_lanes(x->k, left) : 16; v < chunk / 16 && left; v++) {
		size_t at = v * lanes, here = at >= left ? 0 : left - at < lanes ? left - at : lanes;

		memcpy(x->lanes + ((vector + v) * x->tile + m) * 16, from + at, here * sizeof *from);
	}
}

/* x *= down */
static void balance(float *restrict x, const float *restrict down, size_t cols)
{
	size_t c = 0;

	for (; c + 16 <= cols; c += 16)
		for (size_t i = 0; i < 16; i++)
			x[c + i] *= down[c + i];
	for (; c < cols; c++)
		x[c] *= down[c];
}

void xfp_matvec_x_init(struct xfp_matvec_x *x, unsigned k, size_t cols, unsigned count, int dtype, const void *source,
		       size_t stride, const float *down, void *buffer)
{
	size_t size = dtype == 1 ? 4 : 2; /* F32 of base/dtype.h */
	size_t lane_bytes;
	uint8_t *at = buffer;

	*x = (struct xfp_matvec_x){
		.cols = cols, .k = k, .count = count, .tile = tile_of(count), .set = xfp_matvec_set()
	};
	x->vectors = vectors_of(k, cols);
	lane_bytes = aligned(x->vectors * x->tile * 16 * sizeof(float));
	x->natural = (float *)(void *)at;
	at += aligned(count * cols * sizeof(float));
	x->lanes = (float *)(void *)at;
	at += lane_bytes;
	x->bytes = (int8_t *)at;
	x->words = (int16_t *)(void *)at;
	x->sums = (float *)(void *)(at + x->vectors * x->tile * SUMS_AT);
	at += aligned(x->vectors * x->tile * VECTOR_BYTES);
	x->step = (float *)(void *)at;
	at += aligned(blocks_of(x->vectors, x->tile) * x->tile * sizeof(float));
	x->groups = groups_of(k, cols);
	x->group_step = (float *)(void *)at;
	x->group_offset = x->group_step + x->groups * x->tile;
	x->narrow_group_offset = x->group_offset + x->groups * x->tile;
	x->group_sum = x->narrow_group_offset + x->groups * x->tile;
	memset(at, 0, 4 * x->groups * x->tile * sizeof(float));
	if (lanes_are_natural(x))
		x->lanes = x->natural;
	else
		memset(x->lanes, 0, lane_bytes);
	for (unsigned m = 0; m < count; m++) {
		float *natural = x->natural + m * cols;

		xfp_to_float(dtype, (const uint8_t *)source + m * stride * size, cols, natural);
		if (down)
			balance(natural, down, cols);
		if (x->lanes != x->natural)
			spread(x, m, natural);
	}
	x->bytes_fit = k && x->set->integers && x->set->integers(x);
}
