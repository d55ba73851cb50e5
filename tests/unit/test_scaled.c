/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/decode.h"
#include "kernels/common/lane_index.h"
#include "kernels/common/number.h"
#include "kernels/encode/scaled.h"
#include "kernels/encode/scaled_published.h"

#define MAX_COLS 2100 /* columns */
#define CAPACITY (MAX_COLS + XFP_LANES)

static const char *const sets[] = { "plain", "avx2", "avx512", "neon" };
#define SETS (sizeof sets / sizeof *sets)

/* Rows of one matrix and their marks. */
struct matrix {
	size_t rows, cols;
	float *x; /* padded rows */
	uint32_t marked[MAX_COLS];
	size_t marks; /* the same of each row */
};

static const float *row_of(const struct matrix *matrix, size_t r)
{
	return matrix->x + r * xfp_padded(matrix->cols);
}

static void *buffer_for(size_t bytes)
{
	void *buffer = aligned_alloc(64, (bytes + 63) / 64 * 64);

	assert_non_null(buffer);
	return buffer;
}

static void make(struct matrix *matrix, size_t rows, size_t cols)
{
	matrix->rows = rows;
	matrix->cols = cols;
	matrix->marks = 0;
	matrix->x = buffer_for(rows * xfp_padded(cols) * sizeof *matrix->x);
	memset(matrix->x, 0, rows * xfp_padded(cols) * sizeof *matrix->x);
}

/* Near Gaussian, or with long tails. */
static float number(uint64_t *seed, bool tails)
{
	float x = test_gaussian(seed), y;

	if (!tails)
		return x * 700;
	y = test_gaussian(seed);
	return x * (200 + 300 * y * y);
}

static void fill(struct matrix *matrix, uint64_t *seed, bool tails)
{
	for (size_t r = 0; r < matrix->rows; r++)
		for (size_t c = 0; c < matrix->cols; c++)
			matrix->x[r * xfp_padded(matrix->cols) + c] = number(seed, tails);
}

/* The results of a matrix, row after row. */
struct result {
	struct xfp_scaled_library *library;
	uint16_t entries[XFP_SCALED_MAX_LIBRARY * 64];
	struct xfp_scaled_moments moments[XFP_SCALED_MAX_LIBRARY];
	uint8_t *entry, *index;
	uint16_t *scale, *midpoint;
	float *value;
	size_t groups; /* groups per row */
};

static void allocate(struct result *result, const struct matrix *matrix, unsigned length)
{
	size_t padded = xfp_padded(matrix->cols);

	memset(result, 0, sizeof *result);
	result->groups = (matrix->cols + length - 1) / length;
	result->entry = calloc(matrix->rows * result->groups, 1);
	result->scale = calloc(matrix->rows * result->groups, 2);
	result->midpoint = calloc(matrix->rows * result->groups, 2);
	result->index = calloc(matrix->rows * padded, 1);
	result->value = calloc(matrix->rows * padded, sizeof *result->value);
}

static void release(struct result *result)
{
	free(result->library);
	free(result->entry);
	free(result->scale);
	free(result->midpoint);
	free(result->index);
	free(result->value);
}

static void assign(struct result *result, const struct matrix *matrix, unsigned length, size_t r)
{
	size_t g = r * result->groups, c = r * xfp_padded(matrix->cols);
	struct xfp_scaled_codes codes = { result->entry + g, result->scale + g, result->midpoint + g };

	xfp_scaled_assign_row(result->library, &codes, row_of(matrix, r), matrix->cols, length, result->index + c,
			      result->value + c);
}

