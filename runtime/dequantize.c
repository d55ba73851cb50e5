/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dequantize.c - decodes the weights of a matrix.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "kernels/common/number.h"
#include "kernels/common/scale.h"
#include "runtime/linear.h"

#define MANY_ROWS 16 /* from this many rows on, look-up tables of a library are faster */

static enum xfp_status dequantize(const struct xfp_linear *linear, const struct xfp_matrix_info *matrix, uint64_t first,
				  uint64_t rows, enum xfp_float type, uint8_t *out, struct xfp_error *err)
{
	float *row = malloc(matrix->cols * sizeof *row);
	enum xfp_status status = row ? XFP_OK : xfp_no_memory(err);
	size_t row_bytes = matrix->cols * (type == XFP_FLOAT32 ? 4 : 2);
	struct xfp_matvec w;

	xfp_linear_matrix(linear, matrix->expert, &w);
	/* Row by row; each row is checked for the same outliers that a call for all rows would check. */
	for (uint64_t r = first; !status && r < first + rows; r++, out += row_bytes) {
		if ((status = xfp_linear_decode(linear, matrix->expert, &w, r, 1, row, 0, err)))
			break;
		if (w.mode >= XFP_MATVEC_V2)
			xfp_unscale_row(row, linear->down, matrix->exponent, matrix->cols, row);
		xfp_from_float((int)type, row, matrix->cols, out);
	}
	free(row);
	return status;
}

enum xfp_status xfp_bundle_dequantize(const struct xfp_bundle *bundle, uint32_t number, uint64_t first, uint64_t rows,
				      enum xfp_float type, void *out, struct xfp_error *err)
{
	struct xfp_matrix_info matrix;
	struct xfp_linear linear;
	enum xfp_status status;

	if (!xfp_bundle_matrix(bundle, number, &matrix) || first > matrix.rows || rows > matrix.rows - first)
		return xfp_fail(err, XFP_USAGE, "%s: has no such rows of matrix %" PRIu32, bundle->path, number);
	if (type < XFP_FLOAT32 || type > XFP_BFLOAT16)
		return xfp_fail(err, XFP_USAGE, "%s: unknown type %d", bundle->path, (int)type);
	if (!rows || !matrix.cols)
		return XFP_OK;
	if ((status = xfp_linear_init(&linear, bundle, matrix.unit, rows >= MANY_ROWS, err)))
		return status;
	status = dequantize(&linear, &matrix, first, rows, type, out, err);
	xfp_linear_release(&linear);
	return status;
}
