/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numbers.h - exp, log, pow, tanh, erf, sine and cosine, with the same bits on every machine.
 *
 * libm promises no such thing: each version of it rounds as it likes. These use additions, multiplications, divisions
 * and floor alone, in one order, which IEEE 754 defines to the last bit. Errors are relative ones, of results that are
 * neither subnormal nor infinite.
 */
#ifndef XFP_NUMBERS_H
#define XFP_NUMBERS_H

/* Within 2^-50. Infinity above 709.78, 0 below -745.13; NaN stays NaN. */
double xfp_exp(double x);

/* Natural logarithm of a finite number above 0, within 2^-50 (near 1 likewise). */
double xfp_log(double x);

/* base^exponent for a finite base above 0, within 2^-50 (1 + |log of the result|). */
double xfp_pow(double base, double exponent);

/* 1 / (1 + e^-x), within 2^-49. */
double xfp_sigmoid(double x);

/* log(1 + e^x), within 2^-49; above 20 it is x, as published code has it. */
double xfp_softplus(double x);

/* Within 2^-50. NaN stays NaN. */
double xfp_tanh(double x);

/* Within 2^-46. NaN stays NaN. */
double xfp_erf(double x);

/* Both within 2^-50, absolutely, for |x| up to 2^20; less exact beyond that, and NaN beyond 2^30. */
void xfp_sine_cosine(double x, double *sine, double *cosine);

#endif
