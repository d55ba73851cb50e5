/* SPDX-License-Identifier: Apache-2.0 */
/* Error feedback: bits do not depend on how the work is cut, and output errors fall. tests/feedback_reference.py
 * compares every bit with numpy. */
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/encode/encode.h"
#include "kernels/feedback/feedback.h"

#define ROW 700.0f

/* A matrix with inputs, and what was computed from them. */
struct matrix {
	size_t rows, cols, inputs;
	unsigned group;
	float *x; /* [rows][cols] */
	uint16_t *input;
	float *moments;
	struct xfp_feedback f;
	struct xfp_compact_book book;
	uint8_t *byte, *index;
	uint16_t *residual;
};

static void *zeros(size_t count, size_t size)
{
	const size_t bytes = (count * size + 64) / 64 * 64;
	void *buffer = aligned_alloc(64, bytes);

	assert_non_null(buffer);
	return memset(buffer, 0, bytes);
}

static void add_moments(struct matrix *m, double *sum, size_t from, size_t count)
{
	float *scratch = zeros(xfp_feedback_moments_scratch(m->cols), sizeof *scratch);

	xfp_feedback_moments_add(sum, m->input + from * m->cols, m->cols, count, m->cols, 0, (m->cols + 15) / 16,
				 scratch);
	free(scratch);
}

static void prepare(struct matrix *m)
{
	const size_t values = xfp_triangle_values(m->cols);
	double *sum = zeros(values, sizeof *sum), *squares = zeros(m->cols, sizeof *squares);
	struct xfp_feedback *f = &m->f;
	struct xfp_feedback_source source = { .inputs = m->inputs, .cols = m->cols };
	float *diagonal = zeros(m->cols, sizeof *diagonal), scale;

	add_moments(m, sum, 0, m->inputs);
	m->moments = zeros(values, sizeof *m->moments);
	xfp_feedback_moments_mean(sum, values, m->inputs, m->moments);
	xfp_feedback_squares_add(squares, m->input, m->cols, m->inputs, m->cols);
	xfp_feedback_moments_mean(squares, m->cols, m->inputs, diagonal);
	for (size_t c = 0; c < m->cols; c++)
		assert_true(diagonal[c] == m->moments[xfp_triangle_at(m->cols, c, c)]);
	source.own = diagonal;
	scale = xfp_feedback_scale(&source);
	source.own = m->moments;
	*f = (struct xfp_feedback){ .cols = m->cols, .group = m->group };
	f->padded = xfp_compact_groups_of(m->cols, m->group) * m->group;
	f->column = zeros(f->padded, sizeof *f->column);
	f->h = zeros(xfp_triangle_values(f->padded), sizeof *f->h);
	f->factor = zeros(xfp_triangle_values(f->padded), sizeof *f->factor);
	f->diagonal = zeros(f->padded, sizeof *f->diagonal);
	f->pivot = zeros(f->padded, sizeof *f->pivot);
	xfp_feedback_prepare(f, &source, scale);
	free(sum);
	free(squares);
	free(diagonal);
}

static bool factor(struct matrix *m, size_t *column)
{
	double *scratch = zeros(xfp_feedback_scratch(m->f.padded), sizeof *scratch);
	const bool good = xfp_feedback_factor(&m->f, scratch, column);

	free(scratch);
	return good;
}

/* Gaussian weights; inputs that have something in common. */
static void create(struct matrix *m, size_t rows, size_t cols, unsigned group, size_t inputs, uint64_t seed)
{
	*m = (struct matrix){ .rows = rows, .cols = cols, .inputs = inputs, .group = group };
	m->x = zeros(rows * cols, sizeof *m->x);
	m->input = zeros(inputs * cols, sizeof *m->input);
	for (size_t i = 0; i < rows * cols; i++)
		m->x[i] = test_gaussian(&seed) * ROW;
	for (size_t i = 0; i < inputs; i++) {
		const float common = test_gaussian(&seed);

		for (size_t c = 0; c < cols; c++) {
			float own = common * (float)(c % 3) + test_gaussian(&seed) * (0.25f + (float)(c % 7));

			m->input[i * cols + c] = xfp_float_to_bf16(own);
		}
	}
	prepare(m);
	m->byte = zeros(rows, m->f.padded / group);
	m->index = zeros(rows, m->f.padded);
	m->residual = zeros(rows * m->f.padded, sizeof *m->residual);
}

