/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations and times, and their text forms.
 */
#include <stdbool.h>

#include "tests/unit/unit.h"

#include "base/text/utc.h"
#include "commands/ui/pace.h"
#include "commands/ui/when.h"

static void what_is_left_follows_from_fresh_work(void **state)
{
	struct xfp_pace pace = { .total = 1000, .cached = 400, .fresh = 200, .elapsed = 10 };

	(void)state;
	assert_true(xfp_pace_rate(&pace) > 19.999 && xfp_pace_rate(&pace) < 20.001);
	assert_true(xfp_pace_remaining(&pace) > 19.999 && xfp_pace_remaining(&pace) < 20.001);
	pace.fresh = 0;
	assert_true(xfp_pace_remaining(&pace) < 0);
	pace.fresh = 200;
	pace.elapsed = 0;
	assert_true(xfp_pace_remaining(&pace) < 0);
}

/* No forecast from too little work, nor from mostly guessed work. */
static void it_is_told_when_it_can_be_trusted(void **state)
{
	static const struct {
		struct xfp_pace pace;
		bool told;
	} cases[] = {
		{ { 1000, 0, 9, 5, 0 }, false },    { { 1000, 0, 10, 5, 0 }, true },
		{ { 1000, 500, 5, 5, 0 }, true }, /* of the remaining work */
		{ { 1000, 500, 4, 5, 0 }, false },  { { 1e6, 0, 1, 59, 0 }, false },
		{ { 1e6, 0, 1, 60, 0 }, true },     { { 1000, 0, 100, 5, 50 }, true }, /* units that have started */
		{ { 1000, 0, 100, 5, 51 }, false }, { { 1000, 0, 499, 5, 499 }, false },
		{ { 1000, 0, 500, 5, 500 }, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if ((xfp_pace_remaining(&cases[i].pace) >= 0) != cases[i].told)
			fail_msg("case %zu", i);
}

static void a_pace_is_worded(void **state)
{
	static const struct {
		struct xfp_pace pace;
		const char *text;
	} cases[] = {
		{ { 2e6, 5e5, 5e5, 100, 0 }, "1.00 M of 2.00 M weights, 5.00 k/s, ETA 0:03:20, 500 k cached" },
		{ { 2e6, 0, 5e5, 100, 0 }, "500 k of 2.00 M weights, 5.00 k/s, ETA 0:05:00" },
		{ { 2e6, 5e5, 0, 100, 0 }, "500 k of 2.00 M weights, 500 k cached" },
		{ { 2e6, 0, 5e5, 100, 4e5 }, "500 k of 2.00 M weights, 5.00 k/s" },
		{ { 2e6, 0, 2e6, 100, 0 }, "2.00 M of 2.00 M weights, 20.0 k/s" },
		{ { 2e12, 0, 1, 100, 0 }, "1 of 2.00 T weights, 0/s" },
	};
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		xfp_pace_text(&cases[i].pace, text, sizeof text);
		assert_string_equal(text, cases[i].text);
	}
}

static void seconds_are_worded(void **state)
{
	char text[48];

	(void)state;
	assert_string_equal(xfp_clock_text(0.9, text), "0:00:00");
	assert_string_equal(xfp_clock_text(45296.7, text), "12:34:56");
	assert_string_equal(xfp_duration_text(3.24, text), "3.2 s");
	assert_string_equal(xfp_duration_text(12.4, text), "12 s");
	assert_string_equal(xfp_duration_text(99.4, text), "99 s");
	assert_string_equal(xfp_duration_text(99.5, text), "0:01:39");
	assert_string_equal(xfp_rough_time_text(89.4, text), "89 s");
	assert_string_equal(xfp_rough_time_text(90, text), "2 min");
	assert_string_equal(xfp_rough_time_text(5399, text), "90 min");
	assert_string_equal(xfp_rough_time_text(12600, text), "3.5 h");
	assert_string_equal(xfp_remaining_text(89.4, text), "about 89 s left");
	assert_string_equal(xfp_remaining_text(150, text), "about 2 min left");
}

static void a_time_is_worded(void **state)
{
	json_t *none = xfp_json_time(0), *then = xfp_json_time(1795257727);
	char text[32];

	(void)state;
	assert_string_equal(xfp_utc(1795257727, text), "2026-11-21T10:42:07Z");
	assert_string_equal(xfp_utc(0, text), "-");
	assert_string_equal(json_string_value(then), "2026-11-21T10:42:07Z");
	assert_true(json_is_null(none));
	json_decref(none);
	json_decref(then);
}

PROGRAM("test_pace")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_left_follows_from_fresh_work),
		cmocka_unit_test(it_is_told_when_it_can_be_trusted),
		cmocka_unit_test(a_pace_is_worded),
		cmocka_unit_test(seconds_are_worded),
		cmocka_unit_test(a_time_is_worded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
