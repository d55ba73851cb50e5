/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_rows.h - rows of a matrix in a packed tensor. Private to checkpoints/.
 *
 * The strides of the matrix's view and the way that stored rows lie in the tensor make up where its rows are stored: a
 * matrix of experts that are published by output is read without being turned twice.
 */
#ifndef XFP_PACKED_ROWS_H
#define XFP_PACKED_ROWS_H

#include "checkpoints/checkpoint.h"

struct xfp_packed_rows; /* one thread at a time */

/* As xfp_matrix_open, of a source that has a recipe. A view whose rows and columns are neither is XFP_BAD_INPUT. */
enum xfp_status xfp_packed_rows_open(const struct xfp_matrix_source *source, struct xfp_packed_rows **out,
				     struct xfp_error *err);
void xfp_packed_rows_close(struct xfp_packed_rows *rows); /* NULL is fine */

/* Rows [first, first + count), as xfp_matrix_read; all are there. */
enum xfp_status xfp_packed_rows_read(struct xfp_packed_rows *rows, uint64_t first, uint64_t count, void *buf,
				     struct xfp_error *err);

/* Rows to read at a time, at least: as xfp_decoder_rows. */
uint64_t xfp_packed_rows_block(const struct xfp_matrix_source *source);
/* Whether rows of the matrix are columns of stored rows. */
bool xfp_packed_rows_turned(const struct xfp_matrix_source *source);
/* The most memory that reading takes. */
uint64_t xfp_packed_rows_bytes(const struct xfp_matrix_source *source);

#endif
