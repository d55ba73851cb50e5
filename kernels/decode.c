/* SPDX-License-Identifier: Apache-2.0 */
#include "decode.h"

#include <string.h>

#include "index.h"
#include "number.h"

#define MAX_ENTRIES 64
#define CHUNK 480 /* a multiple of every k's indices per word, so that chunks begin at words */

void xfp_decode_v2(unsigned k, const uint8_t *packed, const uint16_t *codebook, size_t cols, float *x)
{
	float entry[MAX_ENTRIES];
	uint8_t index[CHUNK];

	for (unsigned i = 0; i < 1u << k; i++)
		entry[i] = xfp_half_to_float(codebook[i]);
	for (size_t c = 0; c < cols; c += CHUNK) {
		size_t count = cols - c < CHUNK ? cols - c : CHUNK;

		xfp_index_unpack(k, packed, count, index);
		for (size_t i = 0; i < count; i++)
			x[c + i] = entry[index[i]];
		packed += CHUNK / xfp_index_slots[k] * xfp_index_word_bytes[k];
	}
}

void xfp_decode_outliers(const void *column, int wide, const uint16_t *residual, size_t count, float *x)
{
	const unsigned char *bytes = column;

	for (size_t i = 0; i < count; i++) {
		uint32_t c = 0;

		memcpy(&c, bytes + i * (wide ? 4 : 2), wide ? 4 : 2);
		x[c] += xfp_half_to_float(residual[i]);
	}
}

void xfp_decode_fp8(const uint8_t *code, float scale, size_t cols, float *w)
{
	for (size_t c = 0; c < cols; c++)
		w[c] = xfp_e4m3_to_float(code[c]) * scale;
}
