/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/balance.h"

#include <string.h>

#include "kernels/common/scale.h"

#define FRACTION 16 /* fraction bits of the logarithm */

/* Return floor(log2(value)) of a positive normal double. */
static int exponent_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	return (int)(bits >> 52) - 1023;
}

/* Return log2(value) in units of 2^-FRACTION, rounded down except for the rounding of the squarings. */
static int64_t log2_fixed(double value)
{
	int64_t result = exponent_of(value);
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	bits = (bits & 0xfffffffffffff) | 0x3ff0000000000000;
	memcpy(&value, &bits, sizeof value); /* mantissa in [1, 2) */
	for (int i = 0; i < FRACTION; i++) {
		value *= value;
		result *= 2;
		if (value >= 2) {
			value *= 0.5;
			result++;
		}
	}
	return result;
}

static int64_t floor_divide(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

/* Compute e of a column from its positive mean square. */
static int64_t column_exponent(double mean_square, uint32_t exponent)
{
	const int64_t one = (int64_t)1000000000 << FRACTION;

	return floor_divide(2 * (int64_t)exponent * log2_fixed(mean_square) + one / 2, one);
}

void xfp_balance(double *square, uint64_t rows, size_t cols, uint32_t exponent, uint8_t *d)
{
	const double none = -0x1p60; /* marks a column of zeros: far below all others */
	double top = none;

	memset(d, 0, cols);
	if (!exponent)
		return;
	for (size_t c = 0; c < cols; c++) {
		square[c] = square[c] > 0 ? (double)column_exponent(square[c] / (double)rows, exponent) : none;
		top = square[c] > top ? square[c] : top;
	}
	if (top == none)
		return; /* all columns are zero */
	for (size_t c = 0; c < cols; c++) {
		double below = top - square[c];

		d[c] = (uint8_t)(below < 255 ? below : 255);
	}
}

int xfp_matrix_exponent(const float *largest, const uint8_t *d, size_t cols)
{
	double top = 0;

	for (size_t c = 0; c < cols; c++) {
		double x = (double)largest[c] * xfp_balance_up(d[c]);

		top = x > top ? x : top;
	}
	return top > 0 ? 13 - exponent_of(top) : 0;
}
