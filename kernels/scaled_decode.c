/* SPDX-License-Identifier: Apache-2.0 */
#include "scaled_decode.h"

#include "number.h"

void xfp_scaled_decode_row(unsigned k, const float *library, const uint8_t *entry, const uint16_t *scale,
			   const uint16_t *midpoint, const uint8_t *index, size_t cols, unsigned length, float *value)
{
	for (size_t first = 0, g = 0; first < cols; first += length, g++) {
		size_t end = cols - first < length ? cols : first + length;
		const float *codebook = library + ((size_t)entry[g] << k);
		float s = xfp_half_to_float(scale[g]), m = xfp_half_to_float(midpoint[g]), d[64];

		for (unsigned j = 0; j < 1u << k; j++)
			d[j] = xfp_scaled_value(codebook[j], s, m);
		for (size_t c = first; c < end; c++)
			value[c] = d[index[c]];
	}
}
