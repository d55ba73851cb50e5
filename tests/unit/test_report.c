/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a bundle's classes: its numbers follow from those of the units.
 */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/ui/commands.h"
#include "commands/ui/report.h"
#include "stages/work/describe.h"
#include "tests/unit/bundle_fixture.h"

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Find the line of the table that begins with a name. */
static void find_line(const char *text, const char *name, char line[256])
{
	char begin[64];
	const char *found;

	snprintf(begin, sizeof begin, "\n%s ", name);
	found = strstr(text, begin);
	if (!found)
		fail_msg("no line \"%s\":\n%s", name, text);
	snprintf(line, 256, "%.*s", (int)strcspn(found + 1, "\n"), found + 1);
}

/* Expect these words, separated by blanks. */
static void expect_numbers(const char *line, const double *numbers, int count)
{
	char number[32];
	const char *at = line;

	for (int i = 0; i < count; i++) {
		snprintf(number, sizeof number, " %.6f", numbers[i]);
		if (i)
			at += strspn(at, " ") - 1;
		if (i ? strncmp(at, number, strlen(number)) : !(at = strstr(at, number)))
			fail_msg("\"%s\" has no \"%s\" in its place", line, number);
		at += strlen(number);
	}
}

static char *table_of(const char *path)
{
	struct xfp_bundle *bundle = fixture_open(path);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(setenv("COLUMNS", "200", 1), 0); /* one line per class */
	xfp_report_table(out, bundle, NULL);
	assert_int_equal(fclose(out), 0);
	xfp_bundle_close(bundle);
	return text;
}

/* The median of an even number of units is the lower of the two middle ones. */
static void medians_of_classes(void **state)
{
	struct fixture f;
	char *text, line[256];
	unsigned even = 0, odd = 0;

	(void)state;
	fixture_make(&f, 0);
	for (uint32_t u = 0; u < f.ledger.unit_count; u++) { /* all different, unordered */
		f.packed[u].cos_median = 0.9 + (double)(u * 7 % 16) / 1000;
		f.packed[u].cos_p5 = 0.8 + (double)(u * 5 % 16) / 1000;
	}
	assert_int_equal(fixture_write_bundle(&f, NULL), XFP_OK);
	text = table_of(f.out);
	for (unsigned class_ = 0; class_ < XFP_CLASSES; class_++) {
		double median[FIXTURE_UNITS], p5[FIXTURE_UNITS];
		uint32_t count = 0;

		for (uint32_t u = 0; u < f.ledger.unit_count; u++) {
			if (f.units[u].class_ != class_)
				continue;
			median[count] = f.packed[u].cos_median;
			p5[count++] = f.packed[u].cos_p5;
		}
		if (!count)
			continue;
		qsort(median, count, sizeof *median, ascending);
		qsort(p5, count, sizeof *p5, ascending);
		find_line(text, xfp_class_name((enum xfp_class)class_), line);
		expect_numbers(line, (double[]){ median[(count - 1) / 2], p5[(count - 1) / 2], median[0] }, 3);
		even += count % 2 == 0;
		odd += count % 2;
	}
	assert_true(even && odd);
	/* The line of all units has none. */
	find_line(text, "all units", line);
	assert_null(strstr(line, "0.9"));
	free(text);
	fixture_free(&f);
}

/* Units below their floor are counted by class, and floors are printed as a range. */
static void floors_of_classes(void **state)
{
	struct fixture f;
	char *text, line[256];
	unsigned attention = 0;

	(void)state;
	fixture_make(&f, 0);
	for (uint32_t u = 0; u < f.ledger.unit_count; u++) {
		bool one = f.units[u].class_ == XFP_CLASS_ATTENTION;

		f.bundle_units[u].floor = one ? attention++ ? 0.98 : 0.97 : 0;
		f.bundle_units[u].met = !one || attention > 2;
	}
	assert_true(attention > 2);
	assert_int_equal(fixture_write_bundle(&f, NULL), XFP_OK);
	text = table_of(f.out);
	find_line(text, "attention", line);
	assert_non_null(strstr(line, "0.97-0.98"));
	find_line(text, "routed_expert", line);
	assert_non_null(strstr(line, " -  "));
	assert_non_null(strstr(text, "\nbelow the floor: 2 attention\n"));
	free(text);
	fixture_free(&f);
}

/* Write a bundle whose first unit records this median of outputs. */
static void write_calibrated(struct fixture *f, double median)
{
	struct xfp_output_measure output = { .median = median, .p5 = median, .error = 1 - median };
	const struct xfp_output_measure *outputs[FIXTURE_UNITS] = { &output };
	struct xfp_parameters parameters = xfp_parameters_default();
	char *json;

	memset(parameters.calibration.sha256, '0', 64);
	strcpy(parameters.calibration.source, "self");
	parameters.calibration.tokens = 2048;
	assert_non_null(json = xfp_describe(&f->ledger, &parameters, outputs));
	f->input.json = json;
	assert_int_equal(fixture_write_bundle(f, NULL), XFP_OK);
	free(json);
	xfp_parameters_free(&parameters);
}

/* Verification compares a floor with the recorded outputs, even if the bundle says that it is met. */
static void floors_of_outputs(void **state)
{
	static const struct {
		double median;
		bool met;
		const char *floor;
		int status;
	} cases[] = {
		{ .99, true, NULL, XFP_OK },
		{ .9899996, true, NULL, XFP_OK }, /* rounded */
		{ .989998, true, NULL, XFP_UNMET },
		{ .5, true, NULL, XFP_UNMET },
		{ .99, false, NULL, XFP_UNMET },
		{ .99, false, "attention=.98", XFP_OK },
		{ .99, true, "attention=.991", XFP_UNMET },
	};
	struct result r = { 0 };
	struct fixture f;

	(void)state;
	fixture_make(&f, 0);
	f.units[0].class_ = XFP_CLASS_ATTENTION;
	f.bundle_units[0].floor = .99;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		f.bundle_units[0].met = cases[i].met;
		write_calibrated(&f, cases[i].median);
		RUN(&f, &r, xfp_main_verify, cases[i].floor ? "--floor" : "-q", cases[i].floor ? cases[i].floor : "-q",
		    f.out);
		EXPECT(r, cases[i].status);
		if (cases[i].status)
			assert_non_null(strstr(r.err, "its median cosine of outputs is 0."));
	}
	fixture_result_free(&r);
	fixture_free(&f);
}

PROGRAM("test_report")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(medians_of_classes),
		cmocka_unit_test(floors_of_classes),
		cmocka_unit_test(floors_of_outputs),
	};

	return cmocka_run_group_tests_name("report", tests, NULL, NULL);
}
