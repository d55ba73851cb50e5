/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of everything that a bundle can contain, through the public header alone, compared with its decoded weights.
 */
#include "tests/unit/unit.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/common/scale.h"
#include "tests/unit/bundle_fixture.h"
#include "tests/unit/vectors.h"

static struct xfp_error err;

/* ---- a product and its bound -------------------------------------------------------------------- */

/* Vectors in an element type, and the numbers that they represent. */
static void *convert(enum xfp_float type, float *x, size_t elements)
{
	void *held = malloc(elements * 4 + 1);

	xfp_from_float((int)type, x, elements, held);
	xfp_to_float((int)type, held, elements, x);
	return held;
}

/* A stored matrix: its weights, and the divisors of its columns. */
struct subject {
	const float *w;
	size_t rows, cols;
	float down[70000], largest; /* balanced |weight| */
};

static void make_subject(struct subject *s, const struct xfp_bundle *bundle, uint32_t number, const float *w)
{
	struct xfp_matrix_info matrix;

	assert_true(xfp_bundle_matrix(bundle, number, &matrix));
	s->w = w;
	s->rows = matrix.rows;
	s->cols = matrix.cols;
	s->largest = 0;
	for (size_t c = 0; c < s->cols; c++)
		s->down[c] = matrix.balance ? xfp_balance_down(((const uint8_t *)matrix.balance)[c]) : 1;
	for (size_t i = 0; i < s->rows * s->cols; i++)
		s->largest = fmaxf(s->largest, fabsf(w[i]) / s->down[i % s->cols]);
}

/* The error bound of the header, from the largest weight of the matrix and the largest activation of the vector. A
 * library may have entries larger than any weight. */
static double bound(const struct subject *s, const float *w, size_t first, size_t cols, const float *x,
		    enum xfp_float type, double expected)
{
	double sum = 0, vector = 0, all = 0;

	for (size_t c = 0; c < cols; c++) {
		double balanced = fabs((double)x[c]) * s->down[first + c];

		sum += fabs((double)w[c] * x[c]);
		vector = fmax(vector, balanced);
		all += strcmp(xfp_instructions(), "vbmi") ? 0 : balanced; /* entries may have 8 bits */
	}
	return ((double)cols / 16 + 40) * 0x1p-24 * sum +
	       s->largest * 4 * (0x1p-14 * (double)cols * vector + all / 254) +
	       fabs(expected) * (type == XFP_FLOAT32   ? 0
				 : type == XFP_FLOAT16 ? 0x1p-11
						       : 0x1p-8) +
	       1e-7;
}

static float result_of(const struct xfp_output *y, size_t m, size_t r)
{
	size_t at = m * y->stride + r, size = y->type == XFP_FLOAT32 ? 4 : 2;
	float value;

	xfp_to_float((int)y->type, (const uint8_t *)y->data + at * size, 1, &value);
	return value;
}

/* x [slice's columns] */
static void expect_product(const struct subject *subject, const struct xfp_slice *s, const float *x,
			   const struct xfp_output *y, size_t m)
{
	for (size_t r = 0; r < s->rows; r++) {
		const float *row = subject->w + (s->first_row + r) * subject->cols + s->first_col;
		double sum = 0, max;

		for (size_t c = 0; c < s->cols; c++)
			sum += (double)row[c] * x[c];
		max = bound(subject, row, s->first_col, s->cols, x, y->type, sum);
		if (!(fabs(result_of(y, m, r) - sum) <= max))
			fail_msg("row %zu of vector %zu is %g, not %g (%g)", r, m, (double)result_of(y, m, r), sum,
				 max);
	}
}

/* ---- all units ---------------------------------------------------------------------------------- */

