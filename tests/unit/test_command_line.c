/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/command_line.h"
#include "base/text/size.h"
#include "base/text/whole_number.h"

#define MAX_WORDS 9

/* The result of parsing a command line with a few options. */
struct outcome {
	struct xfp_command_line line;
	struct xfp_error err;
	enum xfp_status status;
	bool quiet, dry, binary;
	const char *work;
	char *out;
	char where[64], taken[64]; /* set by the option --count */
	uint32_t jobs;
	uint64_t seed, size, memory;
	unsigned order;
	char *words[MAX_WORDS + 1];
};

static enum xfp_status parse_count(const struct xfp_option *option, const char *where, const char *value,
				   struct xfp_error *err)
{
	struct outcome *outcome = option->context;

	snprintf(outcome->where, sizeof outcome->where, "%s", where);
	snprintf(outcome->taken, sizeof outcome->taken, "%s", value);
	return strcmp(value, "none") ? XFP_OK : xfp_fail(err, XFP_USAGE, "%s %s: is not a number", where, value);
}

static const char *const orders[] = { "name", "size", "kind", NULL };

static void read_words(struct outcome *outcome, const char *const words[])
{
	const struct xfp_option options[] = {
		{ .name = "work", .letter = 'w', .value = "DIR", .text = "", .into = &outcome->work },
		{ .name = "quiet", .letter = 'q', .text = "", .set = &outcome->quiet },
		{ .name = "dry-run", .text = "", .set = &outcome->dry },
		{ .name = "count", .value = "N", .text = "", .parse = parse_count, .context = outcome },
		{ .name = "jobs", .value = "N", .text = "", .into_32 = &outcome->jobs, .range = { "jobs", 1, 8 } },
		{ .name = "seed",
		  .value = "N",
		  .text = "",
		  .into_64 = &outcome->seed,
		  .range = { "a seed", 0, UINT64_MAX } },
		{ .name = "size", .value = "SIZE", .text = "", .into_size = &outcome->size },
		{ .name = "memory",
		  .value = "SIZE",
		  .text = "",
		  .into_size = &outcome->memory,
		  .binary = &outcome->binary,
		  .range.what = "8GiB" },
		{ .name = "output", .value = "FILE", .text = "", .copy = &outcome->out, .range.what = "a path" },
		{ .name = "sort", .value = "KEY", .text = "", .choices = orders, .choice = &outcome->order },
		{ 0 },
	};
	int count = 1;

	memset(outcome, 0, sizeof *outcome);
	outcome->line = (struct xfp_command_line){ .usage = "xfp test", .summary = "", .options = options };
	outcome->words[0] = (char *)"xfp test";
	for (; *words; words++)
		outcome->words[count++] = (char *)*words;
	outcome->status = xfp_command_line_parse(&outcome->line, count, outcome->words, &outcome->err);
}
#define READ(outcome, ...) read_words(outcome, (const char *const[]){ __VA_ARGS__, NULL })

static void values_go_where_the_table_says(void **state)
{
	struct outcome o;

	(void)state;
	READ(&o, "a.xfp", "-w", "first", "--work=last", "--count", "3", "-q", "b.xfp");
	assert_int_equal(o.status, XFP_OK);
	assert_string_equal(o.work, "last");
	assert_true(o.quiet);
	assert_false(o.dry);
	assert_string_equal(o.where, "--count");
	assert_string_equal(o.taken, "3");
	assert_string_equal(o.line.program, "xfp test");
	assert_int_equal(o.line.argument_count, 2);
	assert_string_equal(o.line.arguments[0], "a.xfp");
	assert_string_equal(o.line.arguments[1], "b.xfp");
	READ(&o, "--dry-run", "--", "-q");
	assert_int_equal(o.status, XFP_OK);
	assert_true(o.dry);
	assert_false(o.quiet);
	assert_int_equal(o.line.argument_count, 1);
	assert_string_equal(o.line.arguments[0], "-q");
	/* Parsing can be repeated in one process. */
	READ(&o, "x");
	assert_null(o.work);
	assert_int_equal(o.line.argument_count, 1);
	assert_false(o.line.printed);
}

static void values_have_types(void **state)
{
	static const struct {
		const char *option, *value, *message;
	} wrong[] = {
		{ "--jobs", "0", "--jobs '0': expected jobs from 1 to 8" },
		{ "--jobs", "9", "--jobs '9': expected jobs from 1 to 8" },
		{ "--jobs", "4294967297", "--jobs '4294967297': expected jobs from 1 to 8" },
		{ "--seed", "18446744073709551616",
		  "--seed '18446744073709551616': expected a seed from 0 to 18446744073709551615" },
		{ "--size", "much", "--size 'much': expected a size such as 500MB, 20G or 4GiB" },
		{ "--memory", "4", "--memory '4': expected a size such as 8GiB; " XFP_SIZE_UNITS },
		{ "--memory", "much", "--memory 'much': expected a size such as 8GiB; " XFP_SIZE_UNITS },
		{ "--output", "", "--output '': expected a path" },
		{ "--sort", "siez", "--sort 'siez': expected name, size or kind; did you mean size?" },
	};
	struct outcome o;

	(void)state;
	READ(&o, "--jobs=8", "--seed=18446744073709551615", "--size=4GiB", "--sort=kind", "--memory=1GiB", "--output=a",
	     "--output=b");
	assert_int_equal(o.status, XFP_OK);
	assert_int_equal(o.jobs, 8);
	assert_true(o.seed == UINT64_MAX);
	assert_int_equal(o.size, 4ull << 30);
	assert_int_equal(o.order, 2);
	assert_true(o.memory == 1 << 30 && o.binary);
	assert_string_equal(o.out, "b");
	free(o.out);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		READ(&o, wrong[i].option, wrong[i].value);
		assert_int_equal(o.status, XFP_USAGE);
		assert_string_equal(o.err.text, wrong[i].message);
	}
}

