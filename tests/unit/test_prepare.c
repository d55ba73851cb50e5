/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A work folder before make runs: the remaining stamps, and the remaining work.
 */
#include "conversion/prepare.h"
#include "conversion/todo.h"
#include "tests/unit/scratch.h"

#define KEY "0123456789abcdef0123456789abcdef"

/* Units with unknown weights, two that are fitted and one that is not. */
struct subject {
	struct xfp_conversion c;
	struct xfp_request request;
	struct xfp_ledger ledger;
	struct xfp_source_file file;
	struct xfp_ledger_tensor tensor;
	struct xfp_ledger_unit units[3];
	struct xfp_ledger_matrix matrices[3];
	struct xfp_unit_state states[3];
};

static void begin(struct subject *s, void **state)
{
	memset(s, 0, sizeof *s);
	s->file.name = s->file.path = (char *)"f";
	s->tensor =
		(struct xfp_ledger_tensor){ .name = (char *)"w", .reason = (char *)"", .dtype = XFP_BF16, .rank = 2 };
	for (uint32_t u = 0; u < 3; u++) {
		s->units[u] = (struct xfp_ledger_unit){ .name = (char *)"w",
							.role = (char *)"q",
							.class_ = XFP_CLASS_ATTENTION,
							.plan = u == 1 ? XFP_PLAN_FP8 : XFP_PLAN_FIT,
							.dtype = XFP_BF16,
							.experts = 1,
							.rows = 4,
							.cols = 4,
							.first_matrix = u };
		s->matrices[u] = (struct xfp_ledger_matrix){ 0, 0, 4, 4, 4, 1 };
	}
	s->ledger = (struct xfp_ledger){ .files = &s->file,
					 .tensors = &s->tensor,
					 .units = s->units,
					 .matrices = s->matrices,
					 .file_count = 1,
					 .tensor_count = 1,
					 .unit_count = 3,
					 .matrix_count = 3 };
	s->c.request = &s->request;
	s->c.units.ledger = &s->ledger;
	s->c.units.state = s->states;
	s->c.parameters = xfp_parameters_default();
	s->request.work = *state;
	s->request.out = *state;
}

/* Without a cache nothing is finished, and no stamp stays. */
static void strays(void **state)
{
	static const struct {
		const char *name;
		bool stays;
	} files[] = {
		{ "u000001-packed", false }, /* invalid contents: torn, or damaged */
		{ "u000002-outliers", false },
		{ "u000003-fit", false }, /* the first number that the ledger does not have */
		{ "u000003-fits.mk", false },
		{ "u4294967294-fit", false },
		{ "u000x03-fit", true },
		{ "v000003-fit", true },
		{ "log", true },
		{ "units.mk", true },
	};
	struct subject s;
	struct xfp_error err = { 0 };
	char *path = scratch_path(state, XFP_TODO_FILE), *text;

	begin(&s, state);
	assert_int_equal(xfp_stamp_write(*state, 0, XFP_STAMP_FIT, KEY, &err), XFP_OK);
	assert_int_equal(xfp_stamp_write(*state, 2, XFP_STAMP_PACKED, KEY, &err), XFP_OK);
	assert_true(xfp_stamp_exists(*state, 0, XFP_STAMP_FIT) && xfp_stamp_exists(*state, 2, XFP_STAMP_PACKED));
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		scratch_write(state, files[i].name, KEY, i % 33);
	if (xfp_prepare_units(&s.c, false, &err))
		fail_msg("%s", err.text);
	assert_false(xfp_stamp_exists(*state, 0, XFP_STAMP_FIT) || xfp_stamp_exists(*state, 2, XFP_STAMP_PACKED));
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (scratch_has(state, files[i].name) != files[i].stays)
			fail_msg("%s %s", files[i].name, files[i].stays ? "is gone" : "is still there");
	assert_int_equal(xfp_slurp(path, 1000, &text, NULL, &err), XFP_OK);
	assert_string_equal(text, "FIT_UNITS = u000000 u000002\nPACK_UNITS = u000001\n");
	assert_int_equal(s.c.units.todo, 3);
	assert_int_equal(s.c.units.weights, 48);
	assert_int_equal(s.c.units.weights_done, 0);
	free(text);
	free(path);
}

/* A stamp is valid if it is complete, and that of its own unit and stage. */
static void stamps(void **state)
{
	char *path = scratch_path(state, "u000007-fit"), *other = scratch_path(state, "u000008-fit"), *text, key[33];
	struct xfp_error err = { 0 };
	size_t size;

	assert_false(xfp_stamp_read(*state, 7, XFP_STAMP_FIT, key));
	assert_int_equal(xfp_stamp_write(*state, 7, XFP_STAMP_FIT, KEY, &err), XFP_OK);
	assert_true(xfp_stamp_read(*state, 7, XFP_STAMP_FIT, key));
	assert_string_equal(key, KEY);
	assert_int_equal(xfp_slurp(path, 1000, &text, &size, &err), XFP_OK);
	scratch_write(state, "u000007-fit", text, size - 1);
	assert_false(xfp_stamp_read(*state, 7, XFP_STAMP_FIT, key));
	text[size] = '\n';
	scratch_write(state, "u000007-fit", text, size + 1);
	assert_false(xfp_stamp_read(*state, 7, XFP_STAMP_FIT, key));
	text[5] ^= 1; /* the digit 5 becomes 4 */
	scratch_write(state, "u000007-fit", text, size);
	assert_false(xfp_stamp_read(*state, 7, XFP_STAMP_FIT, key));
	text[5] ^= 1;
	scratch_write(state, "u000007-fit", text, size);
	assert_true(xfp_stamp_read(*state, 7, XFP_STAMP_FIT, key));
	assert_int_equal(rename(path, other), 0);
	assert_false(xfp_stamp_read(*state, 8, XFP_STAMP_FIT, key));
	free(text);
	free(path);
	free(other);
}

