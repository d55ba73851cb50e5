/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress of a stage within a unit: what it writes, and what readers accept.
 */
#include "stages/work/stage_progress.h"
#include "tests/unit/scratch.h"

/* Simulate that the last write was long ago. */
static void read_some(struct xfp_stage_progress *progress, uint64_t weights)
{
	progress->written -= 1;
	progress->watcher.done(&progress->watcher, weights);
}

static double told(void **state, uint32_t unit, const char *stage)
{
	struct xfp_stage_slots slots = xfp_stage_progress_open(*state);
	double share = xfp_stage_progress_read(&slots, unit, stage);

	xfp_stage_progress_close(&slots);
	return share;
}

static void what_is_written_is_read(void **state)
{
	struct xfp_stage_progress first, second;

	assert_true(told(state, 0, "libfit") == 0); /* no file yet */
	xfp_stage_progress_begin(&first, *state, 7, "libfit", 1000);
	first.watcher.done(&first.watcher, 100); /* too soon to write */
	assert_true(told(state, 7, "libfit") == 0);
	read_some(&first, 150);
	assert_true(told(state, 7, "libfit") == 0.25);
	xfp_stage_progress_begin(&second, *state, 0, "outlier-extract", 1000);
	second.watcher.more(&second.watcher, 1000);
	read_some(&second, 1000);
	assert_true(told(state, 0, "outlier-extract") == 0.5);
	assert_true(told(state, 7, "libfit") == 0.25);
	read_some(&second, 5000); /* more than announced */
	assert_true(told(state, 0, "outlier-extract") == 1);
}

static void others_and_nonsense_say_nothing(void **state)
{
	static const char *const slots[] = { "libfit          0500001\n"
					     "pack            9999999\n"
					     "libfit                -1\n",
					     "", "libfit  " };
	struct xfp_stage_progress progress;

	xfp_stage_progress_begin(&progress, *state, 3, "libfit", 1000);
	read_some(&progress, 500);
	assert_true(told(state, 3, "pack") == 0);
	assert_true(told(state, 2, "libfit") == 0);
	assert_true(told(state, 4, "libfit") == 0);
	for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
		scratch_write(state, XFP_STAGE_PROGRESS_FILE, slots[i], strlen(slots[i]));
		assert_true(told(state, 1, "pack") == 0);
		assert_true(told(state, 2, "libfit") == 0);
	}
}

/* Without write access there is no progress, and no stage fails. */
static void no_folder_is_no_failure(void **state)
{
	char *work = scratch_path(state, "missing");
	struct xfp_stage_progress progress;
	struct xfp_stage_slots slots;

	xfp_stage_progress_begin(&progress, work, 0, "pack", 10);
	read_some(&progress, 5);
	slots = xfp_stage_progress_open(work);
	assert_int_equal(slots.count, 0);
	xfp_stage_progress_close(&slots);
	free(work);
}

PROGRAM("test_stage_progress")
{
	const struct CMUnitTest tests[] = {
		scratch_test(what_is_written_is_read),
		scratch_test(others_and_nonsense_say_nothing),
		scratch_test(no_folder_is_no_failure),
	};

	return cmocka_run_group_tests_name("stage_progress", tests, NULL, NULL);
}
