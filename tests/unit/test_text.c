/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text is complete or missing, whichever allocation fails.
 */
#include "base/text/text.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static size_t asked, fails_at; /* counted from 1; 0: never */

/* Replaces the function of libc through the linker's --wrap. */
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_realloc(void *old, size_t size)
{
	return fails_at && ++asked == fails_at ? NULL : __real_realloc(old, size);
}

static void lines(struct xfp_text *text, unsigned count)
{
	FILE *out = xfp_text_begin(text);

	assert_non_null(out);
	for (unsigned i = 0; i < count; i++) {
		fprintf(out, "line %u", i);
		fputc('\n', out);
	}
}

static void whole(void **state)
{
	struct xfp_text text;

	(void)state;
	lines(&text, 0);
	assert_true(xfp_text_end(&text));
	assert_int_equal(text.size, 0);
	assert_string_equal(text.bytes, "");
	free(text.bytes);
	for (unsigned count = 1; count < 3000; count = count * 3 + 1) {
		size_t at = 0;

		lines(&text, count);
		assert_true(xfp_text_end(&text));
		for (unsigned i = 0; i < count; i++) {
			char line[32];

			snprintf(line, sizeof line, "line %u\n", i);
			assert_memory_equal(text.bytes + at, line, strlen(line));
			at += strlen(line);
		}
		assert_int_equal(text.size, at);
		assert_int_equal(strlen(text.bytes), at);
		free(text.bytes);
	}
}

/* A size at which the capacity must grow for the NUL, and one at which it need not. */
static void at_the_edge(void **state)
{
	static const char byte[1] = "x";
	struct xfp_text text;

	(void)state;
	for (size_t size = 250; size < 260; size++) {
		FILE *out = xfp_text_begin(&text);

		for (size_t i = 0; i < size; i++)
			fwrite(byte, 1, 1, out);
		assert_true(xfp_text_end(&text));
		assert_int_equal(strlen(text.bytes), size);
		free(text.bytes);
	}
}

static void no_memory(void **state)
{
	size_t places = 0;
	bool ended = false;
	struct xfp_text text;

	(void)state;
	while (!ended) {
		asked = 0;
		fails_at = ++places;
		lines(&text, 20000);
		ended = xfp_text_end(&text);
		fails_at = 0;
		assert_int_equal(text.bytes != NULL, ended);
	}
	assert_true(places > 3);
	assert_int_equal(text.size, 20000 * strlen("line 19999\n") - 11110);
	free(text.bytes);
	text = (struct xfp_text){ 0 };
	assert_false(xfp_text_end(&text));
}

PROGRAM("test_text")
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(whole), cmocka_unit_test(at_the_edge),
					    cmocka_unit_test(no_memory) };

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
