/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/encode/assign.h"

#include <string.h>

#include "kernels/common/number.h"
#include "kernels/encode/encode.h"

/* Return the largest f32 not above value, so that x <= value and x <= floor_float(value) agree for f32 x. */
static float floor_float(double value)
{
	float nearest = (float)value;
	uint32_t bits;

	if (nearest <= value)
		return nearest;
	memcpy(&bits, &nearest, sizeof bits);
	/* One step down; nearest is not zero, since a rounded-up zero would be negative zero. */
	bits += bits & 0x80000000 ? 1 : (uint32_t)-1;
	memcpy(&nearest, &bits, sizeof nearest);
	return nearest;
}

void xfp_quantizer_init(struct xfp_quantizer *quantizer, unsigned k, const uint16_t *codebook)
{
	unsigned entries = 1u << k;

	quantizer->k = k;
	for (unsigned j = 0; j < entries; j++)
		quantizer->entry[j] = xfp_half_to_float(codebook[j]);
	for (unsigned j = 0; j + 1 < entries; j++)
		quantizer->edge[j] = floor_float(((double)quantizer->entry[j] + quantizer->entry[j + 1]) / 2);
	quantizer->edge[entries - 1] = 0; /* loaded, but has no effect */
}

void xfp_assign(const struct xfp_quantizer *quantizer, const float *x, size_t cols, float *value)
{
	xfp_encoder()->codebooks->assign(quantizer->k, quantizer->entry, quantizer->edge, x, cols, value);
	memset(value + cols, 0, (xfp_padded(cols) - cols) * sizeof *value);
}

void xfp_assign_index(const struct xfp_quantizer *quantizer, const float *x, size_t cols, uint8_t *index)
{
	xfp_encoder()->codebooks->index(quantizer->k, quantizer->edge, x, cols, index);
}

float xfp_nearest(const struct xfp_quantizer *quantizer, float x)
{
	unsigned at = 0;

	for (unsigned step = 1u << (quantizer->k - 1); step; step /= 2)
		if (x > quantizer->edge[at + step - 1])
			at += step;
	return quantizer->entry[at];
}

struct xfp_row_sums xfp_quantized_sums(const struct xfp_quantizer *quantizer, const float *x, const float *down,
				       const float *w, size_t cols)
{
	return xfp_encoder()->codebooks->measure(quantizer->k, quantizer->entry, quantizer->edge, x, down, w, cols);
}

uint16_t xfp_residual(float x, float value)
{
	/* Exact in double, so rounded once. */
	return xfp_double_to_half((double)x - value);
}

float xfp_encode_fp8(const float *w, size_t cols, uint8_t *code)
{
	float largest = 0, scale;

	for (size_t c = 0; c < cols; c++) {
		float magnitude = w[c] < 0 ? -w[c] : w[c];

		largest = magnitude > largest ? magnitude : largest;
	}
	scale = largest / 448;
	if (scale == 0)
		memset(code, 0, cols);
	else
		for (size_t c = 0; c < cols; c++)
			code[c] = xfp_float_to_e4m3(w[c] / scale);
	return scale;
}