static void encode(const struct matrix *matrix, unsigned k, unsigned size, unsigned length, struct result *result)
{
	bool fine = xfp_scaled_fine(k);
	size_t groups = matrix->rows * ((matrix->cols + length - 1) / length);
	size_t count = xfp_scaled_sample_count(groups, size);
	void *sample_buffer = buffer_for(xfp_scaled_sample_bytes(count, fine));
	void *row_buffer = buffer_for(xfp_scaled_row_bytes(matrix->cols, length, fine));
	struct xfp_scaled_training *training = malloc(sizeof *training);
	struct xfp_scaled_sample sample;
	struct xfp_scaled_row row;

	allocate(result, matrix, length);
	result->library = buffer_for(xfp_scaled_library_bytes(k, size));
	xfp_scaled_sample_init(&sample, sample_buffer, count, fine);
	for (size_t i = 0; i < count; i++) {
		size_t at = i * groups / count;

		xfp_scaled_sample_set(&sample, i, row_of(matrix, at / result->groups), matrix->cols,
				      at % result->groups * length, length, matrix->marked, matrix->marks);
	}
	xfp_scaled_train(result->library, k, size, &sample, XFP_SCALED_ROUNDS, training, result->entries,
			 result->moments);
	xfp_scaled_row_init(&row, row_buffer, matrix->cols, length, fine);
	for (size_t r = 0; r < matrix->rows; r++) {
		size_t g = r * result->groups;
		struct xfp_scaled_codes codes = { result->entry + g, result->scale + g, result->midpoint + g };

		xfp_scaled_row_load(&row, row_of(matrix, r), matrix->marked, matrix->marks);
		xfp_scaled_fit_row(result->library, &row, &codes);
		assign(result, matrix, length, r);
	}
	free(sample_buffer);
	free(row_buffer);
	free(training);
}

/* Use the published recipe. */
static void encode_published(const struct matrix *matrix, unsigned k, unsigned size, unsigned length,
			     struct result *result)
{
	float *codebook, library[XFP_SCALED_MAX_LIBRARY * 64];
	size_t groups;
	double *buffer;

	allocate(result, matrix, length);
	groups = matrix->rows * result->groups;
	codebook = malloc((groups << k) * sizeof *codebook);
	buffer = malloc((groups + size * ((1u << k) + 1)) * sizeof *buffer);
	for (size_t r = 0; r < matrix->rows; r++) {
		size_t g = r * result->groups;

		xfp_scaled_published_row(k, 20, row_of(matrix, r), matrix->cols, length, matrix->marked, matrix->marks,
					 codebook + (g << k), result->scale + g, result->midpoint + g);
	}
	xfp_scaled_published_library(k, size, XFP_PUBLISHED_CENTRE_ROUNDS, codebook, groups, buffer, library,
				     result->entries);
	xfp_scaled_published_choose(k, size, library, codebook, groups, result->entry);
	result->library = buffer_for(xfp_scaled_library_bytes(k, size));
	xfp_scaled_open(result->library, k, size, result->entries, NULL);
	for (size_t r = 0; r < matrix->rows; r++)
		assign(result, matrix, length, r);
	free(codebook);
	free(buffer);
}

/* The relative error over unmarked weights. */
static double error_of(const struct matrix *matrix, const struct result *result)
{
	double error = 0, square = 0;

	for (size_t r = 0; r < matrix->rows; r++)
		for (size_t c = 0, m = 0; c < matrix->cols; c++) {
			double x = row_of(matrix, r)[c], d = x - result->value[r * xfp_padded(matrix->cols) + c];

			if (m < matrix->marks && matrix->marked[m] == c) {
				m++;
				continue;
			}
			error += d * d;
			square += x * x;
		}
	return square > 0 ? error / square : error;
}

static void same(const struct matrix *matrix, const struct result *a, const struct result *b, unsigned k, unsigned size)
{
	size_t groups = matrix->rows * a->groups, padded = xfp_padded(matrix->cols);

	assert_memory_equal(a->entries, b->entries, ((size_t)size << k) * sizeof *a->entries);
	assert_memory_equal(a->moments, b->moments, size * sizeof *a->moments);
	assert_memory_equal(a->entry, b->entry, groups);
	assert_memory_equal(a->scale, b->scale, groups * 2);
	assert_memory_equal(a->midpoint, b->midpoint, groups * 2);
	for (size_t r = 0; r < matrix->rows; r++)
		assert_memory_equal(a->index + r * padded, b->index + r * padded, matrix->cols);
	assert_memory_equal(a->value, b->value, matrix->rows * padded * sizeof *a->value);
}

