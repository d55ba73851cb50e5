/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of stages compared with make's rules for the same steps: the rules are run with stub executables that only
 * report their calls.
 */
#include "conversion/todo.h"
#include "stages/work/fits.h"
#include "stages/work/stages.h"
#include "tests/unit/scratch.h"

#define UNIT "u000000"

/* ---- the table --------------------------------------------------------------------------------- */

static void rows(void **state)
{
	(void)state;
	for (int s = 0; s < XFP_STAMPS; s++) {
		const struct xfp_step *step = &xfp_steps[s];

		assert_non_null(step->stage);
		assert_non_null(step->kind);
		assert_int_equal(strncmp(step->program, "xfp-", 4), 0);
		assert_string_equal(step->program + 4, step->stage);
		assert_int_equal(strncmp(step->display_name, step->stage, strlen(step->stage)), 0);
		assert_string_equal(step->display_name + strlen(step->stage), step->extended ? " --extended" : "");
		assert_int_equal(step->fit, s >= XFP_STAMP_FIT && s < XFP_STAMP_FIT + XFP_FIT_KINDS);
		assert_int_equal(step->extended, step->fit && xfp_step_fit((enum xfp_stamp)s) >= XFP_FIT_EXTENDED);
		assert_int_equal(!step->target, step->extended || s == XFP_STAMP_SCALES);
		for (int t = 0; t < s; t++)
			assert_string_not_equal(step->stamp, xfp_steps[t].stamp);
		if (!step->extended && s != XFP_STAMP_SCALES)
			assert_int_equal(xfp_step_named(step->stage), s);
	}
	assert_int_equal(xfp_step_named("bundle"), XFP_STAMPS);
	assert_int_equal(xfp_step_named("survey"), XFP_STAMP_SURVEY);
	assert_int_equal(xfp_step_extended(XFP_STAMP_FIT), XFP_STAMP_EXTENDED);
	assert_int_equal(xfp_step_extended(XFP_STAMP_LIBRARY), XFP_STAMP_EXTENDED_LIBRARY);
	assert_int_equal(xfp_step_extended(XFP_STAMP_PACKED), XFP_STAMPS);
	/* Manual pages and fault tests name these files. */
	assert_string_equal(xfp_steps[XFP_STAMP_EXTENDED].stamp, "extended");
	assert_string_equal(xfp_steps[XFP_STAMP_EXTENDED_LIBRARY].stamp, "extended-library");
}

static void kinds(void **state)
{
	static const char *const names[] = { "survey", "scales", "outliers", "fit", "choice", "packed", "inputs" };
	(void)state;

	for (unsigned i = 0; i < 7; i++) {
		assert_string_equal(xfp_kind_at(i), names[i]);
		assert_int_equal(xfp_kind_place(names[i]), i);
	}
	assert_null(xfp_kind_at(7));
	assert_int_equal(xfp_kind_place("ledger"), 7);
	assert_int_equal(xfp_kind_place(""), 7);
}

/* ---- make's rules ------------------------------------------------------------------------------ */

/* Reports its call. A survey writes its make fragment; the choice requests more if the test says so. */
static const char stub[] = "#!/bin/sh\n"
			   "echo \"${0##*/} $*\" >>ran\n"
			   "case ${0##*/} in\n"
			   "xfp-survey) cp aimed \"$1-fits.mk\" ;;\n"
			   "xfp-autoselect) ! rm wanting 2>/dev/null || exit 76 ;;\n"
			   "esac\n";

static void add_stubs(void **state)
{
	scratch_mkdir(state, "bin");
	for (int s = 0; s < XFP_STAMPS; s++) {
		char *name = xfp_formatted("bin/%s", xfp_steps[s].program), *path = scratch_path(state, name);

		scratch_write(state, name, stub, strlen(stub));
		assert_int_equal(chmod(path, 0755), 0);
		free(path);
		free(name);
	}
}

/* The calls in order; the caller frees the text. `flags` NULL: make must succeed. */
static char *run_make(void **state, const char *flags)
{
	static const char *const above[] = { "MAKEFLAGS", "MAKEFILES", "GNUMAKEFLAGS", "MAKELEVEL" };
	const char *root = getenv("srcdir");
	char *pipelines = xfp_formatted("%s/pipelines", root ? root : "."), *ran = scratch_path(state, "ran"),
	     *command = xfp_formatted("cd '%s' && PATH=\"$PWD/bin:$PATH\" make -j1 %s -f \"$XFP_PIPELINES/graph.mk\" "
				      ">make.log 2>&1%s",
				      (const char *)*state, flags ? flags : "",
				      flags ? "; true" : " || { cat make.log >&2; exit 1; }"),
	     *text;
	struct xfp_error err = { 0 };

	for (size_t i = 0; i < sizeof above / sizeof *above; i++)
		unsetenv(above[i]);
	setenv("XFP_PIPELINES", pipelines, 1);
	scratch_write(state, "ran", "", 0);
	assert_int_equal(system(command), 0);
	assert_int_equal(xfp_slurp(ran, 1 << 16, &text, NULL, &err), XFP_OK);
	free(command);
	free(ran);
	free(pipelines);
	return text;
}

