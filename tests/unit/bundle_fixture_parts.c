/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_fixture_parts.c - random parts of a matrix, bit by bit, and a simple reference decoder.
 */
#include "tests/unit/unit.h"

#include "tests/unit/bundle_fixture_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/common/number.h"
#include "tests/unit/lane_bits.h"

/* ---- buffers ----------------------------------------------------------------------------------- */

void fixture_append(struct fixture_buffer *b, const void *data, size_t size)
{
	b->data = realloc(b->data, b->size + size + 1);
	assert_non_null(b->data);
	if (size)
		memcpy(b->data + b->size, data, size);
	b->size += size;
}

void fixture_append_zeros(struct fixture_buffer *b, size_t unit)
{
	while (b->size % unit)
		fixture_append(b, "", 1);
}

/* ---- codebooks and scales of rows ------------------------------------------------------------- */

/* Write one row of random indices in lanes, bit by bit. */
static void random_indices(struct fixture *f, unsigned k, uint64_t cols, uint8_t *index, struct fixture_buffer *out)
{
	size_t start = out->size, bytes = ((cols + 31) / 32 * 4 * k + 15) / 16 * 16;

	for (size_t i = 0; i < bytes; i++)
		fixture_append(out, "", 1);
	for (uint64_t c = 0; c < cols; c++) {
		index[c] = (uint8_t)(test_random(&f->random) >> 40) & (uint8_t)((1u << k) - 1);
		for (unsigned bit = 0; bit < k; bit++) {
			size_t at = lane_bit(k, cols, c, bit);

			out->data[start + at / 8] |= (uint8_t)((index[c] >> bit & 1) << at % 8);
		}
	}
}

static float random_half(struct fixture *f, double range, uint16_t *half)
{
	*half = xfp_double_to_half(test_gaussian(&f->random) * range);
	return xfp_half_to_float(*half);
}

/* Two rows in three have outliers: few, stored as a list, or twice as many, with row pointers. */
static void random_outliers(struct fixture *f, bool many, uint64_t rows, uint64_t cols, float *x,
			    struct fixture_buffer *out, uint64_t *count)
{
	struct fixture_buffer numbers = { 0 }, pointers = { 0 }, columns = { 0 }, residuals = { 0 };
	uint32_t total = 0;

	fixture_append(&pointers, &total, 4);
	for (uint32_t r = 0; r < rows; r++) {
		uint64_t wanted = r % 3 * (many ? 2 : 1), step = cols / (wanted + 1);

		assert_true(step);
		for (uint64_t i = 0; i < wanted; i++, total++) {
			uint32_t column = (uint32_t)(cols - 1 - (wanted - 1 - i) * step);
			uint16_t half;

			x[r * cols + column] += random_half(f, 9000, &half);
			fixture_append(&numbers, &r, 4);
			fixture_append(&columns, &column, cols > 65536 ? 4 : 2);
			fixture_append(&residuals, &half, 2);
		}
		fixture_append(&pointers, &total, 4);
	}
	assert_int_equal(many, total > rows);
	fixture_append_zeros(&columns, 4);
	fixture_append(out, many ? pointers.data : numbers.data, many ? pointers.size : numbers.size);
	fixture_append(out, columns.data, columns.size);
	fixture_append(out, residuals.data, residuals.size);
	fixture_append_zeros(out, 16);
	free(numbers.data);
	free(pointers.data);
	free(columns.data);
	free(residuals.data);
	*count = total;
}

