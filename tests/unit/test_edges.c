/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers at the boundary between rounding up and down.
 */
#include "tests/unit/unit.h"

#include <math.h>

#include "kernels/common/number.h"
#include "kernels/encode/compact.h"
#include "kernels/encode/scaled.h"

/* The first number halfway between the largest and infinity would become infinity; here it must not. */
static void scaled_numbers_stay_finite(void **state)
{
	(void)state;
	assert_int_equal(xfp_scaled_half(65504), 0x7bff);
	assert_int_equal(xfp_scaled_half(-65504), 0xfbff);
	assert_int_equal(xfp_scaled_half(65472), 0x7bfe);
	assert_int_equal(xfp_scaled_half(nextafter(65520, 0)), 0x7bff);
	assert_int_equal(xfp_double_to_half(65520), 0x7c00);
	assert_int_equal(xfp_scaled_half(65520), 0x7bff);
	assert_int_equal(xfp_scaled_half(-65520), 0xfbff);
	assert_int_equal(xfp_scaled_half(1e300), 0x7bff);
	assert_int_equal(xfp_scaled_half(INFINITY), 0x7bff);
	assert_int_equal(xfp_scaled_half(-INFINITY), 0xfbff);
	assert_int_equal(xfp_scaled_half(1), 0x3c00);
	assert_int_equal(xfp_scaled_half(0), 0);
}

/* A mean square that is exactly halfway between two row scales takes the larger scale, the smaller byte. */
static void halfway_between_two_row_scales(void **state)
{
	static const double halfway[] = { 0x1.306fe0a31b715p0, 0x1.ae89f995ad3adp0 }; /* 2^(1/4) and 2^(3/4) */

	(void)state;
	for (int octave = -90; octave < 28; octave++) {
		for (int i = 0; i < 2; i++) {
			double edge = ldexp(halfway[i], octave);

			assert_int_equal(xfp_compact_row_byte(edge), 56 - 2 * octave - i - 1);
			assert_int_equal(xfp_compact_row_byte(nextafter(edge, 0)), 56 - 2 * octave - i);
		}
	}
	/* The extreme bytes. */
	assert_int_equal(xfp_compact_row_byte(0x1p28), 0);
	assert_int_equal(xfp_compact_row_byte(0x1p29), 0);
	assert_int_equal(xfp_compact_row_byte(nextafter(ldexp(halfway[0], 27), 0)), 2);
	assert_int_equal(xfp_compact_row_byte(ldexp(halfway[0], -100)), 255);
	assert_int_equal(xfp_compact_row_byte(ldexp(halfway[1], -100)), 254);
	assert_int_equal(xfp_compact_row_byte(0x1p-100), 255);
}

PROGRAM("test_edges")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scaled_numbers_stay_finite),
		cmocka_unit_test(halfway_between_two_row_scales),
	};

	return cmocka_run_group_tests_name("edges", tests, NULL, NULL);
}
