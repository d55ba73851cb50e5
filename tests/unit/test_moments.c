/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/encode/encode.h"
#include "kernels/encode/moments.h"

#define COUNT 100000

static float x[COUNT];

static int fill(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < COUNT; i++) {
		float g = test_gaussian(&seed);

		x[i] = g * g * g * 100 + 5;
	}
	return 0;
}

static void moments_are_those_of_the_sample(void **state)
{
	struct xfp_moments moments = { 0 };
	struct xfp_outlier_rule rule;
	long double sum = 0, square = 0;

	(void)state;
	xfp_moments_add(&moments, x, COUNT);
	rule = xfp_outlier_rule(&moments, 4000);
	for (int i = 0; i < COUNT; i++)
		sum += rintl((long double)x[i] * 1024);
	for (int i = 0; i < COUNT; i++)
		square += powl(rintl((long double)x[i] * 1024) - sum / COUNT, 2);
	assert_true(fabs(rule.mean - (double)(sum / COUNT)) < 1e-9 * fabs(rule.mean));
	assert_true(fabs(rule.sigma - (double)sqrtl(square / (COUNT - 1))) < 1e-12 * rule.sigma);
	assert_int_equal(rule.high, (int)floor(rule.mean + 4 * rule.sigma));
	assert_int_equal(rule.low, (int)ceil(rule.mean - 4 * rule.sigma));
}

static void rows_add_up_to_the_whole(void **state)
{
	struct xfp_moments whole = { 0 }, rows = { 0 };
	float row[XFP_LANES * 50] = { 0 };

	(void)state;
	xfp_moments_add(&whole, x, COUNT);
	for (int i = COUNT - 625; i >= 0; i -= 625) {
		memcpy(row, x + i, 625 * sizeof *x); /* and padding */
		xfp_moments_add(&rows, row, 625);
	}
	assert_memory_equal(&whole, &rows, sizeof whole);
}

static void outliers_come_by_distance_then_position(void **state)
{
	struct xfp_moments moments = { 0 };
	struct xfp_outlier_rule rule;
	xfp_outlier *found = malloc(COUNT * sizeof *found), *buffer = malloc(COUNT * sizeof *buffer);
	uint32_t *column = malloc(COUNT * sizeof *column);
	size_t count, expected = 0;

	(void)state;
	x[70000] = x[50] = 16000; /* a tie */
	xfp_moments_add(&moments, x, COUNT);
	rule = xfp_outlier_rule(&moments, 4000);
	count = xfp_outliers_find(&rule, x, COUNT, column);
	for (int i = 0; i < COUNT; i++)
		expected += fabs(rint(x[i] * 1024.0) - rule.mean) > 4 * rule.sigma;
	assert_int_equal(count, expected);
	assert_true(count > 100);
	for (size_t i = 0; i < count; i++)
		found[i] = xfp_outlier_of(column[i], xfp_q_of(x[column[i]]));
	xfp_outliers_sort(rule.mean, found, count, buffer);
	assert_int_equal(xfp_outlier_position(found[0]), 50);
	assert_int_equal(xfp_outlier_position(found[1]), 70000);
	for (size_t i = 1; i < count; i++) {
		double before = fabs(xfp_outlier_q(found[i - 1]) - rule.mean);
		double here = fabs(xfp_outlier_q(found[i]) - rule.mean);

		assert_true(before > here || (before == here && found[i - 1] < found[i]));
	}
	/* A higher threshold marks a prefix. */
	rule = xfp_outlier_rule(&moments, 6000);
	expected = xfp_outliers_find(&rule, x, COUNT, column);
	assert_true(expected < count);
	for (size_t i = 0; i < count; i++) {
		int32_t q = xfp_outlier_q(found[i]);

		assert_int_equal(i < expected, q < rule.low || q > rule.high);
	}
	free(found);
	free(buffer);
	free(column);
}