static void try_slice(const struct xfp_bundle *bundle, uint32_t u, const struct xfp_unit_info *unit,
		      const struct xfp_slice *slice, size_t count, enum xfp_float type, struct xfp_team *team,
		      float *const *decoded)
{
	struct xfp_slice s = { slice->first_row, slice->rows ? slice->rows : unit->rows - slice->first_row,
			       slice->first_col, slice->cols ? slice->cols : unit->cols - slice->first_col };
	size_t stride = s.cols + 3, y_stride = s.rows + 2;
	float *x = test_vectors(count * stride);
	void *held = convert(type, x, count * stride);
	struct xfp_input in = { held, type, count, stride };
	struct xfp_output out = { calloc(count * y_stride, 4), type, count, y_stride };
	struct xfp_linear *linear;
	struct xfp_linear_info info;
	struct subject *subject = malloc(sizeof *subject);

	assert_int_equal(xfp_linear_open(bundle, u, slice, &linear, &err), XFP_OK);
	xfp_linear_describe(linear, &info);
	assert_int_equal(info.experts, unit->experts);
	assert_int_equal(info.rows, s.rows);
	assert_int_equal(info.cols, s.cols);
	for (uint32_t e = 0; e < unit->experts; e++) {
		assert_int_equal(xfp_multiply(team, linear, e, count, &in, &out, &err), XFP_OK);
		make_subject(subject, bundle, unit->first_matrix + e, decoded[unit->first_matrix + e]);
		for (size_t m = 0; m < count; m++)
			expect_product(subject, &s, x + m * stride, &out, m);
		/* the memory between two results must be unchanged */
		for (size_t m = 0; m + 1 < count; m++)
			assert_true(result_of(&out, m, s.rows) == 0 && result_of(&out, m, s.rows + 1) == 0);
	}
	xfp_linear_close(linear);
	free(subject);
	free(x);
	free(held);
	free(out.data);
}