/* One line per step, for any message. */
static void an_event_is_a_line(void **state)
{
	struct xfp_event event = { .unit = 3,
				   .stage = "pack",
				   .outcome = "failed",
				   .key = "-",
				   .status = XFP_FAILED,
				   .message = "a\tb\nc\n" },
			 got;
	struct xfp_error err = { 0 };
	struct xfp_events_reader reader = { 0 };
	char *text, *rest;

	assert_int_equal(xfp_event_append(*state, &event, &err), XFP_OK);
	event.unit = XFP_NO_UNIT;
	assert_int_equal(xfp_event_append(*state, &event, &err), XFP_OK);
	event.unit = XFP_LAYER | 3;
	assert_int_equal(xfp_event_append(*state, &event, &err), XFP_OK);
	assert_int_equal(xfp_events_read(*state, &reader, &text, &err), XFP_OK);
	assert_non_null(text);
	rest = text;
	for (int i = 0; i < 3; i++) {
		assert_true(xfp_event_parse(strsep(&rest, "\n"), &got));
		assert_int_equal(got.unit, i == 2 ? (XFP_LAYER | 3) : i ? XFP_NO_UNIT : 3);
		assert_string_equal(got.stage, "pack");
		assert_string_equal(got.outcome, "failed");
		assert_int_equal(got.status, XFP_FAILED);
		assert_string_equal(got.message, "a b c ");
	}
	free(text);
	text = NULL;
	assert_int_equal(xfp_events_read(*state, &reader, &text, &err), XFP_OK);
	assert_null(text);
	xfp_events_reader_free(&reader);
}

/* Layers have stamps, too; those of a unit of the same number are others. */
static void a_stamp_of_a_layer(void **state)
{
	uint32_t layer = XFP_LAYER | 3;
	struct xfp_error err = { 0 };
	char key[33];

	assert_int_equal(xfp_stamp_write(*state, layer, XFP_STAMP_INPUTS, KEY, &err), XFP_OK);
	assert_true(scratch_has(state, "l000003-inputs"));
	assert_true(xfp_stamp_read(*state, layer, XFP_STAMP_INPUTS, key));
	assert_string_equal(key, KEY);
	assert_false(xfp_stamp_read(*state, XFP_LAYER | 4, XFP_STAMP_INPUTS, key));
	xfp_stamp_remove(*state, 3, XFP_STAMP_SURVEY);
	assert_true(xfp_stamp_exists(*state, layer, XFP_STAMP_INPUTS));
	xfp_stamp_remove(*state, layer, XFP_STAMP_INPUTS);
	assert_false(xfp_stamp_exists(*state, layer, XFP_STAMP_INPUTS));
}

static void numbers_of_layers(void **state)
{
	uint32_t layer = 7;
	char text[16];

	(void)state;
	assert_true(xfp_layer_parse("l000048", &layer));
	assert_int_equal(layer, 48);
	assert_false(xfp_layer_parse("48", &layer));
	assert_false(xfp_layer_parse("u000048", &layer));
	assert_false(xfp_layer_parse("l", &layer));
	assert_false(xfp_layer_parse("l2147483647", &layer));
	assert_int_equal(layer, 48);
	xfp_unit_format(XFP_LAYER | 48, text);
	assert_string_equal(text, "l000048");
	assert_true(xfp_is_layer(XFP_LAYER));
	assert_false(xfp_is_layer(XFP_NO_UNIT) || xfp_is_layer(48));
}

/* The largest unit number is below those of layers. */
static void numbers_of_units(void **state)
{
	uint32_t unit = 7;

	(void)state;
	assert_true(xfp_unit_parse("u2147483646", &unit));
	assert_int_equal(unit, 2147483646);
	assert_true(xfp_unit_parse("12", &unit));
	assert_int_equal(unit, 12);
	assert_false(xfp_unit_parse("u2147483647", &unit));
	assert_false(xfp_unit_parse("4294967296", &unit));
	assert_false(xfp_unit_parse("99999999999999999999", &unit));
	assert_false(xfp_unit_parse("u", &unit));
	assert_false(xfp_unit_parse("", &unit));
	assert_false(xfp_unit_parse("u1x", &unit));
	assert_false(xfp_unit_parse("-1", &unit));
	assert_int_equal(unit, 12);
}

/* A dry run changes nothing. */
static void a_dry_run(void **state)
{
	struct subject s;
	struct xfp_error err = { 0 };

	begin(&s, state);
	s.request.dry_run = true;
	scratch_write(state, "u000003-fit", KEY "\n", 33);
	scratch_write(state, "u000000-fit", KEY, 32);
	assert_int_equal(xfp_prepare_units(&s.c, false, &err), XFP_OK);
	assert_true(scratch_has(state, "u000003-fit"));
	assert_true(scratch_has(state, "u000000-fit"));
	assert_false(scratch_has(state, XFP_TODO_FILE));
	assert_int_equal(s.c.units.todo, 3);
}

PROGRAM("test_prepare")
{
	const struct CMUnitTest tests[] = { scratch_test(strays),
					    scratch_test(a_dry_run),
					    scratch_test(stamps),
					    scratch_test(an_event_is_a_line),
					    cmocka_unit_test(numbers_of_units),
					    scratch_test(a_stamp_of_a_layer),
					    cmocka_unit_test(numbers_of_layers) };

	return cmocka_run_group_tests_name("prepare", tests, NULL, NULL);
}