/* Stored data is finite, decodes to the values that the encoder used, and each index is the nearest, the lower one for
 * ties. */
static void check(const struct matrix *matrix, const struct result *result, unsigned k, unsigned size, unsigned length)
{
	size_t padded = xfp_padded(matrix->cols);
	float library[XFP_SCALED_MAX_LIBRARY * 64], decoded[CAPACITY];
	struct xfp_library decoder = { .k = k, .codebooks = size, .entry = library };
	uint16_t pair[2 * CAPACITY];
	uint8_t packed[CAPACITY];

	while (1u << decoder.group < length)
		decoder.group++;
	for (size_t i = 0; i < (size_t)size << k; i++) {
		library[i] = xfp_half_to_float(result->entries[i]);
		assert_true(isfinite(library[i]));
		assert_true(i % (1u << k) == 0 || library[i - 1] <= library[i]);
	}
	for (size_t r = 0; r < matrix->rows; r++) {
		size_t g = r * result->groups;

		for (size_t i = g; i < g + result->groups; i++) {
			assert_true(result->entry[i] < size);
			assert_true(isfinite(xfp_half_to_float(result->scale[i])));
			assert_true(isfinite(xfp_half_to_float(result->midpoint[i])));
		}
		xfp_lane_index_pack(k, result->index + r * padded, matrix->cols, packed);
		for (size_t i = 0; i < result->groups; i++) {
			pair[2 * i] = result->scale[g + i];
			pair[2 * i + 1] = result->midpoint[g + i];
		}
		assert_true(xfp_decode_v2a(&decoder, packed, pair, result->entry + g, matrix->cols, decoded));
		assert_memory_equal(decoded, result->value + r * padded, matrix->cols * sizeof *decoded);
		for (size_t c = 0; c < matrix->cols; c++) {
			size_t at = g + c / length;
			float s = xfp_half_to_float(result->scale[at]), m = xfp_half_to_float(result->midpoint[at]);
			double x = row_of(matrix, r)[c];
			unsigned index = result->index[r * padded + c];

			assert_true(index < 1u << k && isfinite(decoded[c]));
			if (c % 7) /* enough */
				continue;
			for (unsigned j = 0; j < 1u << k; j++) {
				double d = fmaf(library[((size_t)result->entry[at] << k) + j], s, m);

				assert_true(fabs(x - decoded[c]) < fabs(x - d) ||
					    (fabs(x - decoded[c]) == fabs(x - d) && (index <= j || d == decoded[c])));
			}
		}
	}
}

static void instruction_sets_agree(void **state)
{
	static const size_t widths[] = { 1, 5, 16, 100, 129, 700, 2085 };
	static const unsigned lengths[] = { 16, 128, 1024 }, sizes[] = { 1, 32, 64 };
	uint64_t seed = 1;

	(void)state;
	for (unsigned k = 2; k <= 6; k++)
		for (unsigned i = 0; i < 7; i++)
			for (unsigned l = 0; l < 3; l++) {
				static struct result result[3];
				unsigned size = sizes[(i + l + k) % 3], done = 0;
				struct matrix matrix;

				make(&matrix, 3, widths[i]);
				fill(&matrix, &seed, i % 2);
				for (uint32_t c = 3; c < matrix.cols && l;
				     c += 1 + (uint32_t)(test_random(&seed) % 200))
					matrix.marked[matrix.marks++] = c;
				for (unsigned s = 0; s < SETS; s++) {
					if (!xfp_encoder_use(sets[s]))
						continue;
					encode(&matrix, k, size, lengths[l], &result[done]);
					same(&matrix, &result[0], &result[done++], k, size);
				}
				check(&matrix, &result[0], k, size, lengths[l]);
				while (done)
					release(&result[--done]);
				free(matrix.x);
			}
}

enum { ZERO, CONSTANT, TINY, SPIKE, MARKED, FAR_OFF, MIXED, LARGEST, KINDS };

