/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of units for a launcher: enough for all jobs, worth launching, balanced, the heaviest first.
 */
#include <stdbool.h>
#include <string.h>

#include "conversion/launch/batches.h"
#include "tests/unit/unit.h"

#define MAX_UNITS 20000

static struct xfp_batch_unit units[MAX_UNITS];

/* Units 0 to count - 1; unit i takes seconds[i % kinds]. Checks what holds for all batches; returns their number. */
static uint32_t divide(uint32_t count, const double *seconds, uint32_t kinds, unsigned jobs)
{
	static bool seen[MAX_UNITS];
	uint32_t batches, same = 0;

	memset(seen, 0, sizeof seen);
	for (uint32_t i = 0; i < count; i++)
		units[i] = (struct xfp_batch_unit){ .unit = i, .seconds = seconds[i % kinds] };
	batches = xfp_batches(units, count, jobs, 6);
	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_batch_unit *unit = &units[i];

		assert_false(seen[unit->unit]);
		seen[unit->unit] = true;
		assert_true(unit->seconds == seconds[unit->unit % kinds]);
		assert_true(unit->batch < batches);
		same = i && unit->batch == unit[-1].batch ? same + 1 : 1;
		assert_true(same <= 1000);
		if (same > 1)
			assert_true(unit->seconds <= unit[-1].seconds);
		else
			assert_int_equal(unit->batch, i ? unit[-1].batch + 1 : 0);
	}
	assert_int_equal(count ? units[count - 1].batch + 1 : 0, batches);
	return batches;
}

static void numbers(void **state)
{
	const double second = 1, hour = 3600;

	(void)state;
	assert_int_equal(divide(0, &second, 1, 4), 0);
	assert_int_equal(divide(1, &second, 1, 4), 1);
	assert_int_equal(divide(3, &second, 1, 4), 3);    /* no batch is empty */
	assert_int_equal(divide(10, &second, 1, 4), 4);   /* all jobs have one, even if it is short */
	assert_int_equal(divide(100, &second, 1, 4), 16); /* 6 s each, and the same number for all jobs */
	assert_int_equal(divide(100, &second, 1, 1), 16);
	assert_int_equal(divide(100, &hour, 1, 4), 64);     /* no more than 16 a job */
	assert_int_equal(divide(20000, &second, 1, 1), 20); /* command lines have a limit */
	assert_int_equal(divide(20000, &second, 1, 16), 256);
}

/* A heavy unit may leave all the light ones to another batch. */
static void heavy_one(void **state)
{
	double seconds[2000] = { 10 };

	(void)state;
	for (uint32_t i = 1; i < 2000; i++)
		seconds[i] = .001;
	assert_int_equal(divide(2000, seconds, 2000, 2), 2);
}

static void threads(void **state)
{
	const double stack[] = { 50, 15, 15, 10, 5, 5 };

	(void)state;
	for (uint32_t i = 1; i <= 1000; i++) {
		units[0] = (struct xfp_batch_unit){ 0, .1 + i / 7., 0 };
		assert_int_equal(xfp_batch_heaviest(units, 1), 1000);
	}
	for (uint32_t count = 1; count <= 40; count++) {
		for (uint32_t i = 0; i <= count; i++)
			units[i] = (struct xfp_batch_unit){ i, .1, i == count };
		assert_int_equal(xfp_batch_threads(16, xfp_batch_heaviest(units, count + 1)),
				 count < 16 ? 16 / count : 1);
	}
	for (uint32_t i = 0; i < 6; i++)
		units[i] = (struct xfp_batch_unit){ i, stack[i], 0 };
	assert_int_equal(xfp_batch_heaviest(units, 6), 500);
	assert_int_equal(xfp_batch_threads(16, 500), 8);
}

static void balance(void **state)
{
	const double seconds[] = { 1, 40, 3, 7, 3, 2, 11 };
	double sums[64] = { 0 }, least, most;
	uint32_t batches = divide(1000, seconds, 7, 4);

	(void)state;
	assert_int_equal(batches, 64);
	for (uint32_t i = 0; i < 1000; i++)
		sums[units[i].batch] += units[i].seconds;
	least = most = sums[0];
	for (uint32_t b = 0; b < batches; b++) {
		least = sums[b] < least ? sums[b] : least;
		most = sums[b] > most ? sums[b] : most;
	}
	assert_true(most - least <= 3);
	assert_true(units[0].seconds == 40);
}

PROGRAM("test_batches")
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(numbers), cmocka_unit_test(heavy_one),
					    cmocka_unit_test(threads), cmocka_unit_test(balance) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