static void every_unit(void **state)
{
	static const char *const sets[] = { "plain", "avx2", "avx512", "vbmi", "neon", "dotprod" };
	static const size_t counts[] = { 1, 3, 8, 16, 31, 32, 45 };
	const char *best = xfp_instructions();
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_bundle_info info;
	struct xfp_team *team;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	xfp_bundle_describe(bundle, &info);
	assert_int_equal(xfp_team_start(3, &team, &err), XFP_OK);
	for (size_t set = 0; set < sizeof sets / sizeof *sets; set++) {
		if (!xfp_use_instructions(sets[set])) {
			print_message("# not here: %s\n", sets[set]);
			continue;
		}
		assert_string_equal(xfp_instructions(), sets[set]);
		for (uint32_t u = 0; u < info.units; u++) {
			struct xfp_unit_info unit;

			assert_true(xfp_bundle_unit(bundle, u, &unit));
			for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
				try_slice(bundle, u, &unit, &(struct xfp_slice){ 0 },
					  unit.cols > 10000 ? c + 1 : counts[c], XFP_FLOAT32 + (c + u) % 3,
					  c % 2 ? team : NULL, f.decoded);
		}
	}
	assert_true(xfp_use_instructions(best));
	assert_false(xfp_use_instructions("abacus"));
	xfp_team_end(team);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* Rows and columns of every unit, at and next to the ends of chunks and groups. */
static void slices(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_bundle_info info;
	uint64_t seed = 8;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	xfp_bundle_describe(bundle, &info);
	for (uint32_t u = 0; u < info.units; u++) {
		struct xfp_unit_info unit;

		assert_true(xfp_bundle_unit(bundle, u, &unit));
		for (int i = 0; i < (unit.cols > 10000 ? 6 : 40); i++) {
			struct xfp_slice s = { .first_row = test_random(&seed) % unit.rows,
					       .first_col = test_random(&seed) % unit.cols };

			if (i % 3 == 0)
				s.first_col &= ~UINT64_C(127);
			if (i % 2)
				s.rows = 1 + test_random(&seed) % (unit.rows - s.first_row);
			if (i % 4)
				s.cols = 1 + test_random(&seed) % (unit.cols - s.first_col);
			try_slice(bundle, u, &unit, &s, i % 7 == 6 ? 33 : 1 + (size_t)i % 3, XFP_FLOAT32, NULL,
				  f.decoded);
		}
	}
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

static void what_cannot_be(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_linear *linear;
	struct xfp_team *team;
	float x[80] = { 0 }, y[10];
	struct xfp_input in = { x, XFP_FLOAT32, 2, 40 };
	struct xfp_output out = { y, XFP_FLOAT32, 1, 6 };
	struct xfp_product product = { 0, 1, 0, 1 };
	uint32_t u;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	u = xfp_bundle_find_unit(bundle, "e.k_proj.weight", NULL);
	assert_int_equal(xfp_linear_open(bundle, 1000, NULL, &linear, &err), XFP_USAGE);
	assert_null(linear);
	assert_int_equal(xfp_linear_open(bundle, u, &(struct xfp_slice){ .first_row = 7 }, &linear, &err), XFP_USAGE);
	assert_int_equal(xfp_linear_open(bundle, u, &(struct xfp_slice){ .first_row = 5, .rows = 2 }, &linear, &err),
			 XFP_USAGE);
	assert_int_equal(
		xfp_linear_open(bundle, u, &(struct xfp_slice){ .first_col = 2, .cols = UINT64_MAX }, &linear, &err),
		XFP_USAGE);
	assert_non_null(strstr(err.text, "e.k_proj.weight"));
	assert_int_equal(xfp_linear_open(bundle, u, &(struct xfp_slice){ .first_col = 40 }, &linear, &err), XFP_USAGE);
	assert_non_null(strstr(err.text, "the slice begins at column 40, but there are 40"));
	assert_int_equal(xfp_linear_open(bundle, XFP_NOT_FOUND, NULL, &linear, &err), XFP_USAGE);
	assert_non_null(strstr(err.text, "has no unit of that name"));
	assert_false(xfp_use_instructions(NULL));
	assert_int_equal(xfp_linear_open(bundle, u, NULL, &linear, &err), XFP_OK);
	assert_int_equal(xfp_multiply_experts(NULL, linear, &product, 1, &in, &out, &err), XFP_OK);
	product.x = 2;
	assert_int_equal(xfp_multiply_experts(NULL, linear, &product, 1, &in, &out, &err), XFP_USAGE);
	product = (struct xfp_product){ 0, 0, 1, 1 };
	assert_int_equal(xfp_multiply_experts(NULL, linear, &product, 1, &in, &out, &err), XFP_USAGE);
	assert_int_equal(xfp_multiply(NULL, linear, 1, 1, &in, &out, &err), XFP_USAGE);
	assert_int_equal(xfp_multiply(NULL, linear, 0, 2, &in, &out, &err), XFP_USAGE);
	assert_int_equal(xfp_multiply(NULL, linear, 0, 0, &in, &out, &err), XFP_OK);
	in.stride = 39;
	assert_int_equal(xfp_multiply(NULL, linear, 0, 1, &in, &out, &err), XFP_USAGE);
	in.stride = 40;
	in.type = 4;
	assert_int_equal(xfp_multiply(NULL, linear, 0, 1, &in, &out, &err), XFP_USAGE);
	xfp_linear_close(linear);
	xfp_linear_close(NULL);

	/* tensors that are not a matrix: integers, no dimension, several units */
	assert_int_equal(xfp_linear_open_tensor(bundle, xfp_bundle_find_tensor(bundle, "ids"), NULL, &linear, &err),
			 XFP_USAGE);
	assert_int_equal(xfp_linear_open_tensor(bundle, xfp_bundle_find_tensor(bundle, "scalar"), NULL, &linear, &err),
			 XFP_USAGE);
	assert_int_equal(
		xfp_linear_open_tensor(bundle, xfp_bundle_find_tensor(bundle, "c.gate_up"), NULL, &linear, &err),
		XFP_USAGE);
	assert_int_equal(xfp_linear_open_tensor(bundle, 1000, NULL, &linear, &err), XFP_USAGE);
	assert_int_equal(xfp_team_start(100000, &team, &err), XFP_USAGE);
	assert_int_equal(xfp_team_borrow(0, NULL, NULL, &team, &err), XFP_USAGE);
	assert_null(team);
	xfp_team_end(NULL);
	assert_int_equal(xfp_bundle_dequantize(bundle, 0, 0, 1, 0, x, &err), XFP_USAGE);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

static void a_kept_tensor(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_linear *linear;
	struct xfp_slice all = { 0, 8, 0, 5 }, some = { 2, 5, 1, 3 };
	float w[40], *x = test_vectors(10), y[16];
	struct xfp_input in = { x, XFP_FLOAT32, 2, 5 };
	struct xfp_output out = { y, XFP_FLOAT32, 2, 8 };
	struct xfp_tensor_info tensor;
	struct subject *subject = malloc(sizeof *subject);
	uint32_t number;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	number = xfp_bundle_find_tensor(bundle, "embed");
	assert_true(xfp_bundle_tensor(bundle, number, &tensor));
	xfp_to_float(XFP_BFLOAT16, tensor.data, 40, w);
	*subject = (struct subject){ .w = w, .rows = 8, .cols = 5, .down = { 1, 1, 1, 1, 1 } };
	assert_int_equal(xfp_linear_open_tensor(bundle, number, NULL, &linear, &err), XFP_OK);
	assert_int_equal(xfp_multiply(NULL, linear, 0, 2, &in, &out, &err), XFP_OK);
	expect_product(subject, &all, x, &out, 0);
	expect_product(subject, &all, x + 5, &out, 1);
	xfp_linear_close(linear);
	assert_int_equal(xfp_linear_open_tensor(bundle, number, &some, &linear, &err), XFP_OK);
	assert_int_equal(xfp_multiply(NULL, linear, 0, 1, &in, &out, &err), XFP_OK);
	expect_product(subject, &some, x, &out, 0);
	xfp_linear_close(linear);
	/* the tied tensor is the same; no such tensor */
	number = xfp_bundle_find_tensor(bundle, "tied");
	assert_int_equal(xfp_linear_open_tensor(bundle, number, NULL, &linear, &err), XFP_OK);
	assert_int_equal(xfp_multiply(NULL, linear, 0, 1, &in, &out, &err), XFP_OK);
	expect_product(subject, &all, x, &out, 0);
	xfp_linear_close(linear);
	number = xfp_bundle_find_tensor(bundle, "empty");
	assert_int_equal(xfp_linear_open_tensor(bundle, number, NULL, &linear, &err), XFP_USAGE);
	free(subject);
	free(x);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* ---- rows --------------------------------------------------------------------------------------- */

/* Rows by number equal the decoded rows, for the slice's columns. */
static void expect_rows(const struct xfp_bundle *bundle, const struct xfp_linear *linear, uint32_t first_matrix,
			const struct xfp_slice *slice, enum xfp_float type)
{
	size_t size = type == XFP_FLOAT32 ? 4 : 2, count = 0, stride = slice->cols + 3;
	struct xfp_output out = { .type = type, .count = 64, .stride = stride };
	struct xfp_matrix_info matrix;
	struct xfp_linear_info info;
	uint8_t *whole, *got;
	uint32_t ids[64];

	xfp_linear_describe(linear, &info);
	assert_true(xfp_bundle_matrix(bundle, first_matrix, &matrix));
	/* in reverse, all that fit, and one twice */
	for (uint64_t i = info.experts * slice->rows; i-- > 0 && count < 63;)
		ids[count++] = (uint32_t)i;
	ids[count++] = 0;
	whole = malloc(matrix.cols * size);
	out.data = got = malloc(64 * stride * size);
	memset(got, 0xa5, 64 * stride * size);
	if (xfp_rows(linear, ids, count, &out, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(xfp_bundle_dequantize(bundle, first_matrix + (uint32_t)(ids[i] / slice->rows),
						       slice->first_row + ids[i] % slice->rows, 1, type, whole, &err),
				 XFP_OK);
		assert_memory_equal(got + i * stride * size, whole + slice->first_col * size, slice->cols * size);
		/* bytes after a row are unchanged */
		for (size_t b = slice->cols * size; b < stride * size; b++)
			assert_int_equal(got[i * stride * size + b], 0xa5);
	}
	free(whole);
	free(got);
}

static void rows_of_units(void **state)
{
	(void)state;
	for (int small = 0; small <= FIXTURE_TWO_SIZES; small++) {
		struct fixture f;
		struct xfp_bundle *bundle;
		struct xfp_unit_info unit;

		fixture_make_bundle(&f, small);
		bundle = fixture_open(f.out);
		for (uint32_t u = 0; xfp_bundle_unit(bundle, u, &unit); u++) {
			struct xfp_slice slices[] = {
				{ 0, unit.rows, 0, unit.cols },
				{ unit.rows / 2, unit.rows - unit.rows / 2, 0, unit.cols },
				{ 0, unit.rows, unit.cols / 3, unit.cols - unit.cols / 3 },
				{ 0, 1, unit.cols / 2, 1 },
			};

			for (size_t i = 0; i < 3 * sizeof slices / sizeof *slices; i++) {
				const struct xfp_slice *slice = &slices[i / 3];
				struct xfp_linear *linear;

				assert_int_equal(xfp_linear_open(bundle, u, slice, &linear, &err), XFP_OK);
				expect_rows(bundle, linear, unit.first_matrix, slice,
					    (enum xfp_float)(XFP_FLOAT32 + i % 3));
				xfp_linear_close(linear);
			}
		}
		xfp_bundle_close(bundle);
		fixture_free(&f);
	}
}

static void rows_of_tensors(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_linear *linear;
	struct xfp_tensor_info tensor;
	struct xfp_linear_info info;
	float w[40], y[10];
	struct xfp_output out = { y, XFP_FLOAT32, 2, 5 };
	const uint32_t ids[] = { 7, 2 }, beyond = 8;
	uint32_t number;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	assert_true(xfp_bundle_tensor(bundle, xfp_bundle_find_tensor(bundle, "embed"), &tensor));
	xfp_to_float(XFP_BFLOAT16, tensor.data, 40, w);
	/* kept, and tied to it */
	for (int tied = 0; tied < 2; tied++) {
		number = xfp_bundle_find_tensor(bundle, tied ? "tied" : "embed");
		assert_int_equal(xfp_linear_open_tensor(bundle, number, NULL, &linear, &err), XFP_OK);
		assert_int_equal(xfp_rows(linear, ids, 2, &out, &err), XFP_OK);
		assert_memory_equal(y, w + 35, 5 * sizeof *y);
		assert_memory_equal(y + 5, w + 10, 5 * sizeof *y);
		xfp_linear_close(linear);
	}
	/* a unit that is a whole tensor is found by the tensor */
	number = xfp_bundle_find_tensor(bundle, "wide");
	assert_int_equal(xfp_linear_open_tensor(bundle, number, NULL, &linear, &err), XFP_OK);
	xfp_linear_describe(linear, &info);
	assert_int_equal(info.cols, 70000);
	xfp_linear_close(linear);

	assert_int_equal(xfp_linear_open_tensor(bundle, xfp_bundle_find_tensor(bundle, "embed"), NULL, &linear, &err),
			 XFP_OK);
	assert_int_equal(xfp_rows(linear, &beyond, 1, &out, &err), XFP_USAGE);
	assert_non_null(strstr(err.text, "embed: row 8 does not exist; there are 8"));
	assert_int_equal(xfp_rows(linear, ids, 3, &out, &err), XFP_USAGE);
	out.stride = 4;
	assert_int_equal(xfp_rows(linear, ids, 2, &out, &err), XFP_USAGE);
	assert_int_equal(xfp_rows(linear, ids, 1, &out, &err), XFP_OK);
	out.stride = 5;
	out.type = 0;
	assert_int_equal(xfp_rows(linear, ids, 1, &out, &err), XFP_USAGE);
	out.type = XFP_BFLOAT16 + 1;
	assert_int_equal(xfp_rows(linear, ids, 1, &out, &err), XFP_USAGE);
	out.type = XFP_FLOAT32;
	assert_int_equal(xfp_rows(linear, NULL, 1, &out, &err), XFP_USAGE);
	assert_int_equal(xfp_rows(linear, ids, 1, NULL, &err), XFP_USAGE);
	assert_int_equal(xfp_rows(linear, NULL, 0, NULL, &err), XFP_OK);
	xfp_linear_close(linear);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* A tensor whose rows are in several units is not one of them. */
static void a_tensor_of_two_units(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_linear *linear;

	(void)state;
	fixture_make_bundle(&f, FIXTURE_HALF_KEPT);
	bundle = fixture_open(f.out);
	assert_int_equal(
		xfp_linear_open_tensor(bundle, xfp_bundle_find_tensor(bundle, "qk.weight"), NULL, &linear, &err),
		XFP_USAGE);
	assert_null(linear);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* ---- teams -------------------------------------------------------------------------------------- */

static void backwards(void *pool, void (*task)(void *context, unsigned i), void *context, unsigned threads)
{
	++*(int *)pool;
	while (threads--)
		task(context, threads);
}

static void multiply_with(struct xfp_team *team, const struct xfp_linear *linear, const float *x, float *y)
{
	struct xfp_linear_info info;

	xfp_linear_describe(linear, &info);
	for (size_t count = 1; count <= 40; count += 13) {
		struct xfp_input in = { x, XFP_FLOAT32, count, info.cols };
		struct xfp_output out = { y, XFP_FLOAT32, count, info.rows };

		assert_int_equal(xfp_multiply(team, linear, 0, count, &in, &out, NULL), XFP_OK);
		y += count * info.rows;
	}
}

struct caller {
	struct xfp_team *team;
	const struct xfp_linear *linear;
	const float *x, *expected;
	size_t results;
	unsigned wrong;
};

static void *call_often(void *argument)
{
	struct caller *caller = argument;
	float *y = malloc(caller->results * sizeof *y);

	for (int i = 0; i < 50; i++) {
		multiply_with(caller->team, caller->linear, caller->x, y);
		caller->wrong += memcmp(y, caller->expected, caller->results * sizeof *y) != 0;
	}
	free(y);
	return NULL;
}

/* The same bits from any team, and from concurrent callers, with one team or their own. */
static void any_team(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;
	struct xfp_linear *linear;
	struct xfp_unit_info unit;
	struct xfp_team *teams[5];
	struct caller callers[6];
	pthread_t threads[6];
	size_t results;
	float *x, *expected, *y;
	int borrowed = 0;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	xfp_bundle_unit(bundle, 4, &unit);
	results = (1 + 14 + 27 + 40) * unit.rows;
	x = test_vectors(40 * unit.cols);
	expected = malloc(results * sizeof *expected);
	y = malloc(results * sizeof *y);
	assert_int_equal(xfp_linear_open(bundle, 4, NULL, &linear, &err), XFP_OK);
	multiply_with(NULL, linear, x, expected);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(xfp_team_start(i ? i * i : 0, &teams[i], &err), XFP_OK);
	assert_int_equal(xfp_team_borrow(3, backwards, &borrowed, &teams[4], &err), XFP_OK);
	for (unsigned i = 0; i < 5; i++) {
		memset(y, 0xff, results * sizeof *y);
		multiply_with(teams[i], linear, x, y);
		assert_memory_equal(y, expected, results * sizeof *y);
	}
	assert_true(borrowed > 0);
	for (unsigned i = 0; i < 6; i++) {
		callers[i] = (struct caller){ i == 5 ? NULL : teams[i % 2 + 2], linear, x, expected, results, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
	}
	for (unsigned i = 0; i < 6; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(callers[i].wrong, 0);
	}
	for (unsigned i = 0; i < 5; i++)
		xfp_team_end(teams[i]);
	xfp_linear_close(linear);
	free(x);
	free(y);
	free(expected);
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

/* ---- decoding to other types -------------------------------------------------------------------- */

static void types_to_decode_to(void **state)
{
	struct fixture f;
	struct xfp_bundle *bundle;

	(void)state;
	fixture_make_bundle(&f, 0);
	bundle = fixture_open(f.out);
	for (uint32_t m = 0; m < f.ledger.matrix_count; m++)
		for (enum xfp_float type = XFP_FLOAT16; type <= XFP_BFLOAT16; type++) {
			size_t count = f.matrices[m].rows * f.matrices[m].cols;
			uint16_t *got = malloc(count * 2), *expected = malloc(count * 2);

			xfp_from_float((int)type, f.decoded[m], count, expected);
			assert_int_equal(xfp_bundle_dequantize(bundle, m, 0, f.matrices[m].rows, type, got, &err),
					 XFP_OK);
			assert_memory_equal(got, expected, count * 2);
			free(got);
			free(expected);
		}
	xfp_bundle_close(bundle);
	fixture_free(&f);
}

PROGRAM("test_multiply")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_unit),
		cmocka_unit_test(slices),
		cmocka_unit_test(what_cannot_be),
		cmocka_unit_test(a_kept_tensor),
		cmocka_unit_test(any_team),
		cmocka_unit_test(types_to_decode_to),
		cmocka_unit_test(rows_of_units),
		cmocka_unit_test(rows_of_tensors),
		cmocka_unit_test(a_tensor_of_two_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