static void add_call(char *text, size_t capacity, enum xfp_stamp stamp)
{
	size_t length = strlen(text);

	snprintf(text + length, capacity - length, "%s%s " UNIT "\n", xfp_steps[stamp].program,
		 xfp_steps[stamp].extended ? " --extended" : "");
}

static void scratch_unlink(void **state, const char *name)
{
	char *path = scratch_path(state, name);

	unlink(path);
	free(path);
}

/* A unit whose targets before `from` exist, and which must be made with these modes; `aimed`: the selection of its
 * survey, if it has one. */
static void follow(void **state, uint32_t modes, uint32_t aimed, bool extended, enum xfp_stamp from)
{
	static const char todo[] = "FIT_UNITS = " UNIT "\nPACK_UNITS =\n";
	struct xfp_parameters all = xfp_parameters_default(), own = all;
	char want[1024] = "", *ran;
	struct xfp_error err = { 0 };
	bool asked = false;

	all.outlier_sigma = aimed ? XFP_SIGMA_AUTO : 3000;
	all.modes = modes;
	own.modes = aimed ? aimed : modes;
	own.outlier_sigma = 3000;
	scratch_write(state, XFP_TODO_FILE, todo, strlen(todo));
	assert_int_equal(xfp_fits_write(*state, XFP_NO_UNIT, &all, &err), XFP_OK);
	scratch_write(state, "aimed", xfp_fits_text(&own), strlen(xfp_fits_text(&own)));
	if (extended)
		scratch_write(state, "wanting", "", 0);
	for (int s = 0; s < XFP_STAMPS; s++) {
		enum xfp_stamp stamp = (enum xfp_stamp)s;
		char *name = xfp_steps[s].target ? xfp_formatted(UNIT "-%s", xfp_steps[s].target) : NULL;
		bool through = stamp == XFP_STAMP_SURVEY ? aimed : xfp_step_wanted(&own, stamp, extended);

		if (name && stamp < from)
			scratch_write(state, name, stamp == XFP_STAMP_SURVEY ? xfp_fits_text(&own) : "",
				      stamp == XFP_STAMP_SURVEY ? strlen(xfp_fits_text(&own)) : 0);
		else if (name)
			scratch_unlink(state, name);
		/* The extended fits are made after the choice that requests them, and the choice is repeated
		 * afterwards. */
		if (stamp >= from && through && xfp_steps[s].extended && !asked) {
			add_call(want, sizeof want, XFP_STAMP_CHOICE);
			asked = true;
		}
		if (stamp >= from && through)
			add_call(want, sizeof want, stamp);
		free(name);
	}
	ran = run_make(state, NULL);
	assert_string_equal(ran, want);
	free(ran);
}

static void rules_follow_the_table(void **state)
{
	static const uint32_t modes[] = { 1u << XFP_MODE_V2, XFP_LIBRARY_MODES, 1u << XFP_MODE_V2 | XFP_LIBRARY_MODES };

	add_stubs(state);
	for (size_t m = 0; m < 3; m++)
		for (int extended = 0; extended < 2; extended++) {
			follow(state, modes[m], 0, extended, XFP_STAMP_SURVEY);
			follow(state, modes[2], modes[m], extended, XFP_STAMP_SURVEY);
		}
}

/* The targets have the names of the table: existing ones are not made again. */
static void rules_begin_where_a_unit_is(void **state)
{
	const uint32_t both = 1u << XFP_MODE_V2 | XFP_LIBRARY_MODES;

	add_stubs(state);
	for (int from = XFP_STAMP_OUTLIERS; from < XFP_STAMPS; from++)
		if (xfp_steps[from].target)
			for (int aimed = 0; aimed < 2; aimed++)
				follow(state, both, aimed ? both : 0, false, (enum xfp_stamp)from);
}

