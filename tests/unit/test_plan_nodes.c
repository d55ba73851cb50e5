/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The predicted time of a conversion on several nodes.
 */
#include "tests/unit/unit.h"

#include <math.h>

#include "conversion/plan/nodes.h"

#define UNITS 300
#define GB 1000000000ull

static double seconds[UNITS];
static uint64_t weights[UNITS];
static struct xfp_error err;

/* `count` units of `each` seconds, with as many weights as batches take for 10.1 seconds. */
static struct xfp_plan_load load_of(uint32_t count, double each)
{
	for (uint32_t i = 0; i < count; i++) {
		seconds[i] = each;
		weights[i] = 400000000;
	}
	return (struct xfp_plan_load){ .unit = seconds,
				       .weights = weights,
				       .count = count,
				       .prepare = 2,
				       .bundle = 400000000, /* a second */
				       .threads = 1 };
}

static struct xfp_plan_nodes_time predict(const struct xfp_plan_load *load, uint32_t nodes, uint32_t processors,
					  uint64_t bandwidth)
{
	const struct xfp_plan_nodes given = { nodes, processors, .5, bandwidth };
	struct xfp_plan_nodes_time time;

	assert_int_equal(xfp_plan_nodes_predict(load, &given, &time, &err), XFP_OK);
	return time;
}

static void expect(double value, double wanted)
{
	if (fabs(value - wanted) > 1e-9 * wanted)
		fail_msg("%g, not %g", value, wanted);
}

static void computed_by_hand(void **state)
{
	struct xfp_plan_load load = load_of(4, 10);
	struct xfp_plan_nodes_time time;

	/* Two batches of two units, each of which has a processor. */
	(void)state;
	time = predict(&load, 2, 2, 100 * GB);
	assert_int_equal(time.steps, 2);
	expect(time.work, 10);
	expect(time.units, 10.5);
	expect(time.launching, .5);
	expect(time.total, 2 + 10.5 + 1);
	assert_int_equal(time.binds, XFP_BOUND_WORK);
	/* Layers are computed before units. */
	load.layers = 6;
	expect(predict(&load, 2, 2, 100 * GB).total, 2 + 3 + 10.5 + 1);
	/* One unit occupies one node, with both of its processors. */
	load = load_of(1, 40);
	time = predict(&load, 2, 2, 100 * GB);
	assert_int_equal(time.steps, 1);
	expect(time.units, 20.5);
	assert_int_equal(time.binds, XFP_BOUND_UNIT);
	/* Four batches: of two units, 10.5 seconds, and three of one with two threads, 5.5: the first node takes the
	 * first and the last. */
	load = load_of(5, 10);
	time = predict(&load, 2, 2, 100 * GB);
	assert_int_equal(time.steps, 4);
	expect(time.units, 16);
	/* Two batches of a unit with three quarters of the work, so three threads each, and two light ones. The three
	 * share the four processors for 7.5 seconds; then the heavy one has 50 seconds left for its threads. */
	load = load_of(6, 10);
	for (uint32_t i = 0; i < 6; i++) {
		seconds[i] = i < 2 ? 60 : 10;
		weights[i] = i < 2 ? 1196000000 : 196000000;
	}
	time = predict(&load, 2, 4, 100 * GB);
	assert_int_equal(time.steps, 2);
	expect(time.units, 7.5 + 50 / 3. + .5);
	/* Three batches of one unit. */
	load = load_of(3, 10);
	expect(predict(&load, 2, 1, 100 * GB).units, 21);
}

static void the_disk_and_the_head_node_bind(void **state)
{
	struct xfp_plan_load load = load_of(4, 10);
	struct xfp_plan_nodes_time time;

	(void)state;
	load.moved = 100 * GB;
	time = predict(&load, 2, 2, GB);
	expect(time.disk, 100);
	expect(time.total, 2 + 100 + 1);
	assert_int_equal(time.binds, XFP_BOUND_DISK);
	/* A bundle is read and written. */
	time = predict(&load, 2, 2, GB / 10);
	expect(time.bundle, 8);
	load = load_of(4, 10);
	load.bundle = 40 * GB;
	time = predict(&load, 2, 2, 100 * GB);
	expect(time.total, 2 + 10.5 + 100);
	assert_int_equal(time.binds, XFP_BOUND_HEAD);
	load.verified = 1000 * GB;
	load.source = 960 * GB;
	expect(predict(&load, 2, 2, 100 * GB).verify, 5000);
	expect(predict(&load, 2, 2, GB / 10).verify, 10000);
}

static void one_node_has_no_launcher(void **state)
{
	struct xfp_plan_load load = load_of(5, 10);
	struct xfp_plan_nodes_time time = predict(&load, 1, 4, 100 * GB);

	(void)state;
	assert_int_equal(time.steps, 0);
	expect(time.total, 2 + 12.5 + 1);
	load.layers = 6; /* while units run */
	expect(predict(&load, 1, 4, 100 * GB).total, 2 + 14 + 1);
	seconds[0] = 100; /* the largest unit has one thread, */
	expect(predict(&load, 1, 4, 100 * GB).total, 2 + 100 + 1);
	load.threads = 4; /* or four */
	expect(predict(&load, 1, 4, 100 * GB).total, 2 + 36.5 + 1);
	load.count = 0;
	load.layers = 0;
	expect(predict(&load, 1, 4, 100 * GB).total, 3);
	expect(predict(&load, 8, 4, 100 * GB).total, 3);
}

static void more_nodes_never_take_longer(void **state)
{
	struct xfp_plan_load load = load_of(UNITS, 10);
	double before = INFINITY;

	(void)state;
	for (uint32_t i = 0; i < UNITS; i++) {
		seconds[i] = 1 + 40 * (i % 5 == 0) + .01 * i;
		weights[i] = (uint64_t)(40e6 * seconds[i]);
	}
	for (uint32_t nodes = 1; nodes <= 64; nodes *= 2) {
		const struct xfp_plan_nodes_time time = predict(&load, nodes, 4, GB);

		assert_true(time.total <= before);
		assert_true(time.units >= time.work);
		assert_true(time.steps <= 16 * nodes);
		before = time.total;
	}
}

PROGRAM("test_plan_nodes")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(computed_by_hand),
		cmocka_unit_test(the_disk_and_the_head_node_bind),
		cmocka_unit_test(one_node_has_no_launcher),
		cmocka_unit_test(more_nodes_never_take_longer),
	};

	return cmocka_run_group_tests_name("plan_nodes", tests, NULL, NULL);
}
