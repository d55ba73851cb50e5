/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/numbers.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The upper part ends in zeros, so that its products with the integers used here are exact. */
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW 0x1.a39ef35793c76p-33
#define HALF_PI_HIGH 0x1.921fb544p+0 /* 33 bits, like the next part */
#define HALF_PI_MIDDLE 0x1.0b4611a6p-34
#define HALF_PI_LOW 0x1.3198a2e037073p-69

static uint64_t bits_of(double x)
{
	uint64_t bits;

	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static double of_bits(uint64_t bits)
{
	double x;

	memcpy(&x, &bits, sizeof x);
	return x;
}

/* 2^k for -1022 <= k <= 1023 */
static double power_of_two(int k)
{
	return of_bits((uint64_t)(k + 1023) << 52);
}

/* e^x = 2^k e^r, with a series for e^r, |r| <= ln 2 / 2, truncated at 2^-57. */
double xfp_exp(double x)
{
	double n, r, sum = 1;
	int k;

	if (!(x < 709.79))
		return x != x ? x : (double)INFINITY;
	if (x < -745.14)
		return 0;
	n = floor(x * 1.4426950408889634074 + 0.5);
	k = (int)n;
	r = (x - n * LN2_HIGH) - n * LN2_LOW;
	for (int i = 13; i > 0; i--)
		sum = 1 + sum * r / i;
	/* In two steps, since 2^k alone may be out of range. */
	return sum * power_of_two(k / 2) * power_of_two(k - k / 2);
}

/* (atanh(t) - t) / t as a series, truncated at 2^-57 for |t| up to 0.172. */
static double atanh_rest(double t)
{
	double square = t * t, sum = 0;

	for (int i = 21; i > 1; i -= 2)
		sum = (sum + 1.0 / i) * square;
	return sum;
}

/* x = 2^k m with m between the roots of 1/2 and 2; log m = 2 atanh(t). */
double xfp_log(double x)
{
	double t;
	int k = 0;

	if (x < 0x1p-1022) {
		x *= 0x1p54;
		k = -54;
	}
	k += (int)(bits_of(x) >> 52) - 1023;
	x = of_bits((bits_of(x) & 0xfffffffffffff) | (uint64_t)1023 << 52);
	if (x > 1.4142135623730951) {
		x /= 2;
		k++;
	}
	t = (x - 1) / (x + 1);
	return k * LN2_HIGH + (2 * t + (2 * t * atanh_rest(t) + k * LN2_LOW));
}

double xfp_pow(double base, double exponent)
{
	return xfp_exp(exponent * xfp_log(base));
}

double xfp_sigmoid(double x)
{
	return 1 / (1 + xfp_exp(-x));
}

/* If e^x is small, 1 + e^x would lose its last digits. */
double xfp_softplus(double x)
{
	double power, t;

	if (!(x <= 20))
		return x;
	power = xfp_exp(x);
	if (!(power < 0.375))
		return xfp_log(1 + power);
	t = power / (2 + power);
	return 2 * t + 2 * t * atanh_rest(t);
}

/* (e^2x - 1) / (e^2x + 1). Near 0, e^2x - 1 cancels, and a series replaces it, truncated at 2^-55. */
double xfp_tanh(double x)
{
	double y = 2 * x, sum = 0;

	if (y > 44 || y < -44)
		return y > 0 ? 1 : -1;
	if (y > 1 || y < -1)
		return 1 - 2 / (xfp_exp(y) + 1);
	for (int i = 18; i > 1; i--)
		sum = (1 + sum) * y / i;
	sum = y + y * sum;
	return sum / (sum + 2);
}

/* 2 / sqrt(pi) e^-x^2 times the sum over n of 2^n x^(2n+1) / (1 3 5 ... (2n + 1)); all terms have one sign. */
double xfp_erf(double x)
{
	double term = x, sum = x;

	if (x > 6 || x < -6)
		return x > 0 ? 1 : -1;
	for (int n = 1; fabs(term) > fabs(sum) * 0x1p-56; n++) {
		term *= 2 * x * x / (2 * n + 1);
		sum += term;
	}
	return 1.1283791670955125739 * xfp_exp(-x * x) * sum;
}

/* x = n pi/2 + r, with series for sin r and cos r, |r| <= pi/4. Products of n and the upper part of pi/2 are exact up
 * to 2^20. */
void xfp_sine_cosine(double x, double *sine, double *cosine)
{
	double n = floor(x * 0.63661977236758134308 + 0.5);
	double r = ((x - n * HALF_PI_HIGH) - n * HALF_PI_MIDDLE) - n * HALF_PI_LOW, square = r * r, s = 1, c = 1;

	if (!(fabs(x) <= 0x1p30)) {
		*sine = *cosine = (double)NAN;
		return;
	}
	for (int i = 18; i > 1; i -= 2) {
		s = 1 - s * square / (i * (i + 1));
		c = 1 - c * square / (i * (i - 1));
	}
	s *= r;
	switch ((int)(n - 4 * floor(n / 4))) {
	case 0:
		*sine = s, *cosine = c;
		break;
	case 1:
		*sine = c, *cosine = -s;
		break;
	case 2:
		*sine = -s, *cosine = -c;
		break;
	default:
		*sine = -c, *cosine = s;
		break;
	}
}
