/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.h - a matrix in blocks of rows, as f32: how every stage walks through weights.
 *
 *     status = xfp_rows_open(&source, &rows, err);
 *     while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count)
 *         ... rows.w[rows.count][cols], rows rows.first and on; rows.raw: the same in the source dtype
 *     xfp_rows_close(&rows);
 *
 * A block takes a few MiB whatever the matrix, so that memory does not grow with it.
 */
#ifndef XFP_ROWS_H
#define XFP_ROWS_H

#include "checkpoint.h"

struct xfp_rows {
	uint64_t first, count; /* of the current block; count 0 after the last */
	uint64_t rows, cols;
	uint64_t block; /* rows in a full block: a multiple of 64, or all */
	void *raw;
	float *w;
	size_t element; /* bytes of a source element */
	enum xfp_dtype dtype;
	struct xfp_matrix_reader *reader;
};

enum xfp_status xfp_rows_open(const struct xfp_matrix_source *source, struct xfp_rows *rows, struct xfp_error *err);
enum xfp_status xfp_rows_next(struct xfp_rows *rows, struct xfp_error *err);
/* The most rows that a block of this matrix has. */
uint64_t xfp_rows_block(const struct xfp_matrix_source *source);
void xfp_rows_close(struct xfp_rows *rows); /* safe twice, and on a zeroed struct */

#endif
