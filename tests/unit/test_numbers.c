/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the forward pass compared with libm in long double, and its products compared with the specified sum.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/instructions.h"
#include "model/forward/numbers.h"
#include "model/forward/product.h"
#include "tests/unit/unit.h"

#define BOUND 0x1p-50

/* A random number between `low` and `high`. */
static double between(uint64_t *state, double low, double high)
{
	return low + (high - low) * (double)(test_random(state) >> 11) / 9007199254740992.0;
}

static void expect_near(const char *what, double x, double got, long double want, long double bound)
{
	if (!(fabsl(got - want) <= bound))
		fail_msg("%s of %.17g is %.17g, and not %.20Lg", what, x, got, want);
}

static void functions_are_within_their_bounds(void **unused)
{
	uint64_t state = 1;

	(void)unused;
	for (int i = 0; i < 200000; i++) {
		double x = between(&state, -700, 700), small = between(&state, -1, 1), y, sine, cosine;
		long double want = expl(x);

		expect_near("exp", x, xfp_exp(x), want, want * BOUND);
		expect_near("exp", small, xfp_exp(small), expl(small), expl(small) * BOUND);
		y = xfp_exp(x);
		expect_near("log", y, xfp_log(y), logl(y), fabsl(logl(y)) * BOUND);
		y = 1 + small / 4;
		expect_near("log", y, xfp_log(y), logl(y), fabsl(logl(y)) * BOUND);
		x = between(&state, 1, 1e7);
		y = between(&state, -1, 1);
		want = powl(x, y);
		expect_near("pow", x, xfp_pow(x, y), want, want * BOUND * (1 + fabsl(logl(want))));
		x = i % 2 ? between(&state, -700, 19.99) : between(&state, -3, 3);
		want = log1pl(expl(x));
		expect_near("softplus", x, xfp_softplus(x), want, want * 2 * BOUND);
		want = 1 / (1 + expl(-(long double)x));
		expect_near("sigmoid", x, xfp_sigmoid(x), want, want * 2 * BOUND);
		x = i % 2 ? between(&state, -23, 23) : small / 4;
		expect_near("tanh", x, xfp_tanh(x), tanhl(x), fabsl(tanhl(x)) * BOUND);
		x = i % 2 ? between(&state, -7, 7) : small / 4;
		if (i % 8 < 2)
			expect_near("erf", x, xfp_erf(x), erfl(x), fabsl(erfl(x)) * 16 * BOUND);
		x = i % 2 ? between(&state, -0x1p20, 0x1p20) : between(&state, -8, 8);
		xfp_sine_cosine(x, &sine, &cosine);
		expect_near("sine", x, sine, sinl(x), BOUND);
		expect_near("cosine", x, cosine, cosl(x), BOUND);
	}
}

static void ends_of_functions(void **unused)
{
	double sine, cosine;

	(void)unused;
	xfp_sine_cosine(-0x1p29, &sine, &cosine);
	expect_near("sine", -0x1p29, sine, sinl(-0x1p29L), 0x1p-20);
	expect_near("cosine", -0x1p29, cosine, cosl(-0x1p29L), 0x1p-20);
	xfp_sine_cosine(1e30, &sine, &cosine);
	assert_true(isnan(sine) && isnan(cosine));
	assert_true(xfp_exp(0) == 1);
	assert_true(xfp_log(1) == 0);
	assert_true(isinf(xfp_exp(710)) && isinf(xfp_exp((double)INFINITY)));
	assert_true(xfp_exp(-746) == 0 && xfp_exp(-(double)INFINITY) == 0);
	assert_true(isnan(xfp_exp((double)NAN)));
	assert_true(xfp_softplus(20.5) == 20.5 && isinf(xfp_softplus((double)INFINITY)));
	assert_true(xfp_softplus(-800) == 0 && xfp_sigmoid(-800) == 0 && xfp_sigmoid(800) == 1);
	assert_true(isnan(xfp_softplus((double)NAN)) && isnan(xfp_sigmoid((double)NAN)));
	assert_true(isnan(xfp_tanh((double)NAN)) && isnan(xfp_erf((double)NAN)));
	assert_true(xfp_tanh(0) == 0 && xfp_tanh(1e300) == 1 && xfp_tanh(-(double)INFINITY) == -1);
	assert_true(xfp_erf(0) == 0 && xfp_erf(1e300) == 1 && xfp_erf(-(double)INFINITY) == -1);
	/* The series would be off by rounding where erf is 1 to the last bit. */
	for (double x = 6.01; x < 7; x += 0.01)
		assert_true(xfp_erf(x) == 1 && xfp_erf(-x) == -1);
	expect_near("tanh", 1e-300, xfp_tanh(1e-300), 1e-300L, 1e-300L * BOUND);
	expect_near("exp", 709.5, xfp_exp(709.5), expl(709.5L), expl(709.5L) * BOUND);
	expect_near("exp", -740, xfp_exp(-740), expl(-740), 0x1p-1074L);
	expect_near("log", 0x1p-1060, xfp_log(0x1p-1060), logl(0x1p-1060L), 1060 * BOUND);
}

/* Sum all columns in order, in double, ignoring the padding. */
static void products_are_sums_in_order(void **unused)
{
	static const size_t counts[] = { 1, 7, 8, 9, 29, XFP_PRODUCT_VECTORS };
	static const char *const sets[] = { "plain", "avx2", "avx512" };
	static const size_t widths[] = { 1, 2, 15, 33, 2 * XFP_PRODUCT_COLS + 17 };
	uint64_t state = 2;

	(void)unused;
	for (size_t i = 0; i < 6 * 5 * XFP_PRODUCT_ROWS; i++) {
		size_t count = counts[i % 6], cols = widths[i / 6 % 5], rows = i / 30 + 1, stride = rows + 3;
		float *w = malloc(rows * cols * sizeof *w), *x = malloc(count * (cols + 2) * sizeof *x);
		float *panels = malloc(xfp_panels_size(count, cols) * sizeof *panels);
		float *y = malloc(count * stride * sizeof *y);
		double *scratch = malloc(XFP_PRODUCT_SCRATCH * sizeof *scratch);

		assert_true(w && x && panels && y && scratch);
		for (size_t k = 0; k < rows * cols; k++)
			w[k] = test_gaussian(&state);
		for (size_t k = 0; k < count * (cols + 2); k++)
			x[k] = test_gaussian(&state) * 0x1p-20f;
		for (size_t k = 0; k < count * stride; k++)
			y[k] = 77;
		xfp_panels(x, cols + 2, count, cols, panels);
		if (!xfp_instruction_set_use(sets[i / 30 % 3]))
			xfp_instruction_set_use("plain");
		xfp_product_rows(w, rows, cols, panels, count, scratch, y, stride);
		for (size_t t = 0; t < count; t++) {
			for (size_t r = 0; r < stride; r++) {
				volatile double sum = 0;

				for (size_t c = 0; r < rows && c < cols; c++)
					sum += (double)w[r * cols + c] * x[t * (cols + 2) + c];
				assert_true(y[t * stride + r] == (r < rows ? (float)sum : 77));
			}
		}
		free(w);
		free(x);
		free(panels);
		free(y);
		free(scratch);
	}
}

PROGRAM("test_numbers")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_are_within_their_bounds),
		cmocka_unit_test(ends_of_functions),
		cmocka_unit_test(products_are_sums_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