static void strange(struct matrix *matrix, int kind, uint64_t *seed)
{
	fill(matrix, seed, false);
	for (size_t r = 0; r < matrix->rows; r++)
		for (size_t c = 0; c < matrix->cols; c++) {
			float *x = &matrix->x[r * xfp_padded(matrix->cols) + c];

			if (kind == ZERO)
				*x = 0;
			else if (kind == CONSTANT)
				*x = 3.2512f;
			else if (kind == TINY)
				*x *= r ? 1e-42f : 1e-9f;
			else if (kind == SPIKE && c % 100 == 7)
				*x = 16383.5f;
			else if (kind == FAR_OFF)
				*x = 12000 + *x * 1e-5f;
			else if (kind == MIXED)
				*x *= c / 128 % 2 ? 1e-9f : 1;
			else if (kind == LARGEST)
				*x = c % 2 ? 16384 : -16384;
		}
	for (uint32_t c = 0; kind == MARKED && c < matrix->cols; c++)
		matrix->marked[matrix->marks++] = c;
}

static void strange_groups_stay_finite(void **state)
{
	static const size_t widths[] = { 1, 2, 3, 4, 5, 300 };
	static const unsigned lengths[] = { 16, 128, 1024 };
	static struct result result;
	uint64_t seed = 2;

	(void)state;
	xfp_encoder_use("plain");
	for (int kind = 0; kind < KINDS; kind++)
		for (unsigned k = 2; k <= 6; k++)
			for (unsigned i = 0; i < 6; i++) {
				unsigned length = lengths[(i + k) % 3], size = 1u << (i + 3 * (unsigned)kind) % 9;
				struct matrix matrix;

				make(&matrix, 2, widths[i]);
				strange(&matrix, kind, &seed);
				encode(&matrix, k, size, length, &result);
				check(&matrix, &result, k, size, length);
				assert_true(error_of(&matrix, &result) <= 1);
				if (kind == CONSTANT || kind == LARGEST || kind == ZERO)
					assert_true(error_of(&matrix, &result) < 1e-6);
				release(&result);
				encode_published(&matrix, k, size, length, &result);
				check(&matrix, &result, k, size, length);
				release(&result);
				free(matrix.x);
			}
}

static void refined_is_better_than_published(void **state)
{
	static struct result refined, published;
	uint64_t seed = 3;

	(void)state;
	for (unsigned tails = 0; tails < 2; tails++) {
		struct matrix matrix;

		make(&matrix, 64, 2048);
		fill(&matrix, &seed, tails);
		for (unsigned k = 2; k <= 5; k++) {
			encode(&matrix, k, 32, 128, &refined);
			encode_published(&matrix, k, 32, 128, &published);
			assert_true(error_of(&matrix, &refined) <
				    error_of(&matrix, &published) * (k == 2 ? 0.98 : 0.86));
			release(&refined);
			release(&published);
		}
		free(matrix.x);
	}
}

static void more_entries_and_shorter_groups_are_better(void **state)
{
	static struct result result;
	uint64_t seed = 4;
	double before = INFINITY;
	struct matrix matrix;

	(void)state;
	make(&matrix, 64, 2048);
	fill(&matrix, &seed, true);
	for (unsigned size = 1; size <= 256; size *= 4) {
		double error;

		encode(&matrix, 4, size, 128, &result);
		error = error_of(&matrix, &result);
		release(&result);
		assert_true(error < before);
		before = error;
	}
	before = 0;
	for (unsigned length = 16; length <= 1024; length *= 4) {
		encode(&matrix, 3, 32, length, &result);
		assert_true(error_of(&matrix, &result) > before);
		before = error_of(&matrix, &result);
		release(&result);
	}
	free(matrix.x);
}

