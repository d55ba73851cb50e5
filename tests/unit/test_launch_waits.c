/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launchers that do not start their commands: step files that stay empty.
 */
#include "conversion/launch/launch.h"
#include "tests/unit/scratch.h"

static void a_step_that_stays_empty(void **state)
{
	struct xfp_launch_wait wait = { 0 };

	assert_false(xfp_launch_waits(*state, 1000, &wait)); /* no steps */
	scratch_write(state, "events", "", 0);
	assert_false(xfp_launch_waits(*state, 1040, &wait));
	scratch_write(state, "step-aaaaaa", "node n1\n", 8);
	assert_false(xfp_launch_waits(*state, 1080, &wait));
	scratch_write(state, "step-bbbbbb", "", 0);
	assert_false(xfp_launch_waits(*state, 1100, &wait));
	assert_false(xfp_launch_waits(*state, 1129, &wait));
	assert_false(xfp_launch_waits(*state, 1130, &wait)); /* checked a second ago */
	assert_true(xfp_launch_waits(*state, 1133, &wait));
}

static void steps_that_start(void **state)
{
	struct xfp_launch_wait wait = { 0 };

	scratch_write(state, "step-aaaaaa", "", 0);
	assert_false(xfp_launch_waits(*state, 1000, &wait));
	scratch_write(state, "step-aaaaaa", "node n1\n", 8);
	scratch_write(state, "step-bbbbbb", "", 0);
	assert_false(xfp_launch_waits(*state, 1020, &wait));
	assert_false(xfp_launch_waits(*state, 1040, &wait));
	scratch_write(state, "step-bbbbbb", "node n1\n", 8);
	assert_false(xfp_launch_waits(*state, 1060, &wait));
	assert_false(xfp_launch_waits(*state, 1100, &wait));
}

PROGRAM("test_launch_waits")
{
	const struct CMUnitTest tests[] = {
		scratch_test(a_step_that_stays_empty),
		scratch_test(steps_that_start),
	};

	return cmocka_run_group_tests_name("launch-waits", tests, NULL, NULL);
}
