/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/decode.h"

#include <string.h>

#include "kernels/common/lane_index.h"
#include "kernels/common/number.h"
#include "kernels/common/scale.h"

#define MAX_ENTRIES 64
#define PIECE 1024 /* columns; a multiple of every chunk and group size */

/* Look up columns that share their entries; `index` points to the index of the first column. */
static inline void look_up(const float *value, const uint8_t *index, size_t count, float *x)
{
	for (size_t i = 0; i < count; i++)
		x[i] = value[index[i]];
}

/* Unpack the indices of a piece if column c begins one. */
static inline void unpack_piece(unsigned k, const uint8_t *packed, size_t c, size_t cols, uint8_t index[PIECE])
{
	if (c % PIECE == 0)
		xfp_lane_index_unpack(k, packed + c / 8 * k, cols - c < PIECE ? cols - c : PIECE, index);
}

void xfp_decode_halves(const uint16_t *half, size_t count, float *value)
{
	for (size_t i = 0; i < count; i++)
		value[i] = xfp_half_to_float(half[i]);
}

bool xfp_decode_v2a(const struct xfp_library *library, const uint8_t *packed, const uint16_t *pair,
		    const uint8_t *number, size_t cols, float *x)
{
	size_t columns = (size_t)1 << library->group, entries = (size_t)1 << library->k;
	uint8_t index[PIECE];
	float value[MAX_ENTRIES];

	for (size_t c = 0; c < cols; c += columns, pair += 2, number++) {
		float scale = xfp_half_to_float(pair[0]), midpoint = xfp_half_to_float(pair[1]);
		const float *entry;

		if (*number >= library->codebooks)
			return false;
		entry = library->entry + *number * entries;
		for (size_t i = 0; i < entries; i++)
			value[i] = xfp_scaled_value(entry[i], scale, midpoint);
		unpack_piece(library->k, packed, c, cols, index);
		look_up(value, index + c % PIECE, cols - c < columns ? cols - c : columns, x + c);
	}
	return true;
}

void xfp_decode_v2c(const struct xfp_library *library, const uint8_t *packed, const uint8_t *group, uint8_t row,
		    size_t cols, float *x)
{
	size_t columns = (size_t)1 << library->group, entries = (size_t)1 << library->k;
	unsigned ratios = 256 / library->codebooks;
	float scale = 0x1p14f * xfp_balance_down(row);
	uint8_t index[PIECE];
	float value[MAX_ENTRIES];

	for (size_t c = 0; c < cols; c += columns, group++) {
		const float *entry = library->entry + *group / ratios * entries;
		float ratio = library->ratio[*group % ratios];
		size_t count = cols - c < columns ? cols - c : columns;

		unpack_piece(library->k, packed, c, cols, index);
		/* The product of two fp16 numbers is exact in f32. Scale entries or columns, whichever are fewer. */
		if (entries > columns) {
			for (size_t i = 0; i < count; i++)
				x[c + i] = entry[index[(c + i) % PIECE]] * ratio * scale;
			continue;
		}
		for (size_t i = 0; i < entries; i++)
			value[i] = entry[i] * ratio * scale;
		look_up(value, index + c % PIECE, count, x + c);
	}
}

void xfp_decode_fp8(const uint8_t *code, float scale, size_t cols, float *w)
{
	for (size_t c = 0; c < cols; c++)
		w[c] = xfp_e4m3_to_float(code[c]) * scale;
}