static void forget_inputs(struct matrix *m)
{
	free(m->moments);
	free(m->f.column);
	free(m->f.h);
	free(m->f.factor);
	free(m->f.diagonal);
	free(m->f.pivot);
}

static void destroy(struct matrix *m)
{
	forget_inputs(m);
	free(m->x);
	free(m->input);
	free(m->byte);
	free(m->index);
	free(m->residual);
}

static bool is_marked(size_t r, size_t c)
{
	return (r * 31 + c) % 97 == 5;
}

/* Load rows [first, first + count). */
static void *load(const struct matrix *m, struct xfp_feedback_batch *batch, size_t first, size_t count)
{
	void *buffer = zeros(xfp_feedback_batch_bytes(&m->f, count), 1);
	float *x = zeros(xfp_padded(m->cols), sizeof *x);
	uint16_t *marked = zeros(xfp_padded(m->cols) / 16, sizeof *marked);

	xfp_feedback_batch_init(batch, &m->f, buffer, count);
	for (size_t r = 0; r < count; r++) {
		memcpy(x, m->x + (first + r) * m->cols, m->cols * sizeof *x);
		for (size_t c = 0; c < m->cols; c++) {
			marked[c / 16] &= (uint16_t) ~(1u << c % 16);
			marked[c / 16] |= (uint16_t)(is_marked(first + r, c) << c % 16);
		}
		xfp_feedback_load(batch, r, x, marked, ROW);
	}
	free(x);
	free(marked);
	return buffer;
}

static void encode(struct matrix *m, size_t at_once, unsigned tried, unsigned passes)
{
	for (size_t first = 0; first < m->rows; first += at_once) {
		const size_t count = m->rows - first < at_once ? m->rows - first : at_once;
		struct xfp_feedback_batch batch;
		void *buffer = load(m, &batch, first, count);

		xfp_feedback_encode(&batch, &m->book, tried);
		for (unsigned pass = 0; pass < passes; pass++)
			xfp_feedback_pass(&batch, &m->book);
		for (size_t r = 0; r < count; r++) {
			const size_t at = (first + r) * m->f.padded;

			xfp_feedback_store(&batch, r, &m->book, m->byte + at / m->group, m->index + at,
					   m->residual + at);
		}
		free(buffer);
	}
}

static struct xfp_compact_groups new_groups(unsigned group, size_t count)
{
	return (struct xfp_compact_groups){
		.group = group,
		.y = zeros(count * group, sizeof(float)),
		.mark = zeros(count * group / 16, sizeof(uint16_t)),
		.code = zeros(count * group, 1),
		.largest = zeros(count, sizeof(float)),
		.square = zeros(count, sizeof(float)),
	};
}

static void free_groups(const struct xfp_compact_groups *groups)
{
	free(groups->y);
	free(groups->mark);
	free(groups->code);
	free(groups->largest);
	free(groups->square);
}

/* Load all rows as for a fit without feedback. */
static struct xfp_compact_groups plain_groups(const struct matrix *m)
{
	const size_t per_row = m->f.padded / m->group;
	struct xfp_compact_groups groups = new_groups(m->group, m->rows * per_row);
	float *x = zeros(xfp_padded(m->cols), sizeof *x);
	uint16_t *marked = zeros(xfp_padded(m->cols) / 16, sizeof *marked);

