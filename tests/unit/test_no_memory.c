/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of libxfp when memory runs out, at every allocation: it fails with an error, and leaks nothing.
 */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/bundle_fixture.h"

static size_t asked, fails_at; /* counted from 1; 0: never */

static int refused(void)
{
	return fails_at && ++asked == fails_at;
}

/* Replace the functions of libc through the linker's --wrap. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

void *__wrap_malloc(size_t size)
{
	return refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return refused() ? NULL : __real_calloc(count, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return refused() ? NULL : __real_aligned_alloc(align, size);
}

/* Everything that an engine does with a bundle. */
static enum xfp_status use(const char *path, float *x, float *y, struct xfp_error *err)
{
	struct xfp_bundle *bundle = NULL;
	struct xfp_team *team = NULL;
	struct xfp_bundle_info info;
	enum xfp_status status;

	if ((status = xfp_bundle_open(path, &bundle, err)))
		return status;
	status = xfp_team_start(2, &team, err);
	xfp_bundle_describe(bundle, &info);
	for (uint32_t u = 0; !status && u < info.units; u++) {
		struct xfp_linear *linear = NULL;
		struct xfp_unit_info unit;

		xfp_bundle_unit(bundle, u, &unit);
		if (unit.cols > 3000)
			continue;
		if (!(status = xfp_linear_open(bundle, u, NULL, &linear, err))) {
			struct xfp_input in = { x, XFP_FLOAT32, 40, unit.cols };
			struct xfp_output out = { y, XFP_FLOAT32, 40, unit.rows };
			struct xfp_output outs[2] = { out, { y + 2 * unit.rows, XFP_FLOAT32, 2, unit.rows } };
			struct xfp_product products[3] = { { 0, 0, 1, 1 },
							   { unit.experts - 1, 1, 0, 2 },
							   { 0, 2, 1, 1 } };

			status = xfp_multiply(team, linear, 0, 40, &in, &out, err);
			if (!status)
				status = xfp_multiply_experts(NULL, linear, products, 3, &in, &out, err);
			if (!status)
				status =
					xfp_multiply_linears(team, (const struct xfp_linear *const[]){ linear, linear },
							     2, products, 3, &in, outs, err);
		}
		xfp_linear_close(linear);
		for (uint64_t rows = 1; !status && rows <= unit.rows; rows += unit.rows)
			status = xfp_bundle_dequantize(bundle, unit.first_matrix, 0, rows, XFP_FLOAT16, y, err);
	}
	xfp_team_end(team);
	xfp_bundle_close(bundle);
	return status;
}

static void every_place(void **state)
{
	struct xfp_error err = { XFP_OK, "" };
	struct fixture f;
	float *x = calloc(40 * 3000, sizeof *x), *y = calloc(40 * 3000, sizeof *y);
	enum xfp_status status = XFP_FAILED;
	size_t places = 0;

	(void)state;
	fixture_make_bundle(&f, 0);
	while (status) {
		asked = 0;
		fails_at = ++places;
		err.text[0] = 0;
		status = use(f.out, x, y, &err);
		fails_at = 0;
		if (status) {
			assert_int_equal(status, XFP_FAILED);
			assert_true(strlen(err.text) > 0);
		}
	}
	assert_true(places > 40);
	free(x);
	free(y);
	fixture_free(&f);
}

/* A team that lacked the memory for a large call can run the next one of the earlier size. */
static void a_team_goes_on(void **state)
{
	struct xfp_error err = { XFP_OK, "" };
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_unit_info unit;
	struct xfp_linear *linear;
	struct xfp_team *team;
	float *x, *y, *again;
	struct xfp_input in;
	struct xfp_output out;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	xfp_bundle_unit(bundle, xfp_bundle_find_unit(bundle, "x.o", NULL), &unit);
	x = calloc(60 * unit.cols, sizeof *x);
	y = calloc(60 * unit.rows, sizeof *y);
	again = calloc(unit.rows, sizeof *again);
	for (size_t i = 0; i < 60 * unit.cols; i++)
		x[i] = (float)(i % 17) - 8;
	in = (struct xfp_input){ x, XFP_FLOAT32, 60, unit.cols };
	out = (struct xfp_output){ y, XFP_FLOAT32, 60, unit.rows };
	assert_int_equal(xfp_linear_open(bundle, xfp_bundle_find_unit(bundle, "x.o", NULL), NULL, &linear, &err),
			 XFP_OK);
	assert_int_equal(xfp_team_start(2, &team, &err), XFP_OK);
	assert_int_equal(xfp_multiply(team, linear, 0, 1, &in, &out, &err), XFP_OK);
	memcpy(again, y, unit.rows * sizeof *y);
	/* the list, three of the round, and the memory of the team */
	asked = 0;
	fails_at = 5;
	assert_int_equal(xfp_multiply(team, linear, 0, 60, &in, &out, &err), XFP_FAILED);
	assert_int_equal(asked, 5);
	fails_at = 0;
	assert_string_equal(err.text, "out of memory");
	memset(y, 0xff, unit.rows * sizeof *y);
	assert_int_equal(xfp_multiply(team, linear, 0, 1, &in, &out, &err), XFP_OK);
	assert_memory_equal(y, again, unit.rows * sizeof *y);
	assert_int_equal(xfp_multiply(team, linear, 0, 60, &in, &out, &err), XFP_OK);
	xfp_team_end(team);
	xfp_linear_close(linear);
	xfp_bundle_close(bundle);
	free(x);
	free(y);
	free(again);
	fixture_free(&f);
}

PROGRAM("test_no_memory")
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_place), cmocka_unit_test(a_team_goes_on) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
