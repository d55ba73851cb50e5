/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/glob.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static void yes(const char *pattern, const char *name)
{
	if (!xfp_glob_matches(pattern, name))
		fail_msg("\"%s\" does not match \"%s\"", pattern, name);
}

static void no(const char *pattern, const char *name)
{
	if (xfp_glob_matches(pattern, name))
		fail_msg("\"%s\" matches \"%s\"", pattern, name);
}

static void by_hand(void **state)
{
	(void)state;
	yes("", "");
	no("", "a");
	no("a", "");
	yes("*", "");
	yes("**", ".hidden/with.dots");
	yes("model.layers.*.mlp.experts.\\*.up_proj.weight", "model.layers.3.mlp.experts.*.up_proj.weight");
	no("model.layers.*.mlp.experts.\\*.up_proj.weight", "model.layers.3.mlp.experts.7.up_proj.weight");
	yes("*a*b*c", "xaybzabc");
	no("*a*b*c", "xaybzab");
	yes("a?c", "a/c");
	no("a?c", "ac");
	yes("[]a]", "]");
	yes("[!]a]", "b");
	no("[^]a]", "]");
	yes("[a-]", "-");
	yes("[a\\-c]", "-");
	no("[a\\-c]", "b");
	yes("[[:digit:]_][[:alpha:]]", "_x");
	yes("[\x80-\xff]", "\xc3");
	no("[\x80-\xff]", "c");
	/* A set that is not closed is literal. */
	yes("[", "[");
	yes("a[b", "a[b");
	yes("[a-", "[a-");
	no("a\\", "a\\");
}

/* Compare with libc, for patterns without special cases. */
static void as_fnmatch(void **state)
{
	static const char *const pieces[] = {
		"a",           "b",
		".",           "/",
		"*",           "*",
		"?",           "[ab]",
		"[!ab]",       "[^.]",
		"[a-c]",       "[]-]",
		"[[:alpha:]]", "[[:punct:]]",
		"\\*",         "\\a",
		"[!a-b./]",    "[[:upper:]b]",
		"-",           "[[:space:][:digit:]]",
		"]",           "[b\\]]",
		"[/-b]",       "[[.a.]-c]",
		"[[=a=]]",     "[\\a-c]",
		"\xc3",        "[\xa0-\xff]",
		"[[:graph:]]", "[[:xdigit:]]",
		"[c-a]",       "!",
	};
	static const char characters[] = "aabbc.A1/-*] _\xc3\xbf!";
	uint32_t seed = 1, matched = 0;

	(void)state;
	for (unsigned trial = 0; trial < 400000; trial++) {
		char pattern[128] = "", name[16];
		size_t parts, length;

		seed = seed * 1664525u + 1013904223u;
		parts = seed >> 29;
		for (size_t i = 0; i < parts; i++) {
			seed = seed * 1664525u + 1013904223u;
			strcat(pattern, pieces[(seed >> 8) % (sizeof pieces / sizeof *pieces)]);
		}
		seed = seed * 1664525u + 1013904223u;
		length = seed >> 29;
		for (size_t i = 0; i < length; i++) {
			seed = seed * 1664525u + 1013904223u;
			name[i] = characters[(seed >> 8) % (sizeof characters - 1)];
		}
		name[length] = 0;
		matched += xfp_glob_matches(pattern, name);
		if (xfp_glob_matches(pattern, name) != !fnmatch(pattern, name, 0))
			fail_msg("\"%s\", \"%s\": libc says %s", pattern, name,
				 fnmatch(pattern, name, 0) ? "no" : "yes");
	}
	assert_true(matched > 4000);
}

/* Every character in every class. */
static void classes(void **state)
{
	static const char *const names[] = { "alpha", "digit", "alnum", "lower", "upper", "blank",
					     "space", "cntrl", "graph", "print", "punct", "xdigit" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		for (int c = 1; c < 256; c++) {
			char pattern[32], name[] = { (char)c, 0 };

			snprintf(pattern, sizeof pattern, "[[:%s:]]", names[i]);
			if (xfp_glob_matches(pattern, name) != !fnmatch(pattern, name, 0))
				fail_msg("%s of %d", pattern, c);
		}
}

/* Memory and time are bounded for any name. */
static void long_names(void **state)
{
	size_t length = 1 << 16;
	char *name = malloc(length + 1);

	(void)state;
	memset(name, 'a', length);
	name[length] = 0;
	no("*a*a*a*a*a*a*a*a*a*b", name);
	yes("*a*a*a*a*a*a*a*a*a*", name);
	free(name);
}

PROGRAM("test_glob")
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(by_hand), cmocka_unit_test(as_fnmatch),
					    cmocka_unit_test(classes), cmocka_unit_test(long_names) };

	return cmocka_run_group_tests_name("glob", tests, NULL, NULL);
}