	for (size_t r = 0; r < m->rows; r++) {
		memset(marked, 0, xfp_padded(m->cols) / 8);
		for (size_t c = 0; c < m->cols; c++) {
			x[c] = m->x[r * m->cols + c];
			marked[c / 16] |= (uint16_t)(is_marked(r, c) << c % 16);
		}
		xfp_encoder()->compact->load(&groups, r * per_row, x, marked, m->cols, ROW);
	}
	free(x);
	free(marked);
	return groups;
}

static void train(struct xfp_compact_book *book, const struct xfp_compact_groups *groups, size_t count,
		  const uint8_t *byte, const uint8_t *index)
{
	struct xfp_compact_sums *sums = zeros(1, sizeof *sums);
	float *weight = zeros(count, sizeof *weight);

	for (size_t g = 0; g < count; g++)
		weight[g] = 1;
	xfp_compact_train(book, groups, count, weight, byte, index, sums);
	xfp_compact_update(book, sums, true);
	xfp_compact_prepare(book);
	free(sums);
	free(weight);
}

/* Fit a library, and encode without feedback. */
static void fit(struct matrix *m, unsigned k)
{
	const struct xfp_compact_groups groups = plain_groups(m);
	const size_t count = m->rows * m->f.padded / m->group;
	uint64_t peaks[XFP_COMPACT_PEAKS] = { 0 };

	xfp_compact_count(&groups, 0, count, peaks);
	xfp_compact_seed(&m->book, k, m->group, xfp_compact_entries(k), peaks);
	xfp_compact_prepare(&m->book);
	for (int round = 0; round < 4; round++) {
		if (round)
			train(&m->book, &groups, count, m->byte, m->index);
		xfp_encoder()->compact->assign(&m->book, &groups, 0, count, m->byte, m->index, NULL);
	}
	free_groups(&groups);
}

/* tr E M E^T, E the differences of what is stored, in units of the row scale; marked weights are exact if `exact`. */
static double output_error(const struct matrix *m, bool exact)
{
	const struct xfp_compact_library *l = &m->book.library;
	double total = 0, *e = zeros(m->cols, sizeof *e);

	for (size_t r = 0; r < m->rows; r++) {
		for (size_t c = 0; c < m->cols; c++) {
			const size_t at = r * m->f.padded + c;
			const uint8_t byte = m->byte[at / m->group];
			float q = l->entry[byte >> l->ratio_bits][m->index[at]] * l->ratio[byte & (l->ratios - 1)];

			q *= ROW;
			if (is_marked(r, c))
				q = exact ? m->x[r * m->cols + c] : q + xfp_half_to_float(m->residual[at]);
			e[c] = ((double)m->x[r * m->cols + c] - q) / ROW;
		}
		for (size_t i = 0; i < m->cols; i++)
			for (size_t j = 0; j < m->cols; j++)
				total += e[i] * e[j] *
					 m->moments[xfp_triangle_at(m->cols, i > j ? i : j, i > j ? j : i)];
	}
	free(e);
	return total;
}

/* ---- tests --------------------------------------------------------------------------------------- */

static void blocks_are_nearly_equal(void **state)
{
	static const size_t widths[] = { 1, 33, 16384, 16385, 16416, 32768, 32769, 53248, 100000, 262144 };

	(void)state;
	for (unsigned group = 16; group <= 64; group *= 2) {
		for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
			const size_t cols = widths[i], blocks = xfp_feedback_blocks(cols);
			size_t min = SIZE_MAX, max = 0;

			assert_int_equal(xfp_feedback_first(cols, group, blocks, 0), 0);
			assert_int_equal(xfp_feedback_first(cols, group, blocks, blocks), cols);
			for (size_t b = 0; b < blocks; b++) {
				const size_t first = xfp_feedback_first(cols, group, blocks, b);
				const size_t count = xfp_feedback_first(cols, group, blocks, b + 1) - first;

				assert_int_equal(first % group, 0);
				assert_true(count && count <= XFP_FEEDBACK_COLS);
				min = count < min ? count : min;
				max = count > max ? count : max;
			}
			assert_true(max - min < 2 * group);
			assert_int_equal(blocks, (cols + 16383) / 16384);
		}
	}
}