static void rules_pack_the_others(void **state)
{
	static const char todo[] = "FIT_UNITS =\nPACK_UNITS = " UNIT "\n";
	char want[64] = "", *ran;

	add_stubs(state);
	scratch_write(state, XFP_TODO_FILE, todo, strlen(todo));
	add_call(want, sizeof want, XFP_STAMP_PACKED);
	ran = run_make(state, NULL);
	assert_string_equal(ran, want);
	free(ran);
}

/* Write a program that fails for an argument. */
static void add_stub(void **state, const char *program, const char *fails)
{
	char *name = xfp_formatted("bin/%s", program), *path = scratch_path(state, name),
	     *text = xfp_formatted("#!/bin/sh\necho \"${0##*/} $*\" >>ran\n[ \"$*\" != '%s' ] || exit 1\n"
				   "[ ${0##*/} != xfp-pack ] || : >$1-packed\n",
				   fails);

	scratch_write(state, name, text, strlen(text));
	assert_int_equal(chmod(path, 0755), 0);
	free(text);
	free(path);
	free(name);
}

/* Units are fitted after their layer. A layer that exists already is not listed. */
static const char of_layers[] = "FIT_UNITS =\nPACK_UNITS =\nCALIBRATED_UNITS = u000000 u000001 u000002\n"
				"LAYERS = l000001 l000002\nl000002-inputs: | l000001-inputs\n"
				"u000001-tried: | l000001-inputs\nl000002-inputs: | u000000-tried\n"
				"u000002-tried: | l000002-inputs\n";

static void layers_and_their_units(void **state)
{
	static const char *const made[] = { "outliers", "library", "choice" };
	char *ran;

	add_stubs(state);
	add_stub(state, XFP_CALIBRATE_PROGRAM, "");
	add_stub(state, "xfp-pack", "");
	scratch_write(state, XFP_TODO_FILE, of_layers, strlen(of_layers));
	scratch_write(state, "fits.mk", "FITS = library\n", 15);
	for (int i = 0; i < 9; i++) {
		char *name = xfp_formatted("u%06d-%s", i / 3, made[i % 3]);

		scratch_write(state, name, "", 0);
		free(name);
	}
	ran = run_make(state, "");
	assert_string_equal(ran, "xfp-pack u000000\nxfp-calibrate l000001\nxfp-pack u000001\n"
				 "xfp-calibrate l000002\nxfp-pack u000002\n");
	free(ran);
}

/* Surveys predict outputs after their layer. */
static void layers_and_surveys(void **state)
{
	static const char todo[] = "FIT_UNITS =\nPACK_UNITS =\nSURVEY_UNITS = u000003\nSCALED_UNITS = u000000 u000001\n"
				   "CALIBRATED_UNITS =\nLAYERS = l000001\nu000001-scales: | l000001-inputs\n";
	char *ran;

	add_stubs(state);
	add_stub(state, XFP_CALIBRATE_PROGRAM, "");
	add_stub(state, "xfp-survey", "");
	scratch_write(state, XFP_TODO_FILE, todo, strlen(todo));
	scratch_write(state, "u000000-survey", "", 0);
	ran = run_make(state, "");
	assert_string_equal(ran, "xfp-survey u000003\nxfp-survey u000000\nxfp-calibrate l000001\nxfp-survey u000001\n");
	free(ran);
	scratch_write(state, "u000000-scales", "", 0);
	ran = run_make(state, "");
	assert_string_equal(ran, "xfp-survey u000003\nxfp-calibrate l000001\nxfp-survey u000001\n");
	free(ran);
}

/* A failed unit stops all others, with -k only itself. */
static void failed_units_and_layers(void **state)
{
	static const char *const flags[] = { "", "-k" };

	layers_and_their_units(state);
	for (int i = 0; i < 2; i++) {
		char *ran;

		for (int u = 0; u < 3; u++) {
			char *name = xfp_formatted("u%06d-packed", u);

			scratch_unlink(state, name);
			free(name);
		}
		add_stub(state, "xfp-pack", "u000000");
		ran = run_make(state, flags[i]);
		assert_string_equal(ran, i ? "xfp-pack u000000\nxfp-calibrate l000001\nxfp-pack u000001\n"
					     "xfp-calibrate l000002\nxfp-pack u000002\n"
					   : "xfp-pack u000000\n");
		free(ran);
	}
}

PROGRAM("test_stages")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(kinds),
		scratch_test(rules_follow_the_table),
		scratch_test(rules_begin_where_a_unit_is),
		scratch_test(rules_pack_the_others),
		scratch_test(layers_and_their_units),
		scratch_test(layers_and_surveys),
		scratch_test(failed_units_and_layers),
	};

	return cmocka_run_group_tests_name("stages", tests, NULL, NULL);
}
