/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of any bytes as a JSON string.
 */
#include <string.h>

#include "schemas/json_print.h"
#include "tests/unit/unit.h"

static void expect(const char *bytes, const char *text)
{
	json_t *value = xfp_json_text(bytes);

	assert_non_null(value);
	assert_string_equal(json_string_value(value), text);
	json_decref(value);
}

static void utf8_is_left_as_it_is(void **state)
{
	(void)state;
	expect("", "");
	expect("/plain/path", "/plain/path");
	expect("a\nb\\c\"", "a\nb\\c\"");
	expect("\302\200 \340\240\200 \360\220\200\200 \364\217\277\277",
	       "\302\200 \340\240\200 \360\220\200\200 \364\217\277\277");
}

static void other_bytes_are_escaped(void **state)
{
	(void)state;
	expect("m\377", "m\\xff");
	expect("\200m\303\274", "\\x80m\303\274"); /* a stray continuation, then a character */
	expect("\303", "\\xc3");                   /* cut off by the end */
	expect("\342\202", "\\xe2\\x82");
	expect("\360\220\200x", "\\xf0\\x90\\x80x");
	expect("\300\257", "\\xc0\\xaf");                   /* overlong */
	expect("\355\240\200", "\\xed\\xa0\\x80");          /* half a surrogate pair */
	expect("\364\220\200\200", "\\xf4\\x90\\x80\\x80"); /* beyond the last */
	expect("\360\220\200\200\377", "\360\220\200\200\\xff");
	expect("\377\376\375\374", "\\xff\\xfe\\xfd\\xfc");
}

/* Of the longest path that there can be, nothing is cut. */
static void long_text_is_whole(void **state)
{
	char bytes[4097], text[4 * 4096 + 1];

	(void)state;
	memset(bytes, 0xff, 4096);
	bytes[4096] = 0;
	for (size_t i = 0; i < 4096; i++)
		memcpy(text + 4 * i, "\\xff", 4);
	text[sizeof text - 1] = 0;
	expect(bytes, text);
}

static void no_text_is_null(void **state)
{
	json_t *value = xfp_json_text_or_null(NULL);

	(void)state;
	assert_true(json_is_null(value));
	value = xfp_json_text_or_null("a");
	assert_string_equal(json_string_value(value), "a");
	json_decref(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_is_left_as_it_is),
		cmocka_unit_test(other_bytes_are_escaped),
		cmocka_unit_test(long_text_is_whole),
		cmocka_unit_test(no_text_is_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