static void moments_are_those_of_all_inputs(void **state)
{
	struct matrix m;
	double *sum, *parts;

	(void)state;
	create(&m, 1, 75, 16, 300, 1);
	sum = zeros(xfp_triangle_values(75), sizeof *sum);
	parts = zeros(xfp_triangle_values(75), sizeof *parts);
	add_moments(&m, sum, 0, 300);
	for (size_t first = 0; first < 300; first += 77)
		add_moments(&m, parts, first, 300 - first < 77 ? 300 - first : 77);
	assert_memory_equal(sum, parts, xfp_triangle_values(75) * sizeof *sum);
	for (size_t i = 0; i < 80; i++) {
		for (size_t j = 0; j <= i; j++) {
			double expected = 0;

			for (size_t r = 0; i < 75 && r < 300; r++)
				expected += (double)xfp_bf16_to_float(m.input[r * 75 + i]) *
					    xfp_bf16_to_float(m.input[r * 75 + j]);
			assert_true(sum[xfp_triangle_at(75, i, j)] == expected);
		}
	}
	free(sum);
	free(parts);
	destroy(&m);
}

static void the_factor_times_itself_is_h(void **state)
{
	static const size_t widths[] = { 5, 16, 100, 416 };

	(void)state;
	for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
		struct matrix m;
		size_t bad, n;
		double trace = 0;

		create(&m, 1, widths[w], 32, 200, w);
		n = m.f.padded;
		assert_true(factor(&m, &bad));
		for (size_t i = 0; i < n; i++) {
			trace += m.f.column[i] < m.cols ? m.f.diagonal[i] - 0.06 : 0;
			for (size_t j = 0; j <= i; j += 3) {
				double sum = 0;

				for (size_t c = i; c < n; c++)
					sum += (double)m.f.factor[xfp_triangle_at(n, c, i)] *
					       m.f.factor[xfp_triangle_at(n, c, j)];
				assert_true(fabs(sum - m.f.h[xfp_triangle_at(n, i, j)]) < 1e-5 * m.f.diagonal[0]);
			}
		}
		assert_true(fabs(trace / (double)m.cols - 1) < 1e-5);
		destroy(&m);
	}
}

static void an_h_that_is_not_definite_is_refused(void **state)
{
	struct matrix m;
	size_t bad = 0, at;

	(void)state;
	create(&m, 1, 100, 16, 200, 7);
	at = xfp_triangle_at(m.f.padded, 40, 40);
	m.f.h[at] = 0;
	assert_false(factor(&m, &bad));
	assert_int_equal(bad, m.f.column[40]);
	m.f.h[at] = NAN;
	assert_false(factor(&m, &bad));
	assert_int_equal(bad, m.f.column[40]);
	/* Inputs whose squares are beyond f32. */
	m.input[3] = xfp_float_to_bf16(1e30f);
	forget_inputs(&m);
	prepare(&m);
	assert_false(factor(&m, &bad));
	destroy(&m);
}

static void the_rows_of_a_batch_do_not_matter(void **state)
{
	struct matrix m;
	uint8_t *byte, *index;
	size_t bad, values;

	(void)state;
	create(&m, 50, 600, 32, 100, 11);
	values = m.rows * m.f.padded;
	assert_true(factor(&m, &bad));
	xfp_feedback_divide(&m.f);
	fit(&m, 3);
	encode(&m, 50, XFP_COMPACT_TRIED, 1);
	byte = zeros(values / 32, 1);
	index = zeros(values, 1);
	memcpy(byte, m.byte, values / 32);
	memcpy(index, m.index, values);
	encode(&m, 7, XFP_COMPACT_TRIED, 1);
	assert_memory_equal(byte, m.byte, values / 32);
	assert_memory_equal(index, m.index, values);
	free(byte);
	free(index);
	destroy(&m);
}

