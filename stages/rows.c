/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "number.h"

#define BLOCK_BYTES (2u << 20) /* of f32 */

uint64_t xfp_rows_block(const struct xfp_matrix_source *source)
{
	uint64_t element = xfp_dtype_bits(source->dtype) / 8;
	uint64_t block = xfp_align(xfp_matrix_block_rows(source, BLOCK_BYTES / sizeof(float) * element), 64);

	return block < source->view.rows ? block : source->view.rows;
}

enum xfp_status xfp_rows_open(const struct xfp_matrix_source *source, struct xfp_rows *rows, struct xfp_error *err)
{
	enum xfp_status status;

	memset(rows, 0, sizeof *rows);
	rows->rows = source->view.rows;
	rows->cols = source->view.cols;
	rows->dtype = source->dtype;
	rows->element = xfp_dtype_bits(source->dtype) / 8;
	rows->block = xfp_rows_block(source);
	status = xfp_matrix_open(source, &rows->reader, err);
	if (status)
		return status;
	rows->raw = malloc(rows->block * rows->cols * rows->element);
	rows->w = malloc(rows->block * rows->cols * sizeof *rows->w);
	if (!rows->raw || !rows->w) {
		xfp_rows_close(rows);
		return xfp_fail(err, XFP_FAILED, "out of memory for a block of %s", source->tensor);
	}
	return XFP_OK;
}

enum xfp_status xfp_rows_next(struct xfp_rows *rows, struct xfp_error *err)
{
	uint64_t left;
	enum xfp_status status;

	rows->first += rows->count;
	left = rows->rows - rows->first;
	rows->count = left < rows->block ? left : rows->block;
	if (!rows->count)
		return XFP_OK;
	status = xfp_matrix_read(rows->reader, rows->first, rows->count, rows->raw, err);
	if (!status)
		xfp_to_float(rows->dtype, rows->raw, rows->count * rows->cols, rows->w);
	return status;
}

void xfp_rows_close(struct xfp_rows *rows)
{
	xfp_matrix_close(rows->reader);
	free(rows->raw);
	free(rows->w);
	memset(rows, 0, sizeof *rows);
}
