/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verification of a bundle: for which file it is recorded, and how the record is read.
 */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stages/work/bundle_stamp.h"
#include "stages/work/verified.h"
#include "tests/unit/scratch.h"

#define SHA256 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static struct xfp_error err;

/* Create a file, and its stamp as if a run had just written it. */
static char *written(void **state)
{
	struct xfp_bundle_stamp stamp = { .key = "00112233445566778899aabbccddeeff",
					  .sha256 = SHA256,
					  .index = "ffeeddccbbaa99887766554433221100" };
	char *path = scratch_path(state, "x.xfp");
	struct stat st;

	scratch_write(state, "x.xfp", "bundle", 6);
	assert_int_equal(stat(path, &st), 0);
	stamp.identity = xfp_identity_of(&st);
	assert_int_equal(xfp_bundle_stamp_write(*state, &stamp, &err), XFP_OK);
	return path;
}

/* Count the events recorded since. */
static unsigned events(void **state, struct xfp_events_reader *reader, struct xfp_event *last)
{
	char *text = NULL, *rest, *line;
	unsigned count = 0;

	assert_int_equal(xfp_events_read(*state, reader, &text, &err), XFP_OK);
	for (rest = text; (line = strsep(&rest, "\n"));)
		if (*line) {
			assert_true(xfp_event_parse(line, last));
			count++;
		}
	free(text);
	return count;
}

static void nothing(void **state, const struct xfp_verification *v, enum xfp_status verdict, const char *why)
{
	struct xfp_event event;
	struct xfp_events_reader reader = { 0 };

	assert_int_equal(xfp_verification_record(v, verdict, "damaged", &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, why));
	assert_int_equal(events(state, &reader, &event), 0);
	xfp_events_reader_free(&reader);
}

static void a_verdict_is_recorded(void **state)
{
	char *path = written(state), long_text[1024];
	struct xfp_verification v = xfp_verification_begin(*state, path);
	struct xfp_verified verified;
	struct xfp_event event;
	struct xfp_events_reader reader = { 0 };

	assert_int_equal(xfp_verification_record(&v, XFP_OK, "of no concern", &err), XFP_OK);
	assert_int_equal(events(state, &reader, &event), 1);
	assert_string_equal(event.outcome, "made");
	assert_true(event.seconds >= 0 && event.seconds < 100);
	assert_true(xfp_event_is_verify(&event) && xfp_verified_parse(&event, &verified));
	assert_string_equal(verified.sha256, SHA256);
	assert_int_equal(strlen(verified.when), 20);
	assert_int_equal(verified.status, XFP_OK);
	assert_string_equal(verified.text, "");

	assert_int_equal(xfp_verification_record(&v, XFP_UNMET, "x.xfp: floors are not met", &err), XFP_OK);
	assert_int_equal(events(state, &reader, &event), 1);
	assert_string_equal(event.outcome, "failed");
	assert_true(xfp_verified_parse(&event, &verified));
	assert_string_equal(verified.sha256, SHA256);
	assert_int_equal(verified.status, XFP_UNMET);
	assert_string_equal(verified.text, "x.xfp: floors are not met");

	/* the longest possible message */
	memset(long_text, 'x', sizeof long_text - 1);
	long_text[sizeof long_text - 1] = 0;
	assert_int_equal(xfp_verification_record(&v, XFP_BAD_INPUT, long_text, &err), XFP_OK);
	assert_int_equal(events(state, &reader, &event), 1);
	assert_true(xfp_verified_parse(&event, &verified));
	assert_int_equal(strlen(verified.text), 900);
	xfp_events_reader_free(&reader);
	free(path);
}

static void only_of_the_file_that_was_written(void **state)
{
	char *path = written(state), *other = scratch_path(state, "y.xfp"), *folder = scratch_path(state, "none");
	struct xfp_verification v = xfp_verification_begin(folder, path);
	struct xfp_event event;
	struct xfp_events_reader reader = { 0 };

	nothing(state, &v, XFP_OK, "not the work folder");
	scratch_write(state, "y.xfp", "bundle", 6);
	v = xfp_verification_begin(*state, folder);
	nothing(state, &v, XFP_BAD_INPUT, "not the file");
	v = xfp_verification_begin(*state, other);
	nothing(state, &v, XFP_OK, "not the file");
	nothing(state, &v, XFP_BAD_INPUT, "not the file");

	/* replaced, or written to, while it was verified */
	v = xfp_verification_begin(*state, path);
	assert_int_equal(chmod(path, 0600), 0);
	nothing(state, &v, XFP_OK, "changed since");
	/* changed in place before: a pass would not apply to the written bundle, but a failure must be recorded */
	v = xfp_verification_begin(*state, path);
	nothing(state, &v, XFP_OK, "changed since");
	assert_int_equal(xfp_verification_record(&v, XFP_BAD_INPUT, "damaged", &err), XFP_OK);
	assert_int_equal(events(state, &reader, &event), 1);
	xfp_events_reader_free(&reader);
	free(path);
	free(other);
	free(folder);
}

static void a_record_that_cannot_be_written(void **state)
{
	char *path = written(state), *events_file = scratch_path(state, XFP_EVENTS_FILE);
	struct xfp_verification v = xfp_verification_begin(*state, path);

	scratch_mkdir(state, XFP_EVENTS_FILE);
	assert_int_equal(xfp_verification_record(&v, XFP_OK, "", &err), XFP_FAILED);
	assert_non_null(strstr(err.text, events_file));
	free(events_file);
	free(path);
}

static void records_of_another_form(void **state)
{
	static const char *const messages[] = {
		"",
		SHA256,
		SHA256 " ",
		SHA256 " 2026-01-31",
		SHA256 "0 2026-01-31T12:34:56Z",
		SHA256 " 2026-01-31T12:34:56Z0",
		"0 2026-01-31T12:34:56Z",
		"x.xfp: damaged",
	};
	struct xfp_event event = { .unit = XFP_NO_UNIT, .stage = XFP_VERIFY_STAGE, .outcome = "made" };
	struct xfp_verified verified;

	(void)state;
	for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
		strcpy(event.message, messages[i]);
		if (xfp_verified_parse(&event, &verified))
			fail_msg("taken: '%s'", messages[i]);
	}
	strcpy(event.message, SHA256 " 2026-01-31T12:34:56Z");
	assert_true(xfp_verified_parse(&event, &verified));
	event.unit = 0;
	assert_false(xfp_verified_parse(&event, &verified));
	event.unit = XFP_NO_UNIT;
	strcpy(event.stage, "bundle");
	assert_false(xfp_verified_parse(&event, &verified));
}

PROGRAM("test_verified")
{
	const struct CMUnitTest tests[] = {
		scratch_test(a_verdict_is_recorded),
		scratch_test(only_of_the_file_that_was_written),
		scratch_test(a_record_that_cannot_be_written),
		scratch_test(records_of_another_form),
	};

	return cmocka_run_group_tests_name("verified", tests, NULL, NULL);
}
