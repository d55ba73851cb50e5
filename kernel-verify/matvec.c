/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec.c - test rows times vectors (matvec.h) against the reference in double, within the stated bound.
 */
#include "kernel-verify/cuda/device.h"
#include "kernel-verify/kernel_verify.h"
#include "kernel-verify/trial/bound.h"
#include "kernel-verify/trial/matrix.h"
#include "kernel-verify/trial/reference.h"

#include <math.h> /* fabs and isfinite, which are exact */
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "kernels/common/lane_index.h"
#include "kernels/common/number.h"
#include "kernels/common/scale.h"

static const char *const mode_names[] = { "f32", "f16", "bf16", "fp8", "v2", "v2a", "v2c" };

/* ---- a trial ------------------------------------------------------------------------------------------- */

struct product {
	struct xfp_matvec w;
	void *rounded; /* tables whose f32 entries are rounded to 8 bits */
	struct xfp_matvec_x x;
	const float *natural; /* [M][cols], the source, not the prepared vectors */
	unsigned batch;
};

static float value_of(int dtype, const uint8_t *source, size_t i)
{
	uint16_t half;
	float value;

	if (dtype == XFP_F32) {
		memcpy(&value, source + 4 * i, 4);
		return value;
	}
	memcpy(&half, source + 2 * i, 2);
	return dtype == XFP_F16 ? xfp_half_to_float(half) : xfp_bf16_to_float(half);
}

static void make_vectors(struct xfp_trial *trial, struct product *p, int dtype, bool balanced, bool odd)
{
	static const float numbers[] = { INFINITY, NAN, 0x1p107f, -0x1p40f };
	size_t cols = p->w.cols, size = dtype == XFP_F32 ? 4 : 2, stride = cols + xfp_trial_random_below(trial, 3);
	size_t elements = (p->batch - 1) * stride + cols;
	unsigned k = p->w.mode >= XFP_MATVEC_V2 ? p->w.k : 0;
	uint8_t *source = xfp_trial_buffer(trial, "source", elements * size, 1);
	float *down = xfp_trial_buffer(trial, "down", cols * sizeof *down, sizeof *down);
	float *natural = xfp_trial_buffer(trial, "natural", p->batch * cols * sizeof *natural, sizeof *natural);
	void *buffer = xfp_trial_buffer(trial, "prepared", xfp_matvec_x_bytes(k, cols, p->batch), 64);

	for (size_t i = 0; i < elements; i++) {
		/* Blocks of columns differ widely in magnitude. */
		float value = xfp_trial_gaussian(trial) * (i / 200 % 3 ? 1 : i / 600 % 2 ? 0.01f : 0x1p-110f);
		uint16_t half;

		if (odd && i == elements / 2)
			value = numbers[trial->number / 16 % 4];
		half = dtype == XFP_F16 ? xfp_float_to_half(value) : xfp_float_to_bf16(value);
		memcpy(source + i * size, dtype == XFP_F32 ? (void *)&value : (void *)&half, size);
	}
	for (size_t c = 0; c < cols; c++)
		down[c] = xfp_balance_down((uint8_t)xfp_trial_random_below(trial, 9));
	for (size_t m = 0; m < p->batch; m++)
		for (size_t c = 0; c < cols; c++)
			natural[m * cols + c] = value_of(dtype, source, m * stride + c) * (balanced ? down[c] : 1);
	xfp_kernel_use(trial->set);
	xfp_matvec_x_init(&p->x, k, cols, p->batch, dtype, source, stride, balanced ? down : NULL, buffer);
	p->natural = natural;
}

/* Products with 8-bit entries are compared with those of the rounded entries: rounding is far larger than the errors of
 * kernels, and would hide them. */
static void round_library(struct xfp_trial *trial, const struct xfp_matvec_bound *bound, struct product *p)
{
	size_t bytes = xfp_matvec_tables_bytes(p->w.k);

	if (p->w.mode < XFP_MATVEC_V2A)
		return;
	p->rounded = xfp_trial_buffer(trial, "rounded tables", bytes, 64);
	memcpy(p->rounded, p->w.tables, bytes);
	xfp_matvec_round_entries(bound, p->w.k, p->rounded);
}

/* Check rows [0, rows) of every vector, added up `times` times. */
static void judge(struct xfp_trial *trial, const struct product *p, const struct xfp_matvec_bound *bound,
		  const float *y, size_t stride, unsigned times)
{
	struct xfp_matvec w = p->w;

	if (xfp_matvec_is_narrow(trial->set, &p->w, &p->x))
		w.tables = p->rounded;
	for (size_t i = 0; i < p->batch * p->w.rows; i++) {
		size_t m = i / p->w.rows, r = i % p->w.rows;
		const float *natural = p->natural + m * p->w.cols;
		float got = y[m * stride + r];
		double expected, magnitude, max, off;

		if (!xfp_matvec_reference(&w, r, natural, &expected, &magnitude)) {
			xfp_trial_fail(trial, "the reference refuses row %zu", r);
			return;
		}
		expected *= times;
		if (!isfinite(expected) || !isfinite(magnitude)) {
			if (isfinite(got))
				xfp_trial_fail(trial, "row %zu of vector %zu is %g, not %g", r, m, (double)got,
					       expected);
			continue;
		}
		if (!xfp_matvec_bound_holds(&p->w, r))
			continue;
		max = times * xfp_matvec_bound(bound, trial->set, &p->w, r, natural, magnitude) + 1e-30;
		off = fabs((double)got - expected);
		if (!(off <= max)) {
			xfp_trial_fail(trial,
				       "row %zu of vector %zu is %.9g, not %.9g: the error is %.3g, the bound %.3g", r,
				       m, (double)got, expected, off, max);
			return;
		}
	}
}

