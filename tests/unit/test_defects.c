/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs that a file is not a text in UTF-8: counts, offsets and the threshold of the message.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#include "model/tokenizer/defects.h"

static void counts_and_offsets(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		struct xfp_text_defects expected;
	} cases[] = {
		{ "", 0, { 0, 0, 0, 0 } },
		{ "a\xc3\xa9\xf0\x9f\x98\x80", 7, { 0, 0, 0, 0 } },
		{ "ab\0c\0", 5, { 2, 2, 0, 0 } },
		{ "\xff", 1, { 0, 0, 1, 0 } },
		{ "ab\x80 \xfe", 5, { 0, 0, 2, 2 } },
		{ "a\xe2\x82", 3, { 0, 0, 2, 1 } },            /* ends within a character */
		{ "a\xe2\x82 b", 5, { 0, 0, 2, 1 } },          /* which is truncated */
		{ "\xed\xa0\x80\xc0\x80", 5, { 0, 0, 5, 0 } }, /* a surrogate; overlong */
		{ "\xff\0\xff", 3, { 1, 1, 2, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_text_defects found = xfp_text_defects(cases[i].text, cases[i].size);

		assert_int_equal(found.nuls, cases[i].expected.nuls);
		assert_int_equal(found.first_nul, cases[i].expected.first_nul);
		assert_int_equal(found.invalid, cases[i].expected.invalid);
		assert_int_equal(found.first_invalid, cases[i].expected.first_invalid);
	}
}

static void one_invalid_byte_in_1000_is_tolerated(void **state)
{
	char text[2000], message[XFP_TEXT_DEFECTS];

	(void)state;
	memset(text, 'a', sizeof text);
	assert_false(xfp_text_defects_text(text, 0, message));
	text[700] = (char)0xff;
	assert_false(xfp_text_defects_text(text, 1000, message));
	assert_true(xfp_text_defects_text(text, 999, message));
	text[900] = (char)0xff;
	assert_false(xfp_text_defects_text(text, 2000, message));
	assert_true(xfp_text_defects_text(text, 1999, message));
	assert_non_null(strstr(message, "2 bytes of invalid UTF-8 (0.1 %), the first at offset 700"));
	text[5] = 0;
	assert_true(xfp_text_defects_text(text, 2000, message));
	assert_non_null(strstr(message, "1 NUL byte, the first at offset 5, 2 bytes of"));
}

PROGRAM("test_defects")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_and_offsets),
		cmocka_unit_test(one_invalid_byte_in_1000_is_tolerated),
	};

	return cmocka_run_group_tests_name("defects", tests, NULL, NULL);
}