/* On failure, all outputs are unchanged. */
static void a_rejected_value_is_not_stored(void **state)
{
	static const char *const choices[] = { "all", "none", NULL };
	const char *into = "before";
	bool set = false, binary = true;
	uint64_t size = 7;
	struct xfp_option choice = { .name = "x", .choices = choices, .into = &into, .set = &set };
	struct xfp_option memory = {
		.name = "m", .into_size = &size, .binary = &binary, .set = &set, .range.what = "8GiB"
	};
	struct xfp_error err;

	(void)state;
	assert_int_equal(xfp_option_use(&choice, "--x", "some", &err), XFP_USAGE);
	assert_false(set);
	assert_string_equal(into, "before");
	assert_int_equal(xfp_option_use(&memory, "--m", "4", &err), XFP_USAGE);
	assert_false(set);
	assert_true(binary && size == 7);
	assert_int_equal(xfp_option_use(&memory, "--m", "4GB", &err), XFP_OK);
	assert_true(set && !binary && size == 4000000000);
	assert_int_equal(xfp_option_use(&choice, "--x", "none", &err), XFP_OK);
	assert_string_equal(into, "none");
}

/* The message is cut off if the choices are too long for it. */
static void many_choices(void **state)
{
	const char *choices[101] = { NULL };
	struct xfp_option option = { .name = "x", .choices = choices };
	struct xfp_error err;

	(void)state;
	for (int i = 0; i < 100; i++)
		choices[i] = "a choice of forty-eight characters, to be exact:";
	assert_int_equal(xfp_option_use(&option, "--x", "some", &err), XFP_USAGE);
	assert_memory_equal(err.text, "--x 'some': expected a choice of forty-eight", 44);
	assert_true(strlen(err.text) < 200);
}

static void what_is_wrong_is_said_and_ends_it(void **state)
{
	struct outcome o;

	(void)state;
	READ(&o, "--count", "none", "-q");
	assert_int_equal(o.status, XFP_USAGE);
	assert_string_equal(o.err.text, "--count none: is not a number");
	assert_false(o.quiet);
	READ(&o, "--cuont", "3", "-q");
	assert_int_equal(o.status, XFP_USAGE);
	assert_string_equal(o.err.text, "unknown option --cuont; did you mean --count?");
	assert_string_equal(o.taken, "");
	READ(&o, "-w");
	assert_int_equal(o.status, XFP_USAGE);
	assert_string_equal(o.err.text, "-w requires a value");
	READ(&o, "--quiet=3");
	assert_int_equal(o.status, XFP_USAGE);
	assert_string_equal(o.err.text, "--quiet=3 takes no value");
	READ(&o, "-x");
	assert_int_equal(o.status, XFP_USAGE);
	assert_string_equal(o.err.text, "unknown option -x");
}

static void numbers_are_digits_alone(void **state)
{
	static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "1k", "0x1", "1.0", "18446744073709551616" };
	uint64_t number = 7;
	uint32_t small = 7;
	struct xfp_error err;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(xfp_whole_number_parse(bad[i], 0, UINT64_MAX, &number));
	assert_false(xfp_whole_number_parse("2", 3, 9, &number));
	assert_false(xfp_whole_number_parse("10", 3, 9, &number));
	assert_int_equal(number, 7);
	assert_true(xfp_whole_number_parse("18446744073709551615", 3, UINT64_MAX, &number));
	assert_int_equal(number, UINT64_MAX);
	assert_true(xfp_whole_number_parse("009", 3, 9, &number));
	assert_int_equal(number, 9);
	assert_int_equal(xfp_whole_number_32("--jobs", "4294967297", "a number of jobs", 1, 4096, &small, &err),
			 XFP_USAGE);
	assert_string_equal(err.text, "--jobs '4294967297': expected a number of jobs from 1 to 4096");
	assert_int_equal(small, 7);
	assert_int_equal(xfp_whole_number_32("--jobs", "4096", "a number of jobs", 1, 4096, &small, &err), XFP_OK);
	assert_int_equal(small, 4096);
}

PROGRAM("test_command_line")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_go_where_the_table_says),    cmocka_unit_test(values_have_types),
		cmocka_unit_test(a_rejected_value_is_not_stored),    cmocka_unit_test(many_choices),
		cmocka_unit_test(what_is_wrong_is_said_and_ends_it), cmocka_unit_test(numbers_are_digits_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