static void output_errors_fall(void **state)
{
	(void)state;
	for (unsigned k = 2; k <= 6; k++) {
		double plain, one, several, passed;
		struct matrix m;
		size_t bad;

		create(&m, 96, 200, 32, 400, k);
		assert_true(factor(&m, &bad));
		xfp_feedback_divide(&m.f);
		fit(&m, k);
		plain = output_error(&m, true);
		encode(&m, 96, 1, 0);
		one = output_error(&m, false);
		encode(&m, 96, XFP_COMPACT_TRIED, 0);
		several = output_error(&m, false);
		encode(&m, 96, XFP_COMPACT_TRIED, 2);
		passed = output_error(&m, false);
		printf("# k = %u: feedback %.3f, %d bytes tried %.3f, two passes %.3f of the error without\n", k,
		       one / plain, XFP_COMPACT_TRIED, several / plain, passed / plain);
		assert_true(one < 0.8 * plain && several < one && passed < several);
		destroy(&m);
	}
}

static void training_on_targets_lowers_the_error(void **state)
{
	struct xfp_compact_groups sample;
	struct xfp_feedback_batch batch;
	double before, after;
	uint8_t *byte, *index;
	struct matrix m;
	size_t bad, per_row, count;

	(void)state;
	create(&m, 192, 128, 32, 400, 9);
	per_row = m.f.padded / m.group;
	count = m.rows * per_row;
	assert_true(factor(&m, &bad));
	xfp_feedback_divide(&m.f);
	fit(&m, 2);
	/* A library that needs training. */
	for (unsigned e = 0; e < m.book.library.entries; e++)
		for (unsigned q = 0; q < 4; q++)
			m.book.library.entry[e][q] *= q % 2 ? 1.3f : 0.8f;
	xfp_compact_prepare(&m.book);
	encode(&m, 192, XFP_COMPACT_TRIED, 0);
	before = output_error(&m, false);
	sample = new_groups(m.group, count);
	byte = zeros(count, 1);
	index = zeros(count, m.group);
	for (int round = 0; round < 3; round++) {
		void *buffer = load(&m, &batch, 0, m.rows);

		xfp_feedback_encode(&batch, &m.book, 1);
		for (size_t g = 0; g < count; g++)
			byte[g] =
				xfp_feedback_sample(&batch, g / per_row, g % per_row, &sample, g, index + g * m.group);
		for (size_t i = 0; i < count * m.group; i++) {
			const size_t r = i / m.cols, c = i % m.cols;

			assert_int_equal(sample.code[i], !is_marked(r, c));
			assert_int_equal(sample.mark[i / 16] >> i % 16 & 1, is_marked(r, c));
			assert_true(is_marked(r, c) ? sample.y[i] == 0 : sample.y[i] != 0);
		}
		train(&m.book, &sample, count, byte, index);
		free(buffer);
	}
	encode(&m, 192, XFP_COMPACT_TRIED, 0);
	after = output_error(&m, false);
	printf("# after training on targets: %.3f of the error\n", after / before);
	assert_true(after < 0.99 * before);
	free_groups(&sample);
	free(byte);
	free(index);
	destroy(&m);
}

PROGRAM("test_feedback")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_nearly_equal),
		cmocka_unit_test(moments_are_those_of_all_inputs),
		cmocka_unit_test(the_factor_times_itself_is_h),
		cmocka_unit_test(an_h_that_is_not_definite_is_refused),
		cmocka_unit_test(the_rows_of_a_batch_do_not_matter),
		cmocka_unit_test(output_errors_fall),
		cmocka_unit_test(training_on_targets_lowers_the_error),
	};

	return cmocka_run_group_tests_name("feedback", tests, NULL, NULL);
}
