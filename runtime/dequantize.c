/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dequantize.c - weights of a matrix as f32, from the parts that the index points to.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bundle_map.h"
#include "bytes.h"
#include "classes.h"
#include "decode.h"
#include "dtype.h"
#include "number.h"
#include "printable.h"
#include "scale.h"

/* A matrix's outliers: row pointers, or the row of each. */
struct outliers {
	const uint8_t *row, *column, *residual;
	uint64_t rows, cols;
	uint32_t count;
	uint32_t next;     /* of a list: the first that is not in a row before the one that is next */
	bool listed, wide; /* columns of 4 bytes */
};

static struct outliers find_outliers(const struct xfp_matrix_info *matrix)
{
	struct outliers o = { .rows = matrix->rows,
			      .cols = matrix->cols,
			      .count = (uint32_t)matrix->outliers,
			      .listed = xfp_outliers_listed(matrix->rows, matrix->outliers),
			      .wide = matrix->cols > 65536 };

	if (o.count) {
		o.row = matrix->outlier;
		o.column = o.row + xfp_outlier_row_bytes(matrix->rows, matrix->outliers);
		o.residual = o.column + xfp_align((uint64_t)o.count * (o.wide ? 4 : 2), 4);
	}
	return o;
}

/* Of a list in order: how many are in rows before this one. Of any other: some number up to the count. */
static uint32_t listed_before(const struct outliers *o, uint64_t row)
{
	uint32_t low = 0, high = o->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (xfp_load32(o->row + middle * (size_t)4) < row)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Which outliers a row has; false when that is none that can be. */
static bool find_row(struct outliers *o, uint64_t row, uint32_t *first, uint32_t *end)
{
	if (!o->listed) {
		*first = xfp_load32(o->row + row * 4);
		*end = xfp_load32(o->row + row * 4 + 4);
		return *first <= *end && *end <= o->count && (row || !*first) &&
		       (row + 1 < o->rows || *end == o->count);
	}
	*first = *end = o->next;
	while (*end < o->count && xfp_load32(o->row + *end * (size_t)4) == row)
		++*end;
	o->next = *end;
	return true;
}

static uint32_t column_of(const struct outliers *o, uint32_t i)
{
	return o->wide ? xfp_load32(o->column + i * (size_t)4) : xfp_load16(o->column + i * (size_t)2);
}

/* Add the outliers of a row; false when they are not within the matrix or not in order. */
static bool add_outliers(struct outliers *o, uint64_t row, float *x)
{
	uint32_t first, end;

	if (!find_row(o, row, &first, &end))
		return false;
	for (uint32_t i = first; i < end; i++)
		if (column_of(o, i) >= o->cols || (i > first && column_of(o, i) <= column_of(o, i - 1)))
			return false;
	xfp_decode_outliers(o->column + first * (size_t)(o->wide ? 4 : 2), o->wide,
			    (const uint16_t *)(const void *)(o->residual + first * (size_t)2), end - first, x);
	return true;
}

/* Rows [first, end) are about to be decoded, or were. A list out of order, or with rows that are not there, does not
 * come out where the next call will begin, or the last row should end. */
static void begin_outliers(struct outliers *o, uint64_t first)
{
	o->next = o->listed && first ? listed_before(o, first) : 0;
}

static bool end_outliers(const struct outliers *o, uint64_t end)
{
	return !o->listed || o->next == (end < o->rows ? listed_before(o, end) : o->count);
}

/* Rows of a matrix in one of the modes with codebooks. */
struct decoder {
	const struct xfp_matrix_info *matrix;
	struct outliers outliers;
	uint64_t row_bytes, groups; /* of a row */
	float *down;                /* NULL: not balanced */
	float *values;              /* of the library */
	struct xfp_library library;
};

static enum xfp_status decoder_init(struct decoder *d, const struct xfp_matrix_info *matrix, struct xfp_error *err)
{
	size_t entries = (size_t)matrix->library_size << matrix->k, halves = matrix->code_bytes / 2;
	const uint8_t *balance = matrix->balance;

	*d = (struct decoder){ .matrix = matrix, .outliers = find_outliers(matrix) };
	if (balance && !(d->down = malloc(matrix->cols * sizeof *d->down)))
		return xfp_fail(err, XFP_FAILED, "out of memory");
	for (uint64_t c = 0; balance && c < matrix->cols; c++)
		d->down[c] = xfp_balance_down(balance[c]);
	d->row_bytes = xfp_index_row_bytes(matrix->cols, matrix->k);
	if (matrix->mode == XFP_MODE_V2)
		return XFP_OK;
	if (!(d->values = malloc(halves * sizeof *d->values))) {
		free(d->down);
		return xfp_fail(err, XFP_FAILED, "out of memory");
	}
	xfp_decode_halves(matrix->code, halves, d->values);
	d->library = (struct xfp_library){ .k = matrix->k,
					   .group = (unsigned)__builtin_ctz(matrix->group_size),
					   .codebooks = matrix->library_size,
					   .entry = d->values,
					   .ratio = d->values + entries };
	d->groups = xfp_row_groups(matrix->cols, d->library.group);
	return XFP_OK;
}

/* Row r of x', without outliers. False when it names a codebook that is not there. */
static bool decode_row(const struct decoder *d, uint64_t r, float *x)
{
	const struct xfp_matrix_info *matrix = d->matrix;
	const uint8_t *index = (const uint8_t *)matrix->index + r * d->row_bytes, *group = matrix->group;
	uint64_t groups = matrix->rows * d->groups, at = r * d->groups;

	switch ((enum xfp_mode)matrix->mode) {
	case XFP_MODE_V2A:
		return xfp_decode_v2a(&d->library, index, (const uint16_t *)matrix->group + 2 * at,
				      group + 4 * groups + at, matrix->cols, x);
	case XFP_MODE_V2C:
		xfp_decode_v2c(&d->library, index, group + at, group[groups + r], matrix->cols, x);
		return true;
	default:
		xfp_decode_v2(matrix->k, index, (const uint16_t *)matrix->code + (r << matrix->k), matrix->cols, x);
		return true;
	}
}

static enum xfp_status dequantize_rows(const struct xfp_bundle *bundle, const struct xfp_matrix_info *matrix,
				       uint64_t first, uint64_t rows, float *out, struct xfp_error *err)
{
	struct decoder d;
	enum xfp_status status = decoder_init(&d, matrix, err);
	const char *wrong = NULL;

	if (status)
		return status;
	begin_outliers(&d.outliers, first);
	for (uint64_t r = first; !wrong && r < first + rows; r++, out += matrix->cols) {
		if (!decode_row(&d, r, out))
			wrong = "a group's codebook is none of its library";
		else if (d.outliers.count && !add_outliers(&d.outliers, r, out))
			wrong = "outliers outside the matrix or out of order";
		else
			xfp_unscale_row(out, d.down, matrix->exponent, matrix->cols, out);
		if (!wrong && r + 1 == first + rows && !end_outliers(&d.outliers, first + rows))
			wrong = "outliers outside the matrix or out of order";
		if (wrong)
			status = xfp_fail(
				err, XFP_BAD_INPUT,
				"%s: damaged: unit %s, expert %" PRIu32 ", row %" PRIu64
				": %s; copy or convert it again",
				bundle->path,
				xfp_printable(xfp_bundle_string(bundle, bundle->units[matrix->unit].name)).text,
				matrix->expert, r, wrong);
	}
	free(d.down);
	free(d.values);
	return status;
}

enum xfp_status xfp_bundle_dequantize(const struct xfp_bundle *bundle, uint32_t number, uint64_t first, uint64_t rows,
				      float *out, struct xfp_error *err)
{
	struct xfp_matrix_info matrix;
	const uint8_t *index;
	uint64_t cols;
	float scale;

	if (!xfp_bundle_matrix(bundle, number, &matrix) || first > matrix.rows || rows > matrix.rows - first)
		return xfp_fail(err, XFP_USAGE, "%s: has no such rows of matrix %" PRIu32, bundle->path, number);
	cols = matrix.cols;
	index = matrix.index;
	if (!rows || !cols)
		return XFP_OK;
	switch ((enum xfp_mode)matrix.mode) {
	case XFP_MODE_V2:
	case XFP_MODE_V2A:
	case XFP_MODE_V2C:
		return dequantize_rows(bundle, &matrix, first, rows, out, err);
	case XFP_MODE_FP8:
		for (uint64_t r = first; r < first + rows; r++, out += cols) {
			memcpy(&scale, (const uint8_t *)matrix.code + r * sizeof scale, sizeof scale);
			xfp_decode_fp8(index + r * cols, scale, cols, out);
		}
		return XFP_OK;
	default: /* KEEP; opening accepts no other */
		index += first * cols * (xfp_dtype_bits(bundle->units[matrix.unit].dtype) / 8);
		xfp_to_float(bundle->units[matrix.unit].dtype, index, rows * cols, out);
		return XFP_OK;
	}
}
