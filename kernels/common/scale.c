/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/scale.h"

#include <string.h>

float xfp_exp2i(int exponent)
{
	uint32_t bits;
	float value;

	if (exponent > 127)
		bits = 0x7f800000;
	else if (exponent >= -126)
		bits = (uint32_t)(exponent + 127) << 23;
	else if (exponent >= -149)
		bits = 1u << (exponent + 149);
	else
		bits = 0;
	memcpy(&value, &bits, sizeof value);
	return value;
}

float xfp_balance_up(uint8_t d)
{
	static const float quarter[4] = { 1.0f, 1.18920711500272106671f, 1.41421356237309504880f,
					  1.68179283050742908607f };

	return quarter[d & 3] * xfp_exp2i(d >> 2);
}

float xfp_balance_down(uint8_t d)
{
	static const float quarter[4] = { 1.0f, 0.84089641525371454303f, 0.70710678118654752440f,
					  0.59460355750136053335f };

	return quarter[d & 3] * xfp_exp2i(-(d >> 2));
}

bool xfp_scale_factors(const uint8_t *balance, int exponent, size_t cols, float *narrow, double *wide)
{
	bool fits = true;

	for (size_t c = 0; c < cols; c++) {
		/* 2^exponent in two factors: |exponent| may exceed the range of one f32. */
		wide[c] = (double)xfp_balance_up(balance[c]) * xfp_exp2i(exponent / 2) *
			  xfp_exp2i(exponent - exponent / 2);
		narrow[c] = (float)wide[c];
		fits = fits && wide[c] >= 0x1p-120 && wide[c] <= 0x1p120;
	}
	return fits;
}

void xfp_scale_row_wide(const float *w, const double *wide, size_t cols, float *x)
{
	/* Only one rounding: the product of two f32 is exact in double. */
	for (size_t c = 0; c < cols; c++)
		x[c] = (float)(w[c] * wide[c]);
}

void xfp_unscale_row(const float *x, const float *down, int exponent, size_t cols, float *w)
{
	float factor = xfp_exp2i(-exponent);

	if (exponent > -100 && exponent < 100) {
		if (down)
			for (size_t c = 0; c < cols; c++)
				w[c] = x[c] * down[c] * factor;
		else
			for (size_t c = 0; c < cols; c++)
				w[c] = x[c] * factor;
		return;
	}
	for (size_t c = 0; c < cols; c++) {
		double balanced = down ? x[c] * down[c] : x[c];

		w[c] = (float)(balanced * xfp_exp2i(-exponent / 2) * xfp_exp2i(-exponent - -exponent / 2));
	}
}
