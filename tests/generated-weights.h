/* SPDX-License-Identifier: Apache-2.0 */
/*
 * generated-weights.h - the numbers of make-checkpoint and of bench/make-weights.
 *
 * Weights look like trained ones: heavy tails (Student's t with 5 degrees of freedom), rows and columns of different
 * scale, a standard deviation of about 0.02; norms are near 1. Only + - * / and sqrt are used, so the result is the
 * same on every machine.
 */
#ifndef XFP_GENERATED_WEIGHTS_H
#define XFP_GENERATED_WEIGHTS_H

#include <errno.h> /* program_invocation_short_name */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum dtype { BF16, F16, F32, F64, I64 };

static inline void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
	exit(1);
}

static inline void *allocate(void *old, uint64_t count, size_t size)
{
	void *new = count <= SIZE_MAX / size ? realloc(old, (count ? count : 1) * size) : NULL;

	if (!new)
		die("memory", "out of it");
	return new;
}

/* ---- random numbers ----------------------------------------------------------------------------- */

static inline uint64_t next(uint64_t *state) /* splitmix64 */
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static inline uint64_t stream(uint64_t seed, const char *name)
{
	uint64_t state = 0xcbf29ce484222325u; /* FNV-1a */

	for (; *name; name++)
		state = (state ^ (unsigned char)*name) * 0x100000001b3u;
	state ^= next(&seed);
	return next(&state);
}

/* In [0, 1). */
static inline double uniform(uint64_t *state)
{
	return (double)(next(state) >> 11) * 0x1p-53;
}

/* About normal, with variance 1: four 16-bit uniforms, each of variance 1/12, centred. */
static inline double normal(uint64_t *state)
{
	uint64_t bits = next(state);
	int64_t sum = (int64_t)((bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48));

	return (double)(2 * sum - 4 * 0xffff) * (0x1p-17 * 1.7320508075688772);
}

static inline double student5(uint64_t *state)
{
	double chi2 = 0, top = (normal(state) + normal(state)) * 0.70710678118654752;

	for (int i = 0; i < 5; i++) {
		double n = normal(state);

		chi2 += n * n;
	}
	return top / sqrt(chi2 * 0.2 + 1e-6);
}

/* Positive, near 1, the spread growing with `factors` and `width`. */
static inline double scale(uint64_t *state, int factors, double width)
{
	double product = 1;

	for (int i = 0; i < factors; i++)
		product *= 1 + width * (uniform(state) - 0.5);
	return product;
}

/* Element (r, c) goes to out[r * row_stride + c * col_stride]. */
static inline void fill_matrix(uint64_t seed, const char *name, uint64_t rows, uint64_t cols, double *out,
			       uint64_t row_stride, uint64_t col_stride)
{
	uint64_t state = stream(seed, name);
	double *columns = allocate(NULL, cols, sizeof *columns);

	for (uint64_t c = 0; c < cols; c++)
		columns[c] = scale(&state, 6, 0.8);
	for (uint64_t r = 0; r < rows; r++) {
		double row = 0.0127 * scale(&state, 4, 0.5); /* makes the standard deviation 0.02 over all */

		for (uint64_t c = 0; c < cols; c++)
			out[r * row_stride + c * col_stride] = row * columns[c] * student5(&state);
	}
	free(columns);
}

static inline void fill_vector(uint64_t seed, const char *name, uint64_t count, double centre, double spread,
			       double *out)
{
	uint64_t state = stream(seed, name);

	for (uint64_t i = 0; i < count; i++)
		out[i] = centre + spread * normal(&state);
}

/* ---- their bytes ---------------------------------------------------------------------------------- */

static inline uint16_t to_bf16(double value)
{
	float f = (float)value;
	uint32_t bits;

	memcpy(&bits, &f, sizeof bits);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Round to nearest, ties to even; values below 2^-14 to a multiple of 2^-24. */
static inline uint16_t to_f16(double value)
{
	double magnitude = value < 0 ? -value : value;
	uint16_t sign = value < 0 ? 0x8000 : 0;
	unsigned exponent = 1; /* biased, of the multiple of 2^(exponent - 25) */
	uint32_t whole;
	double rest;

	magnitude *= 0x1p24;
	while (magnitude >= 2048 && exponent < 30) {
		magnitude *= 0.5;
		exponent++;
	}
	whole = (uint32_t)magnitude;
	rest = magnitude - whole;
	whole += rest > 0.5 || (rest == 0.5 && (whole & 1));
	/* The leading bit of `whole` increments the exponent; so does a carry. */
	return (uint16_t)(sign | (((exponent - 1) << 10) + whole));
}

static inline void encode(const double *values, uint64_t count, enum dtype dtype, unsigned char *out)
{
	for (uint64_t i = 0; i < count; i++) {
		uint16_t half;
		int64_t whole;
		float single;

		switch (dtype) {
		case BF16:
		case F16:
			half = dtype == BF16 ? to_bf16(values[i]) : to_f16(values[i]);
			memcpy(out + i * 2, &half, 2);
			break;
		case F32:
			single = (float)values[i];
			memcpy(out + i * 4, &single, 4);
			break;
		case F64:
			memcpy(out + i * 8, &values[i], 8);
			break;
		case I64:
			whole = (int64_t)values[i];
			memcpy(out + i * 8, &whole, 8);
			break;
		}
	}
}

#endif
