/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbers.h - exp, log, pow, tanh, erf, sine and cosine, with the same bits on every machine.
 *
 * libm does not promise that: versions round differently. These functions use only additions, multiplications,
 * divisions and floor, in one order, which IEEE 754 defines to the last bit. Errors are relative, for results that are
 * neither subnormal nor infinite.
 */
#ifndef XFP_NUMBERS_H
#define XFP_NUMBERS_H

/* Within 2^-50. Infinity above 709.78, 0 below -745.13; NaN stays NaN. */
double xfp_exp(double x);

/* Natural logarithm of a finite number above 0, within 2^-50, also near 1. */
double xfp_log(double x);

/* base^exponent for a finite base above 0, within 2^-50 (1 + |log of the result|). */
double xfp_pow(double base, double exponent);

/* 1 / (1 + e^-x), within 2^-49. */
double xfp_sigmoid(double x);

/* log(1 + e^x), within 2^-49; x itself above 20, as in published code. */
double xfp_softplus(double x);

/* Within 2^-50. NaN stays NaN. */
double xfp_tanh(double x);

/* Within 2^-46. NaN stays NaN. */
double xfp_erf(double x);

/* Both within an absolute error of 2^-50 for |x| up to 2^20; less exact beyond that, and NaN beyond 2^30. */
void xfp_sine_cosine(double x, double *sine, double *cosine);

#endif