static void multiply(struct xfp_trial *trial, const struct product *p, const struct xfp_matvec_bound *bound)
{
	size_t rows = p->w.rows, cut = xfp_trial_random_below(trial, rows + 1), gap = xfp_trial_random_below(trial, 3),
	       stride = rows + gap;
	size_t elements = (p->batch - 1) * stride + rows;
	float *y = xfp_trial_buffer(trial, "y", elements * sizeof *y, sizeof *y);
	bool good = xfp_kernel_rows(trial->set, &p->w, &p->x, 0, cut, false, y, stride) &&
		    xfp_kernel_rows(trial->set, &p->w, &p->x, cut, rows - cut, false, y + cut, stride);

	if (!good) {
		xfp_trial_fail(trial, "outliers are refused");
		return;
	}
	judge(trial, p, bound, y, stride, 1);
	if (!xfp_kernel_rows(trial->set, &p->w, &p->x, 0, rows, true, y, stride))
		xfp_trial_fail(trial, "outliers are refused");
	judge(trial, p, bound, y, stride, 2);
	for (size_t m = 0; m + 1 < p->batch; m++)
		for (size_t r = rows; r < stride; r++) {
			uint32_t bits, fresh;

			memcpy(&bits, y + m * stride + r, sizeof bits);
			memset(&fresh, trial->fresh, sizeof fresh);
			if (bits != fresh)
				xfp_trial_fail(trial, "memory between two vectors' rows was written");
		}
}

static void matvec(struct xfp_trial *trial)
{
	bool odd = trial->number % 16 == 15, balanced = xfp_trial_random_below(trial, 2), outliers = trial->number % 2;
	int dtype = XFP_F32 + (int)(trial->number / 8 % 3);
	struct xfp_matvec_bound bound;
	struct product p = { .batch = 1 + trial->number % XFP_MAX_BATCH };
	struct xfp_trial_matrix matrix;

	if (trial->set == XFP_SET_CUDA) {
		xfp_device_product(trial);
		return;
	}
	xfp_make_matrix(trial, &matrix, outliers, odd && trial->number % 32 == 15);
	p.w = matrix.w;
	xfp_trial_shape(trial, "%s, M = %u, %s%s%s%s", matrix.text, p.batch,
			dtype == XFP_F32   ? "f32"
			: dtype == XFP_F16 ? "f16"
					   : "bf16",
			balanced ? ", balanced" : "", outliers ? ", outliers" : "", odd ? ", odd" : "");
	make_vectors(trial, &p, dtype, balanced, odd);
	xfp_matvec_bound_init(&bound, &p.w);
	round_library(trial, &bound, &p);
	xfp_trial_seal(trial);
	multiply(trial, &p, &bound);
}

/* Decode a row: it must match the layout bit for bit. */
static void decode(struct xfp_trial *trial)
{
	struct xfp_trial_matrix matrix;
	struct xfp_matvec w;
	float *x, *expected;
	size_t row;

	xfp_make_matrix(trial, &matrix, false, false);
	w = matrix.w;
	row = xfp_trial_random_below(trial, w.rows);
	xfp_trial_shape(trial, "%s", matrix.text);
	expected = malloc(w.cols * sizeof *expected + 1);
	if (!expected)
		abort();
	xfp_trial_seal(trial);
	x = xfp_trial_buffer(trial, "x", w.cols * sizeof *x, sizeof *x);
	trial->weights = (double)w.cols;
	while (xfp_trial_again(trial))
		xfp_kernel_decode(trial->set, &w, row, x);
	xfp_matvec_reference_row(&w, row, expected);
	if (memcmp(x, expected, w.cols * sizeof *x))
		xfp_trial_fail(trial, "row %zu differs from the layout's definition", row);
	xfp_trial_floats(trial, "x", x, w.cols);
	free(expected);
}

void xfp_kernel_ops_matvec(struct xfp_kernel_ops *ops)
{
	char name[40];

	for (int mode = XFP_MATVEC_F32; mode <= XFP_MATVEC_V2C; mode++) {
		bool codebooks = mode >= XFP_MATVEC_V2;

		snprintf(name, sizeof name, codebooks ? "matvec %s k=%%u" : "matvec %s", mode_names[mode]);
		for (unsigned k = codebooks ? 2 : 0; k <= (codebooks ? 6u : 0u); k++) {
			xfp_kernel_op_add(ops, name, k, mode, XFP_MATVEC_SETS, matvec);
			ops->op[ops->count - 1].exact = false;
			ops->op[ops->count - 1].trials = 48;
			ops->op[ops->count - 1].large = XFP_LARGE_TRIALS;
		}
		snprintf(name, sizeof name, codebooks ? "decode %s k=%%u" : "decode %s", mode_names[mode]);
		for (unsigned k = codebooks ? 2 : 0; k <= (codebooks ? 6u : 0u); k++)
			xfp_kernel_op_add(ops, name, k, mode, XFP_PROCESSOR_SETS, decode);
	}
}
