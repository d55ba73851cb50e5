/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON strings from arbitrary bytes, objects and lists with missing values, and printing.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	expect("\303", "\\xc3");                   /* truncated at the end */
	expect("\342\202", "\\xe2\\x82");
	expect("\360\220\200x", "\\xf0\\x90\\x80x");
	expect("\300\257", "\\xc0\\xaf");                   /* overlong */
	expect("\355\240\200", "\\xed\\xa0\\x80");          /* half a surrogate pair */
	expect("\364\220\200\200", "\\xf4\\x90\\x80\\x80"); /* beyond the last */
	expect("\360\220\200\200\377", "\360\220\200\200\\xff");
	expect("\377\376\375\374", "\\xff\\xfe\\xfd\\xfc");
}

/* The longest possible path is not cut. */
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

static void numbers_that_json_lacks_are_null(void **state)
{
	json_t *list = json_array();
	char *text;

	(void)state;
	xfp_json_add(&list, xfp_json_count(0));
	xfp_json_add(&list, xfp_json_count(INT64_MAX));
	xfp_json_add(&list, xfp_json_count_or_null(0));
	xfp_json_add(&list, xfp_json_count_or_null(7));
	xfp_json_add(&list, xfp_json_number(.5));
	xfp_json_add(&list, xfp_json_number(NAN));
	xfp_json_add(&list, xfp_json_number(-INFINITY));
	text = json_dumps(list, JSON_COMPACT);
	assert_string_equal(text, "[0,9223372036854775807,null,7,0.5,null,null]");
	free(text);
	json_decref(list);
}

static void what_lacks_a_piece_is_nothing(void **state)
{
	json_t *list = json_array(), *object = XFP_JSON({ "a", json_true() });

	(void)state;
	assert_null(XFP_JSON({ "a", json_true() }, { "b", NULL }, { "c", json_array() }));
	assert_null(XFP_JSON({ "a", json_array() }, { "b", XFP_JSON({ "c", NULL }) }));
	xfp_json_add(&list, json_integer(1));
	assert_int_equal(json_array_size(list), 1);
	xfp_json_add(&list, NULL);
	assert_null(list);
	xfp_json_add(&list, json_integer(2));
	assert_null(list);
	xfp_json_put(&object, "b", json_false());
	assert_int_equal(json_object_size(object), 2);
	xfp_json_join(&object, XFP_JSON({ "c", json_null() }));
	assert_int_equal(json_object_size(object), 3);
	xfp_json_join(&object, NULL);
	assert_null(object);
	xfp_json_put(&object, "d", json_false());
	assert_null(object);
}

/* Print to a file in place of standard output; `text` receives the output. */
static enum xfp_status printed(json_t *root, bool line, char text[200])
{
	int output = dup(STDOUT_FILENO);
	FILE *file = tmpfile();
	struct xfp_error err;
	enum xfp_status status;
	size_t length;

	assert_non_null(file);
	fflush(stdout);
	assert_int_equal(dup2(fileno(file), STDOUT_FILENO), STDOUT_FILENO);
	status = line ? xfp_json_print_line(root, &err) : xfp_json_print(root, &err);
	fflush(stdout);
	dup2(output, STDOUT_FILENO);
	close(output);
	rewind(file);
	length = fread(text, 1, 199, file);
	text[length] = '\0';
	fclose(file);
	return status;
}

static void all_is_printed_alike(void **state)
{
	char text[200];

	(void)state;
	assert_int_equal(printed(XFP_JSON({ "b", json_real(0.1) }, { "a", XFP_JSON({ "c", json_integer(3) }) },
					  { "d", json_real(0.123456789012345) }),
				 false, text),
			 XFP_OK);
	assert_string_equal(text, "{\n  \"b\": 0.1,\n  \"a\": {\n    \"c\": 3\n  },\n  \"d\": 0.123456789012345\n}\n");
	assert_int_equal(printed(XFP_JSON({ "b", json_real(2.5) }, { "a", json_null() }), true, text), XFP_OK);
	assert_string_equal(text, "{\"b\":2.5,\"a\":null}");
	assert_int_equal(printed(xfp_json_text("x"), true, text), XFP_OK);
	assert_string_equal(text, "\"x\"");
	assert_int_equal(printed(xfp_json_text("\x1b\x7f\302\200\302\237\302\240\303\237"), true, text), XFP_OK);
	assert_string_equal(text, "\"\\u001B\\u007F\\u0080\\u009F\302\240\303\237\"");
	assert_int_equal(printed(NULL, false, text), XFP_FAILED);
	assert_string_equal(text, "");
}

PROGRAM("test_json_print")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_is_left_as_it_is),
		cmocka_unit_test(other_bytes_are_escaped),
		cmocka_unit_test(long_text_is_whole),
		cmocka_unit_test(no_text_is_null),
		cmocka_unit_test(numbers_that_json_lacks_are_null),
		cmocka_unit_test(what_lacks_a_piece_is_nothing),
		cmocka_unit_test(all_is_printed_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
