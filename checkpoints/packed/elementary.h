/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elementary.h - logarithm and exponential in double, with the same results everywhere, unlike libm.
 */
#ifndef XFP_ELEMENTARY_H
#define XFP_ELEMENTARY_H

#include <math.h>

#define XFP_LN2 0.69314718055994530942

/* Return ln of a positive number, to about 1e-15 relative to the larger of itself and 1. */
static inline double xfp_ln(double x)
{
	int exponent;
	double m = frexp(x, &exponent), t, square, sum = 0;

	/* Between 1/sqrt(2) and sqrt(2), to avoid cancellation near 0. */
	if (m < 0.70710678118654752440) {
		m *= 2;
		exponent--;
	}
	t = (m - 1) / (m + 1);
	square = t * t;
	for (int i = 25; i > 0; i -= 2)
		sum = sum * square + 1.0 / i;
	return exponent * XFP_LN2 + 2 * t * sum;
}

/* Return e^x for -700 < x < 700, to a relative error of about 1e-13. */
static inline double xfp_exp(double x)
{
	double whole = floor(x / XFP_LN2 + 0.5), rest = x - whole * XFP_LN2, sum = 1;

	for (int i = 18; i > 0; i--)
		sum = 1 + rest / i * sum;
	return ldexp(sum, (int)whole);
}

#endif