static void marked_weights_decide_nothing(void **state)
{
	static struct result with, without;
	uint64_t seed = 5;
	struct matrix matrix;
	size_t groups;

	(void)state;
	make(&matrix, 8, 700);
	fill(&matrix, &seed, true);
	for (uint32_t c = 2; c < 700; c += 9)
		matrix.marked[matrix.marks++] = c;
	encode(&matrix, 3, 16, 128, &with);
	for (size_t r = 0; r < matrix.rows; r++)
		for (size_t i = 0; i < matrix.marks; i++)
			matrix.x[r * xfp_padded(700) + matrix.marked[i]] = i % 2 ? 16384 : -1;
	encode(&matrix, 3, 16, 128, &without);
	groups = matrix.rows * with.groups;
	assert_memory_equal(with.entries, without.entries, 16 * 8 * sizeof *with.entries);
	assert_memory_equal(with.entry, without.entry, groups);
	assert_memory_equal(with.scale, without.scale, groups * 2);
	assert_memory_equal(with.midpoint, without.midpoint, groups * 2);
	check(&matrix, &without, 3, 16, 128);
	release(&with);
	release(&without);
	free(matrix.x);
}

/* Midpoints of two entries, representable in 24 bits or not, and their neighbours. */
static void midpoints_go_to_the_lower_index(void **state)
{
	static struct xfp_scaled_library *library;
	uint64_t seed = 6;

	(void)state;
	library = buffer_for(xfp_scaled_library_bytes(3, 1));
	for (int test = 0; test < 2000; test++) {
		uint16_t entries[8], scale, midpoint;
		uint8_t entry = 0, index[XFP_LANES];
		struct xfp_scaled_codes codes = { &entry, &scale, &midpoint };
		float x[XFP_LANES] = { 0 }, d[8];

		scale = xfp_float_to_half(test_gaussian(&seed) * 100);
		midpoint = xfp_float_to_half(test_gaussian(&seed) * (test % 2 ? 10 : 0.01f));
		if (!(scale & 0x7fff))
			continue;
		for (unsigned j = 0; j < 8; j++)
			entries[j] = xfp_float_to_half((float)j - 3.5f + test_gaussian(&seed) / 16);
		for (unsigned j = 0; j < 8; j++)
			d[j] = fmaf(xfp_half_to_float(entries[j]), xfp_half_to_float(scale),
				    xfp_half_to_float(midpoint));
		for (unsigned j = 0; j < 7; j++) {
			x[j] = (float)(((double)d[j] + d[j + 1]) / 2);
			x[j + 8] = nextafterf(x[j], d[j + 1]);
		}
		xfp_scaled_open(library, 3, 1, entries, NULL);
		for (unsigned s = 0; s < SETS; s++) {
			if (!xfp_encoder_use(sets[s]))
				continue;
			xfp_scaled_assign_row(library, &codes, x, XFP_LANES, 16, index, NULL);
			for (unsigned j = 0; j < 7; j++) {
				double middle = ((double)d[j] + d[j + 1]) / 2;
				bool beyond = d[j] < d[j + 1] ? (double)x[j] > middle : (double)x[j] < middle;

				assert_int_equal(index[j], beyond ? j + 1 : j);
				assert_int_equal(index[j + 8], j + 1);
			}
		}
	}
	free(library);
}

static void values_are_rounded_once(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < 3000000; i++) {
		uint64_t any = test_random(&seed);
		float a = xfp_half_to_float((uint16_t)any & 0xfbff),
		      b = xfp_half_to_float((uint16_t)(any >> 16) & 0xfbff);
		float c = xfp_half_to_float((uint16_t)(any >> 32) & 0xfbff);

		assert_true(xfp_scaled_value(a, b, c) == fmaf(a, b, c));
	}
}

PROGRAM("test_scaled")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instruction_sets_agree),
		cmocka_unit_test(strange_groups_stay_finite),
		cmocka_unit_test(refined_is_better_than_published),
		cmocka_unit_test(more_entries_and_shorter_groups_are_better),
		cmocka_unit_test(marked_weights_decide_nothing),
		cmocka_unit_test(midpoints_go_to_the_lower_index),
		cmocka_unit_test(values_are_rounded_once),
	};

	return cmocka_run_group_tests_name("scaled", tests, NULL, NULL);
}
