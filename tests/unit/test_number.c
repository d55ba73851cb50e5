/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "kernels/common/number.h"

static void half_values_are_right(void **state)
{
	(void)state;
	assert_true(xfp_half_to_float(0x3c00) == 1.0f);
	assert_true(xfp_half_to_float(0xc000) == -2.0f);
	assert_true(xfp_half_to_float(0x7bff) == 65504.0f);
	assert_true(xfp_half_to_float(0x0001) == 0x1p-24f);
	assert_true(xfp_half_to_float(0x03ff) == 1023 * 0x1p-24f);
	assert_true(isinf(xfp_half_to_float(0x7c00)));
	assert_true(isnan(xfp_half_to_float(0x7e00)));
}

static void every_half_survives_a_round_trip(void **state)
{
	(void)state;
	for (uint32_t half = 0; half < 65536; half++) {
		uint16_t expected = half == 0x8000 ? 0 : (uint16_t)half;

		if ((half & 0x7c00) == 0x7c00 && (half & 0x3ff))
			assert_true(isnan(xfp_half_to_float(xfp_float_to_half(xfp_half_to_float((uint16_t)half)))));
		else
			assert_int_equal(xfp_float_to_half(xfp_half_to_float((uint16_t)half)), expected);
	}
}

/* Between neighbors: just below the midpoint down, the midpoint to even, just above up. */
static void halves_round_to_nearest_even(void **state)
{
	(void)state;
	for (uint32_t half = 0; half < 0x7bff; half++) {
		double low = xfp_half_to_float((uint16_t)half), high = xfp_half_to_float((uint16_t)(half + 1));
		double middle = (low + high) / 2;

		assert_int_equal(xfp_double_to_half(nextafter(middle, 0)), half);
		assert_int_equal(xfp_double_to_half(middle), half + (half & 1));
		assert_int_equal(xfp_double_to_half(nextafter(middle, 1e9)), half + 1);
		assert_int_equal(xfp_double_to_half(-nextafter(middle, 1e9)), (half + 1) | 0x8000);
	}
	assert_int_equal(xfp_double_to_half(65519.9), 0x7bff);
	assert_int_equal(xfp_double_to_half(65520), 0x7c00);
	assert_int_equal(xfp_double_to_half(-1e300), 0xfc00);
}

static void every_e4m3_survives_a_round_trip(void **state)
{
	(void)state;
	for (unsigned code = 0; code < 256; code++) {
		if ((code & 0x7f) == 0x7f)
			assert_true(isnan(xfp_e4m3_to_float((uint8_t)code)));
		else
			assert_int_equal(xfp_float_to_e4m3(xfp_e4m3_to_float((uint8_t)code)), code);
	}
	assert_true(xfp_e4m3_to_float(0x7e) == 448);
	assert_true(xfp_e4m3_to_float(0x01) == 0x1p-9f);
}

static void e4m3_rounds_to_nearest_even_and_saturates(void **state)
{
	(void)state;
	for (unsigned code = 0; code < 0x7e; code++) {
		float low = xfp_e4m3_to_float((uint8_t)code), high = xfp_e4m3_to_float((uint8_t)(code + 1));
		float middle = (low + high) / 2;

		assert_int_equal(xfp_float_to_e4m3(nextafterf(middle, 0)), code);
		assert_int_equal(xfp_float_to_e4m3(middle), code + (code & 1));
		assert_int_equal(xfp_float_to_e4m3(nextafterf(middle, 1e9f)), code + 1);
	}
	assert_int_equal(xfp_float_to_e4m3(1e30f), 0x7e);
	assert_int_equal(xfp_float_to_e4m3(-INFINITY), 0xfe);
	assert_int_equal(xfp_float_to_e4m3(NAN) & 0x7f, 0x7f);
}

static void bf16_is_the_upper_half_of_f32(void **state)
{
	(void)state;
	for (uint32_t bits = 0; bits < 65536; bits++) {
		if ((bits & 0x7f80) != 0x7f80 || !(bits & 0x7f))
			assert_int_equal(xfp_float_to_bf16(xfp_bf16_to_float((uint16_t)bits)), bits);
	}
	assert_int_equal(xfp_float_to_bf16(1.00390625f), 0x3f80); /* tie to even, down */
	assert_int_equal(xfp_float_to_bf16(1.01171875f), 0x3f82); /* tie to even, up */
	assert_int_equal(xfp_float_to_bf16(nextafterf(1.00390625f, 2)), 0x3f81);
	assert_true(isnan(xfp_bf16_to_float(xfp_float_to_bf16(NAN))));
}

static void source_types_convert_at_any_alignment(void **state)
{
	unsigned char bytes[33];
	double wide[2] = { 1.0 / 3, -2.5 };
	float narrow[2] = { 0.1f, -7 }, out[2];
	uint16_t halves[2] = { 0x3c00, 0xc000 }, bf16[2] = { 0x3f80, 0xc000 };

	(void)state;
	memcpy(bytes + 1, wide, sizeof wide);
	xfp_to_float(XFP_F64, bytes + 1, 2, out);
	assert_true(out[0] == (float)(1.0 / 3) && out[1] == -2.5f);
	memcpy(bytes + 1, narrow, sizeof narrow);
	xfp_to_float(XFP_F32, bytes + 1, 2, out);
	assert_true(out[0] == 0.1f && out[1] == -7);
	memcpy(bytes + 1, halves, sizeof halves);
	xfp_to_float(XFP_F16, bytes + 1, 2, out);
	assert_true(out[0] == 1 && out[1] == -2);
	memcpy(bytes + 1, bf16, sizeof bf16);
	xfp_to_float(XFP_BF16, bytes + 1, 2, out);
	assert_true(out[0] == 1 && out[1] == -2);
}

PROGRAM("test_number")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_values_are_right),
		cmocka_unit_test(every_half_survives_a_round_trip),
		cmocka_unit_test(halves_round_to_nearest_even),
		cmocka_unit_test(every_e4m3_survives_a_round_trip),
		cmocka_unit_test(e4m3_rounds_to_nearest_even_and_saturates),
		cmocka_unit_test(bf16_is_the_upper_half_of_f32),
		cmocka_unit_test(source_types_convert_at_any_alignment),
	};

	return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}
