/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <stdint.h>
#include <string.h>

#include "base/system/next_option.h"
#include "base/text/suggestion.h"

static void distances_count_letters(void **state)
{
	char sixty_three[64], longer[65];

	(void)state;
	assert_int_equal(xfp_distance("", ""), 0);
	assert_int_equal(xfp_distance("floor", "floor"), 0);
	assert_int_equal(xfp_distance("", "floor"), 5);
	assert_int_equal(xfp_distance("floors", "floor"), 1);     /* inserted */
	assert_int_equal(xfp_distance("overide", "override"), 1); /* removed */
	assert_int_equal(xfp_distance("fload", "floor"), 2);      /* replaced */
	assert_int_equal(xfp_distance("bist", "bits"), 1);        /* swapped */
	assert_int_equal(xfp_distance("ibst", "bits"), 2);        /* swapped twice */
	assert_int_equal(xfp_distance("ca", "abc"), 3);           /* no letter is touched twice */
	assert_int_equal(xfp_distance("verify", "verify2"), xfp_distance("verify2", "verify"));
	memset(sixty_three, 'a', 63);
	sixty_three[63] = '\0';
	memset(longer, 'a', 64);
	longer[64] = '\0';
	assert_int_equal(xfp_distance(sixty_three, ""), 63);
	assert_int_equal(xfp_distance(sixty_three, longer), SIZE_MAX);
	assert_int_equal(xfp_distance(longer, longer), 0);
}

static void the_nearest_is_found(void **state)
{
	static const char *const names[] = { "verify", "mode", "model", "modes" };

	(void)state;
	assert_string_equal(xfp_nearest_name("vreify", names, 4, 2), "verify");
	assert_string_equal(xfp_nearest_name("moode", names, 4, 2), "mode");
	assert_string_equal(xfp_nearest_name("modest", (const char *[]){ "models", "modes" }, 2, 2), "modes");
	assert_string_equal(xfp_nearest_name("modes", (const char *[]){ "model", "mode" }, 2, 2), "mode");
	assert_string_equal(xfp_nearest_name("modes", (const char *[]){ "mode", "model" }, 2, 2), "mode");
	assert_string_equal(xfp_nearest_name("model", names, 4, 2), "model"); /* not the first that is near */
	assert_string_equal(xfp_nearest_name("modex", names, 4, 2), "mode");  /* the first of equals */
	assert_string_equal(xfp_nearest_name("modes", names, 4, 0), "modes");
	assert_null(xfp_nearest_name("moode", names, 4, 0));
	assert_null(xfp_nearest_name("vrf", names, 4, 2));
	assert_null(xfp_nearest_name("mode", names, 0, 9));
}

static void a_slip_is_in_proportion(void **state)
{
	(void)state;
	assert_int_equal(xfp_max_distance("out"), 1);
	assert_int_equal(xfp_max_distance("bits"), 2);
	assert_int_equal(xfp_max_distance("lm-headd"), 2);
	assert_int_equal(xfp_max_distance("lm-headdd"), 3);
	assert_int_equal(xfp_max_distance("min-cos-strct"), 4);
}

/* ---- options ----------------------------------------------------------------------------------- */

enum { HELP = 256, FIRST, SECOND };

static const struct option options[] = {
	{ "help", no_argument, NULL, HELP },
	{ "outlier-sigma", required_argument, NULL, FIRST },
	{ "outlier-cap", required_argument, NULL, SECOND },
	{ "quiet", no_argument, NULL, 'q' },
	{ 0 },
};

/* Parse the first option of a command line, or return the error. */
static int first(char *word, char *value, const char **text)
{
	static struct xfp_error err;
	char *argv[] = { (char *)"xfp test", word, value, NULL };
	int option;

	err = (struct xfp_error){ .status = XFP_OK };
	optind = 0;
	option = xfp_next_option(value ? 3 : 2, argv, "o:q", options, &err);
	assert_int_equal(err.status, option == '?' ? XFP_USAGE : XFP_OK);
	*text = err.text;
	return option;
}

static void options_are_read_as_by_getopt(void **state)
{
	const char *text;

	(void)state;
	assert_int_equal(first((char *)"-h", NULL, &text), HELP);
	assert_int_equal(first((char *)"--help", NULL, &text), HELP);
	assert_int_equal(first((char *)"--he", NULL, &text), HELP);
	assert_int_equal(first((char *)"-q", NULL, &text), 'q');
	assert_int_equal(first((char *)"-qh", NULL, &text), 'q');
	assert_int_equal(first((char *)"--outlier-cap", (char *)"3", &text), SECOND);
	assert_string_equal(optarg, "3");
	assert_int_equal(first((char *)"model", NULL, &text), -1);
}

static void a_wrong_option_is_told_what_it_could_be(void **state)
{
	static const struct {
		const char *word, *text;
	} cases[] = {
		{ "--hlep", "unknown option --hlep; did you mean --help?" },
		{ "--outlier-sgima=3", "unknown option --outlier-sgima; did you mean --outlier-sigma?" },
		{ "--colour", "unknown option --colour" },
		{ "--outlier=3", "option --outlier is ambiguous: it could be --outlier-sigma, --outlier-cap" },
		{ "--outlier-cap", "--outlier-cap requires a value" },
		{ "-o", "-o requires a value" },
		{ "-x", "unknown option -x" },
		{ "-\033", "unknown option -\\x1b" },
		{ "--quiet=yes", "--quiet=yes takes no value" },
		{ "--c\nlour", "unknown option --c\\x0alour" },
	};
	const char *text;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(first((char *)cases[i].word, NULL, &text), '?');
		assert_string_equal(text, cases[i].text);
	}
}

static void several_may_have_been_meant(void **state)
{
	static const char *const names[] = {
		"attention", "dense_mlp", "shared_expert", "routed_expert", "norm", "plan"
	};
	static const struct {
		const char *word, *text;
	} cases[] = {
		{ "attentoin", "; did you mean =attention?" },
		{ "ATTENTION", "; did you mean =attention?" },
		{ "attn", "; did you mean =attention?" },
		{ "mlp", "; did you mean =dense_mlp?" },
		{ "expert", "; did you mean =shared_expert or =routed_expert?" },
		{ "plam", "; did you mean =plan?" },
		{ "lan", "; did you mean =plan?" },
		{ "xpert", "; did you mean =shared_expert or =routed_expert?" },
		{ "xprt", "" }, /* the first letter is missing */
		{ "e", "" },
		{ "frobnicate", "" },
		{ "", "" },
	};
	static const char *const many[] = { "aab", "aac", "aad", "aae", "aa" };
	char text[XFP_DID_YOU_MEAN], longest[80];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_string_equal(xfp_did_you_mean("=", cases[i].word, names, 6, text), cases[i].text);
	assert_string_equal(xfp_did_you_mean("", "aa", many, 5, text), "; did you mean aa, aab or aac?");
	/* if one name is only mistyped, no name that the word might abbreviate */
	assert_string_equal(xfp_did_you_mean("", "plam", (const char *[]){ "planned_amount", "plan" }, 2, text),
			    "; did you mean plan?");
	memset(longest, 'a', 79);
	longest[79] = '\0';
	assert_string_equal(xfp_did_you_mean("", longest, names, 6, text), "");
}

PROGRAM("test_suggestion")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_may_have_been_meant),
		cmocka_unit_test(distances_count_letters),
		cmocka_unit_test(the_nearest_is_found),
		cmocka_unit_test(a_slip_is_in_proportion),
		cmocka_unit_test(options_are_read_as_by_getopt),
		cmocka_unit_test(a_wrong_option_is_told_what_it_could_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
