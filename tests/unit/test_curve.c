/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sizes that a plan prints, as a table and as JSON: unused bytes are in the unit of the goal.
 */
#include <string.h>

#include "commands/plan/print.h"
#include "tests/unit/scratch.h"

static struct xfp_request request;
static struct xfp_conversion conversion = { .request = &request };
static struct xfp_plan_point points[] = {
	{ .file = 1000000, .gpu = 600000, .bits = 2.5, .error = 0.125 },
	{ .file = 2000000, .gpu = 1100000, .bits = 4.75, .error = 0.015625 },
};

static struct xfp_plan_facts facts(enum xfp_goal_kind kind, uint64_t budget)
{
	request.goal.kind = kind;
	return (struct xfp_plan_facts){
		.c = &conversion,
		.curve = { .point = points, .count = 2, .units = 7, .surveyed = 3, .budget = budget },
	};
}

/* The two rows of the table, with single spaces; allocated. */
static char *table(const struct xfp_plan_facts *facts, void **state)
{
	char *path = scratch_path(state, "printed"), *text, *words, *rows;
	FILE *file = fopen(path, "w");
	int output = dup(STDOUT_FILENO);

	assert_non_null(file);
	fflush(stdout);
	assert_int_equal(dup2(fileno(file), STDOUT_FILENO), STDOUT_FILENO);
	assert_int_equal(xfp_plan_print_curve(facts, NULL), XFP_OK);
	fflush(stdout);
	dup2(output, STDOUT_FILENO);
	close(output);
	fclose(file);
	assert_int_equal(xfp_slurp(path, 10000, &text, NULL, NULL), XFP_OK);
	assert_non_null(words = calloc(strlen(text) + 1, 1));
	assert_non_null(rows = strstr(text, "error,\n"));
	assert_non_null(rows = strstr(rows, "size"));
	for (char *word = strtok(rows, " \n"); word; word = strtok(NULL, " \n"))
		strcat(strcat(words, *words ? " " : ""), word);
	free(text);
	free(path);
	return words;
}

static void expect_table(enum xfp_goal_kind kind, uint64_t budget, void **state, const char *want)
{
	struct xfp_plan_facts f = facts(kind, budget);
	char *found = table(&f, state);

	assert_string_equal(found, want);
	free(found);
}

static void margins_are_printed(void **state)
{
	expect_table(XFP_GOAL_SIZE, 1500000, state,
		     "size bits/weight error margin 1.00 MB 2.500 0.125000 500 kB 2.00 MB 4.750 0.015625 -500 kB");
	expect_table(XFP_GOAL_BPW, 2000000, state,
		     "size bits/weight error margin 1.00 MB 2.500 0.125000 1.00 MB 2.00 MB 4.750 0.015625 0 B");
	/* Bytes on a GPU are compared with the goal for a GPU. */
	expect_table(XFP_GOAL_ENVELOPE, 1000000, state,
		     "size bits/weight error on a GPU margin 1.00 MB 2.500 0.125000 600 kB 400 kB "
		     "2.00 MB 4.750 0.015625 1.10 MB -100 kB");
	expect_table(XFP_GOAL_NONE, 0, state, "size bits/weight error 1.00 MB 2.500 0.125000 2.00 MB 4.750 0.015625");
}

static void expect_json(enum xfp_goal_kind kind, uint64_t budget, const char *want)
{
	struct xfp_plan_facts f = facts(kind, budget);
	json_t *found = xfp_plan_curve_json(&f);
	char *text = json_dumps(json_object_get(found, "points"), JSON_COMPACT);

	assert_int_equal(json_integer_value(json_object_get(found, "units")), 7);
	assert_int_equal(json_integer_value(json_object_get(found, "surveyed")), 3);
	assert_non_null(text);
	assert_string_equal(text, want);
	free(text);
	json_decref(found);
}

static void margins_are_json(void **state)
{
	(void)state;
	expect_json(XFP_GOAL_SIZE, 1500000,
		    "[{\"bytes\":1000000,\"bits\":2.5,\"error\":0.125,\"gpu_bytes\":null,\"margin\":500000},"
		    "{\"bytes\":2000000,\"bits\":4.75,\"error\":0.015625,\"gpu_bytes\":null,\"margin\":-500000}]");
	expect_json(XFP_GOAL_ENVELOPE, 1000000,
		    "[{\"bytes\":1000000,\"bits\":2.5,\"error\":0.125,\"gpu_bytes\":600000,\"margin\":400000},"
		    "{\"bytes\":2000000,\"bits\":4.75,\"error\":0.015625,\"gpu_bytes\":1100000,\"margin\":-100000}]");
	expect_json(XFP_GOAL_NONE, 0,
		    "[{\"bytes\":1000000,\"bits\":2.5,\"error\":0.125,\"gpu_bytes\":null,\"margin\":null},"
		    "{\"bytes\":2000000,\"bits\":4.75,\"error\":0.015625,\"gpu_bytes\":null,\"margin\":null}]");
}

PROGRAM("test_curve")
{
	const struct CMUnitTest tests[] = {
		scratch_test(margins_are_printed),
		cmocka_unit_test(margins_are_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
