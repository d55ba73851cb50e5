/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokenizers: vocabularies with gaps, refused templates, and white space.
 */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/tokenizer.h"
#include "model/tokenizer/unicode/unicode.h"

static enum xfp_status open_text(const char *text, struct xfp_tokenizer **t, struct xfp_error *err)
{
	return xfp_tokenizer_open(text, strlen(text), "t.json", t, err);
}

/* Ids may have gaps, which decode to nothing. */
static void vocabularies_with_gaps(void **state)
{
	static const struct {
		uint32_t id;
		const char *text;
	} cases[] = { { 0, "a" }, { 2, "b" }, { 90, "c" }, { 1, "" }, { 3, "" }, { 89, "" }, { 91, "" } };
	struct xfp_tokenizer *t = NULL;

	(void)state;
	assert_int_equal(open_text("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":2,\"c\":90},\"merges\":[]}}",
				   &t, NULL),
			 XFP_OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *text = NULL;
		size_t size = 0;

		assert_int_equal(xfp_tokenizer_decode(t, &cases[i].id, 1, false, &text, &size, NULL), XFP_OK);
		assert_int_equal(size, strlen(cases[i].text));
		assert_memory_equal(text, cases[i].text, size);
		free(text);
	}
	xfp_tokenizer_free(t);
}

#define TEMPLATE(single)                                                                                \
	"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"post_processor\":{\"type\":" \
	"\"TemplateProcessing\",\"single\":[" single "],\"pair\":[],\"special_tokens\":{\"x\":{\"ids\":[0]}}}}"
#define TOKEN "\"SpecialToken\":{\"id\":\"x\"}"
#define TEXT "\"Sequence\":{\"id\":\"A\"}"

static void templates(void **state)
{
	static const char *const cases[][2] = {
		{ TEMPLATE("{" TEXT "}"), NULL },
		{ TEMPLATE("{" TOKEN "},{" TEXT "},{" TOKEN "}"), NULL },
		{ TEMPLATE("{" TOKEN "," TEXT "}"), "single[0] is neither" },
		{ TEMPLATE("{" TEXT ",\"more\":1}"), "single[0] is neither" },
		{ TEMPLATE("{" TEXT "},{\"Other\":{\"id\":\"x\"}}"), "single[1] is neither" },
		{ TEMPLATE("{" TEXT "},{}"), "single[1] is neither" },
		{ TEMPLATE("{" TEXT "},{" TEXT "}"), "single[1]: the text" },
		{ TEMPLATE("{\"Sequence\":{\"id\":\"B\"}}"), "single[0]: the text" },
		{ TEMPLATE("{" TOKEN "}"), "single does not contain the text" },
		{ TEMPLATE(""), "single does not contain the text" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct xfp_tokenizer *t = NULL;
		struct xfp_error err = { 0 };
		enum xfp_status status = open_text(cases[i][0], &t, &err);

		if (cases[i][1] ? status != XFP_BAD_INPUT || !strstr(err.text, cases[i][1]) : status != XFP_OK)
			fail_msg("%s: status %d: %s", cases[i][0], (int)status, err.text);
		xfp_tokenizer_free(t);
	}
}

/* The 25 code points of the property White_Space, which no version of Unicode adds to. */
static void white_space(void **state)
{
	static const uint32_t ranges[][2] = {
		{ 9, 13 },          { ' ', ' ' },       { 0x85, 0x85 },     { 0xa0, 0xa0 },     { 0x1680, 0x1680 },
		{ 0x2000, 0x200a }, { 0x2028, 0x2029 }, { 0x202f, 0x202f }, { 0x205f, 0x205f }, { 0x3000, 0x3000 },
	};
	unsigned count = 0;

	(void)state;
	for (uint32_t c = 0; c < 0x110000; c++) {
		bool white = false;

		for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
			white |= c >= ranges[i][0] && c <= ranges[i][1];
		if (xfp_is_white(c) != white)
			fail_msg("U+%04X", (unsigned)c);
		count += white;
	}
	assert_int_equal(count, 25);
}

PROGRAM("test_tokenizer_edges")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vocabularies_with_gaps),
		cmocka_unit_test(templates),
		cmocka_unit_test(white_space),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
