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

/* A matrix's outliers: a CSR matrix. */
struct outliers {
	const uint8_t *pointer, *column, *residual;
	uint32_t count;
	bool wide; /* columns of 4 bytes */
};

static struct outliers find_outliers(const struct xfp_matrix_info *matrix)
{
	struct outliers o = { .count = (uint32_t)matrix->outliers, .wide = matrix->cols > 65536 };

	if (o.count) {
		o.pointer = matrix->outlier;
		o.column = o.pointer + (matrix->rows + 1) * 4;
		o.residual = o.column + xfp_align((uint64_t)o.count * (o.wide ? 4 : 2), 4);
	}
	return o;
}

/* Add the outliers of a row; false when they are not within the matrix. */
static bool add_outliers(const struct outliers *o, uint64_t row, uint64_t rows, uint64_t cols, float *x)
{
	uint32_t first = xfp_load32(o->pointer + row * 4), end = xfp_load32(o->pointer + row * 4 + 4);
	size_t size = o->wide ? 4 : 2;

	if (first > end || end > o->count || (row == 0 && first) || (row + 1 == rows && end != o->count))
		return false;
	for (uint32_t i = first; i < end; i++)
		if ((o->wide ? xfp_load32(o->column + i * size) : xfp_load16(o->column + i * size)) >= cols)
			return false;
	xfp_decode_outliers(o->column + first * size, o->wide,
			    (const uint16_t *)(const void *)(o->residual + first * (size_t)2), end - first, x);
	return true;
}

static enum xfp_status dequantize_v2(const struct xfp_bundle *bundle, const struct xfp_matrix_info *matrix,
				     uint64_t first, uint64_t rows, float *out, struct xfp_error *err)
{
	uint64_t cols = matrix->cols, row_bytes = xfp_v2_row_bytes(cols, matrix->k);
	const uint8_t *index = matrix->index, *balance = matrix->balance;
	const uint16_t *code = matrix->code;
	struct outliers outliers = find_outliers(matrix);
	float *down = NULL;

	if (balance && !(down = malloc(cols * sizeof *down)))
		return xfp_fail(err, XFP_FAILED, "out of memory");
	for (uint64_t c = 0; balance && c < cols; c++)
		down[c] = xfp_balance_down(balance[c]);
	for (uint64_t r = first; r < first + rows; r++, out += cols) {
		xfp_decode_v2(matrix->k, index + r * row_bytes, code + (r << matrix->k), cols, out);
		if (outliers.count && !add_outliers(&outliers, r, matrix->rows, cols, out)) {
			free(down);
			return xfp_fail(err, XFP_BAD_INPUT,
					"%s: damaged: unit %s, expert %" PRIu32 ", row %" PRIu64
					": outliers outside the matrix; copy or convert it again",
					bundle->path,
					xfp_printable(xfp_bundle_string(bundle, bundle->units[matrix->unit].name)).text,
					matrix->expert, r);
		}
		xfp_unscale_row(out, down, matrix->exponent, cols, out);
	}
	free(down);
	return XFP_OK;
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
		return dequantize_v2(bundle, &matrix, first, rows, out, err);
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
