/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_rows.h - rows of a matrix in a packed tensor. Private to checkpoints/.
 *
 * The strides of the matrix's view, combined with the layout of stored rows in the tensor, give its stored rows: a
 * matrix of experts that are stored by output is read without transposing it twice.
 */
#ifndef XFP_PACKED_ROWS_H
#define XFP_PACKED_ROWS_H

#include "checkpoints/checkpoint.h"

struct xfp_packed_rows; /* one thread at a time */

/* Open a source with a recipe; parameters as xfp_matrix_open. XFP_BAD_INPUT if neither rows nor columns are stored
 * rows. */
enum xfp_status xfp_packed_rows_open(const struct xfp_matrix_source *source, struct xfp_packed_rows **out,
				     struct xfp_error *err);
void xfp_packed_rows_close(struct xfp_packed_rows *rows); /* NULL is fine */

/* Read rows [first, first + count), which must exist, as xfp_matrix_read. */
enum xfp_status xfp_packed_rows_read(struct xfp_packed_rows *rows, uint64_t first, uint64_t count, void *buf,
				     struct xfp_error *err);

/* Return the minimum rows to read at a time, as xfp_decoder_rows. */
uint64_t xfp_packed_rows_block(const struct xfp_matrix_source *source);
/* Return whether rows of the matrix are columns of stored rows. */
bool xfp_packed_rows_transposed(const struct xfp_matrix_source *source);
/* Return the maximum memory for reading. */
uint64_t xfp_packed_rows_bytes(const struct xfp_matrix_source *source);

#endif
