/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock of stages, if processes test it at the same time. The program is linked with --wrap of flock.
 */
#include <errno.h>
#include <sys/file.h>
#include <unistd.h>

#include "cache/steps.h"
#include "tests/unit/scratch.h"

static unsigned taken_by_others; /* the next calls of flock that fail */

int __real_flock(int fd, int how);
int __wrap_flock(int fd, int how);

int __wrap_flock(int fd, int how)
{
	if (!taken_by_others || how == LOCK_UN)
		return __real_flock(fd, how);
	taken_by_others--;
	errno = EWOULDBLOCK;
	return -1;
}

static void tests_do_not_see_each_other(void **state)
{
	int step, second;

	scratch_write(state, "lock", "", 0);
	scratch_write(state, XFP_STEPS_FILE, "", 0);
	taken_by_others = 2;
	assert_false(xfp_steps_are_running(*state));
	assert_int_equal(taken_by_others, 0);
	taken_by_others = 5;
	step = xfp_steps_share(*state);
	assert_true(step >= 0);
	assert_int_equal(taken_by_others, 0);
	assert_true(xfp_steps_are_running(*state));
	second = xfp_steps_share(*state);
	close(step);
	assert_true(xfp_steps_are_running(*state));
	close(second);
	assert_false(xfp_steps_are_running(*state));
}

PROGRAM("test_steps")
{
	const struct CMUnitTest tests[] = {
		scratch_test(tests_do_not_see_each_other),
	};

	return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