/* Outliers whose distances differ in any bits, in either order. */
static void sorting_looks_at_every_bit(void **state)
{
	static const double means[] = { 0, 0.5, 1.0 / 3, -1e-7, 12345.678 };
	int32_t q[128];
	unsigned count = 0;

	(void)state;
	for (int bit = 0; bit <= 24; bit++) {
		for (int beside = -1; beside <= 1; beside++) {
			int32_t value = (1 << bit) + beside;

			q[count++] = value <= 1 << 24 ? value : 3 << 22;
		}
		q[count++] = -(1 << bit);
	}
	for (size_t m = 0; m < sizeof means / sizeof *means; m++) {
		for (unsigned i = 0; i < count; i++) {
			for (unsigned j = 0; j < count; j++) {
				xfp_outlier pair[2] = { xfp_outlier_of(7, q[i]), xfp_outlier_of(9, q[j]) }, buffer[2];
				bool swapped = fabs(q[j] - means[m]) > fabs(q[i] - means[m]);

				xfp_outliers_sort(means[m], pair, 2, buffer);
				assert_int_equal(xfp_outlier_position(pair[swapped]), 7);
				assert_int_equal(xfp_outlier_q(pair[swapped]), q[i]);
				assert_int_equal(xfp_outlier_position(pair[!swapped]), 9);
				assert_int_equal(xfp_outlier_q(pair[!swapped]), q[j]);
			}
		}
	}
}

/* Three outliers whose distances differ in one digit of the sort: the least, the largest and one between. */
static void sorting_takes_every_value_of_a_digit(void **state)
{
	xfp_outlier buffer[3];

	(void)state;
	for (int32_t middle = 1; middle < 2047; middle++) {
		/* equal exponents; 11 bits of mantissa */
		xfp_outlier found[3] = { xfp_outlier_of(1, 4096), xfp_outlier_of(2, 4096 + 2 * middle),
					 xfp_outlier_of(3, 4096 + 2 * 2047) };

		xfp_outliers_sort(0, found, 3, buffer);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(xfp_outlier_position(found[i]), 3 - i);
	}
}

static void a_constant_matrix_has_none(void **state)
{
	struct xfp_moments moments = { 0 };
	struct xfp_outlier_rule rule;
	float y[1008] = { 0 };
	uint32_t column[1008];

	(void)state;
	for (int i = 0; i < 1000; i++)
		y[i] = 8192.0001f + 1.0f / 3;
	xfp_moments_add(&moments, y, 1000);
	rule = xfp_outlier_rule(&moments, 4000);
	assert_true(rule.sigma == 0);
	assert_int_equal(xfp_outliers_find(&rule, y, 1000, column), 0);
	/* One weight has no standard deviation. */
	moments = (struct xfp_moments){ 0 };
	memset(y + 1, 0, 15 * sizeof *y);
	xfp_moments_add(&moments, y, 1);
	assert_true(xfp_outlier_rule(&moments, 4000).sigma == 0);
	/* Neither has none. */
	moments = (struct xfp_moments){ 0 };
	assert_true(xfp_outlier_rule(&moments, 4000).sigma == 0);
}

static void sums_do_not_overflow(void **state)
{
	struct xfp_moments moments = { 0 };
	float *y = malloc(sizeof *y << 20);

	(void)state;
	for (int i = 0; i < 1 << 20; i++)
		y[i] = i & 1 ? 16384 : -16384;
	for (int round = 0; round < 8; round++)
		xfp_moments_add(&moments, y, 1 << 20);
	assert_true(moments.sum == 0);
	assert_true(moments.square == (xfp_int128)1 << (23 + 48));
	assert_true(fabs(xfp_outlier_rule(&moments, 0).sigma - (1 << 24)) < 2);
	free(y);
}

PROGRAM("test_moments")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moments_are_those_of_the_sample),
		cmocka_unit_test(rows_add_up_to_the_whole),
		cmocka_unit_test(outliers_come_by_distance_then_position),
		cmocka_unit_test(sorting_looks_at_every_bit),
		cmocka_unit_test(sorting_takes_every_value_of_a_digit),
		cmocka_unit_test(a_constant_matrix_has_none),
		cmocka_unit_test(sums_do_not_overflow),
	};

	return cmocka_run_group_tests_name("moments", tests, fill, NULL);
}