static int ascending_floats(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* Add outliers to x', then scale to the weights' range: common to all modes with codebooks. */
static void finish(struct fixture *f, const struct xfp_packed *packed, struct xfp_packed_matrix *matrix,
		   struct fixture_buffer part[XFP_PARTS], int outliers, float *out)
{
	uint64_t rows = packed->rows, cols = packed->cols;

	if (outliers) {
		matrix->offset[XFP_PART_OUTLIER] = part[XFP_PART_OUTLIER].size;
		random_outliers(f, outliers > 1, rows, cols, out, &part[XFP_PART_OUTLIER], &matrix->outliers);
	}
	for (uint64_t r = 0; r < rows; r++) {
		for (uint64_t c = 0; c < cols; c++) {
			float *x = &out[r * cols + c];

			if (part[XFP_PART_BALANCE].size)
				*x *= (float)pow(2, -part[XFP_PART_BALANCE].data[c] / 4.0);
			*x = ldexpf(*x, -matrix->exponent);
		}
	}
}

void fixture_make_v2(struct fixture *f, const struct xfp_packed *packed, struct xfp_packed_matrix *matrix,
		     struct fixture_buffer part[XFP_PARTS], int outliers, float *out)
{
	uint64_t rows = packed->rows, cols = packed->cols;
	uint8_t *index = malloc(cols);

	matrix->exponent = 1 + (int)(test_random(&f->random) % 12);
	matrix->offset[XFP_PART_INDEX] = part[XFP_PART_INDEX].size;
	matrix->offset[XFP_PART_CODE] = part[XFP_PART_CODE].size;
	for (uint64_t r = 0; r < rows; r++) {
		float entry[64];

		uint16_t half;

		for (unsigned i = 0; i < 1u << matrix->k; i++)
			entry[i] = random_half(f, 3000, &half);
		qsort(entry, (size_t)1 << matrix->k, sizeof *entry, ascending_floats);
		for (unsigned i = 0; i < 1u << matrix->k; i++) {
			half = xfp_float_to_half(entry[i]);
			fixture_append(&part[XFP_PART_CODE], &half, 2);
		}
		random_indices(f, matrix->k, cols, index, &part[XFP_PART_INDEX]);
		for (uint64_t c = 0; c < cols; c++)
			out[r * cols + c] = entry[index[c]];
	}
	finish(f, packed, matrix, part, outliers, out);
	free(index);
}

void fixture_make_fp8(struct fixture *f, const struct xfp_packed *packed, struct xfp_packed_matrix *matrix,
		      struct fixture_buffer part[XFP_PARTS], float *out)
{
	matrix->offset[XFP_PART_INDEX] = part[XFP_PART_INDEX].size;
	matrix->offset[XFP_PART_CODE] = part[XFP_PART_CODE].size;
	for (uint64_t r = 0; r < packed->rows; r++) {
		float scale = 0.001f + (float)(test_random(&f->random) % 1000) / 7000;

		fixture_append(&part[XFP_PART_CODE], &scale, 4);
		for (uint64_t c = 0; c < packed->cols; c++) {
			uint8_t code = (uint8_t)test_random(&f->random) & 0xbf; /* not NaN */
			int exponent = code >> 3 & 15;
			double value = exponent ? ldexp(8 + (code & 7), exponent - 10) : ldexp(code & 7, -9);

			fixture_append(&part[XFP_PART_INDEX], &code, 1);
			out[r * packed->cols + c] = (float)((code & 0x80 ? -value : value) * scale);
		}
	}
}

/* ---- libraries --------------------------------------------------------------------------------- */

void fixture_make_library(struct fixture *f, const struct xfp_packed *packed, struct fixture_buffer part[XFP_PARTS])
{
	unsigned ratios = packed->mode == XFP_MODE_V2C ? 256u >> packed->library : 0;
	uint16_t half;

	for (unsigned i = 0; i < 1u << (packed->library + packed->k); i++) {
		random_half(f, 1, &half);
		fixture_append(&part[XFP_PART_CODE], &half, 2);
	}
	for (unsigned i = 0; i < ratios; i++) {
		half = xfp_double_to_half(i / 40.0);
		fixture_append(&part[XFP_PART_CODE], &half, 2);
	}
}

static float code(const struct fixture_buffer part[XFP_PARTS], size_t i)
{
	uint16_t half;

	memcpy(&half, part[XFP_PART_CODE].data + 2 * i, 2);
	return xfp_half_to_float(half);
}

/* The decoding of the columns [c, end) of a row that share a group. */
struct group {
	uint8_t codebook, ratio;
	uint16_t scale, midpoint;
	float row;
};

static void decode_group(const struct xfp_packed *packed, const struct fixture_buffer part[XFP_PARTS],
			 const struct group *g, const uint8_t *index, uint64_t count, float *out)
{
	for (uint64_t c = 0; c < count; c++) {
		float entry = code(part, ((size_t)g->codebook << packed->k) + index[c]);

		if (packed->mode == XFP_MODE_V2A) {
			out[c] = fmaf(entry, xfp_half_to_float(g->scale), xfp_half_to_float(g->midpoint));
		} else {
			float ratio = code(part, ((size_t)1 << (packed->library + packed->k)) + g->ratio);

			out[c] = (float)((double)entry * ratio * g->row); /* exact before it is rounded */
		}
	}
}

void fixture_make_groups(struct fixture *f, const struct xfp_packed *packed, struct xfp_packed_matrix *matrix,
			 struct fixture_buffer part[XFP_PARTS], int outliers, float *out)
{
	uint64_t rows = packed->rows, cols = packed->cols, columns = (uint64_t)1 << packed->group;
	struct fixture_buffer first = { 0 }, second = { 0 };
	uint8_t *index = malloc(cols);

	matrix->exponent = 1 + (int)(test_random(&f->random) % 12);
	matrix->offset[XFP_PART_INDEX] = part[XFP_PART_INDEX].size;
	matrix->offset[XFP_PART_GROUP] = part[XFP_PART_GROUP].size;
	for (uint64_t r = 0; r < rows; r++) {
		uint8_t row_byte = (uint8_t)(test_random(&f->random) % 32);

		random_indices(f, matrix->k, cols, index, &part[XFP_PART_INDEX]);
		for (uint64_t c = 0; c < cols; c += columns) {
			uint64_t random = test_random(&f->random) >> 20;
			unsigned codebooks = 1u << packed->library, ratios = 256 / codebooks;
			struct group g = { .codebook = (uint8_t)(random % codebooks),
					   .ratio = (uint8_t)((random >> 8) % ratios),
					   .row = 16384 * (float)pow(2, -row_byte / 4.0) };
			uint8_t byte;

			if (!c && !g.ratio) /* so that no row is zero */
				g.ratio = 1;
			random_half(f, 3000, &g.scale);
			random_half(f, 500, &g.midpoint);
			if (packed->mode == XFP_MODE_V2A) {
				fixture_append(&first, &g.scale, 2);
				fixture_append(&first, &g.midpoint, 2);
				fixture_append(&second, &g.codebook, 1);
			} else {
				byte = (uint8_t)(g.codebook * ratios + g.ratio);
				fixture_append(&first, &byte, 1);
			}
			decode_group(packed, part, &g, index + c, cols - c < columns ? cols - c : columns,
				     out + r * cols + c);
		}
		if (packed->mode == XFP_MODE_V2C)
			fixture_append(&second, &row_byte, 1);
	}
	fixture_append(&part[XFP_PART_GROUP], first.data, first.size);
	fixture_append(&part[XFP_PART_GROUP], second.data, second.size);
	fixture_append_zeros(&part[XFP_PART_GROUP], 16);
	free(first.data);
	free(second.data);
	free(index);
	finish(f, packed, matrix, part, outliers, out);
}
