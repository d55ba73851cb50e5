/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "kernels/common/balance.h"
#include "kernels/common/scale.h"
#include "kernels/encode/encode.h"

#define F32 1 /* base/dtype.h */

static void factors_are_the_nearest_floats(void **state)
{
	(void)state;
	for (int d = 0; d < 256; d++) {
		assert_true(xfp_balance_up((uint8_t)d) == (float)pow(2, d / 4.0));
		assert_true(xfp_balance_down((uint8_t)d) == (float)pow(2, -d / 4.0));
	}
	for (int e = -160; e < 130; e++)
		assert_true(xfp_exp2i(e) == (float)ldexp(1, e));
}

/* Whatever the magnitude, x is the once-rounded product, and powers of two come back exactly. */
static void scaling_rounds_once(void **state)
{
	const float magnitude[] = { 1e-45f, 3e-39f, 1e-30f, 0.02f, 1, 5e20f, 3e38f };
	uint64_t seed = 3;

	(void)state;
	for (size_t i = 0; i < sizeof magnitude / sizeof *magnitude; i++) {
		float w[64], x[64], back[64], narrow[64], down[64], largest[64] = { 0 };
		double wide[64], square[64];
		uint8_t d[64];
		int s;

		for (int c = 0; c < 64; c++) {
			w[c] = test_gaussian(&seed) / 8 * magnitude[i];
			d[c] = (uint8_t)(c % 2 ? 4 * (c % 5) : c % 7);
			down[c] = xfp_balance_down(d[c]);
		}
		xfp_encoder()->rows->column_scan(F32, w, 1, 64, square, largest);
		s = xfp_matrix_exponent(largest, d, 64);
		if (xfp_scale_factors(d, s, 64, narrow, wide))
			xfp_encoder()->rows->scale(w, narrow, 64, x);
		else
			xfp_scale_row_wide(w, wide, 64, x);
		double top = 0;
		for (int c = 0; c < 64; c++) {
			double exact = ldexp((double)w[c] * xfp_balance_up(d[c]), s);

			assert_true(x[c] == (float)exact);
			top = fmax(top, fabs(exact));
		}
		assert_true(top == 0 || (top >= 8192 && top < 16384));
		xfp_unscale_row(x, down, s, 64, back);
		for (int c = 1; c < 64; c += 2)
			assert_true(back[c] == w[c]);
	}
}

static void balance_follows_its_definition(void **state)
{
	const double exponent[] = { 0.5, 0.75, 0 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		double square[40], want[40], top = -1000;
		uint8_t d[40];

		for (int c = 0; c < 40; c++) {
			square[c] = pow(1.7, c - 20) * 1000;
			want[c] = floor(2 * exponent[i] * log2(square[c] / 50) + 0.5);
			top = fmax(top, want[c]);
		}
		xfp_balance(square, 50, 40, (uint32_t)(exponent[i] * 1e9), d);
		for (int c = 0; c < 40; c++)
			assert_int_equal(d[c], top - want[c]);
	}
}

static void zero_columns_are_pushed_down(void **state)
{
	double square[3] = { 4, 0, 1e-300 };
	uint8_t d[3];

	(void)state;
	xfp_balance(square, 1, 3, 500000000, d);
	assert_int_equal(d[0], 0);
	assert_int_equal(d[1], 255);
	assert_int_equal(d[2], 255);
	memset(square, 0, sizeof square);
	xfp_balance(square, 1, 3, 500000000, d);
	assert_int_equal(d[0] | d[1] | d[2], 0);
	assert_int_equal(xfp_matrix_exponent((float[3]){ 0 }, d, 3), 0);
}

static void a_scan_counts_what_is_no_number(void **state)
{
	const float w[6] = { 1, NAN, -3, INFINITY, 2, -INFINITY };
	float largest[3] = { 0 };
	double square[3];

	(void)state;
	assert_int_equal(xfp_encoder()->rows->column_scan(F32, w, 2, 3, square, largest), 3);
	assert_true(largest[0] == INFINITY);
	assert_true(largest[1] != largest[1]);
	assert_true(largest[2] == INFINITY);
}

PROGRAM("test_scale")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(factors_are_the_nearest_floats),  cmocka_unit_test(scaling_rounds_once),
		cmocka_unit_test(balance_follows_its_definition),  cmocka_unit_test(zero_columns_are_pushed_down),
		cmocka_unit_test(a_scan_counts_what_is_no_number),
	};

	return cmocka_run_group_tests_name("scale", tests, NULL, NULL);
}
