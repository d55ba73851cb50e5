/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outlier_rows.h - a matrix's outliers as they are stored (schemas/layout/bundle_layout.h), row by row.
 *
 * Nothing in them is trusted: what a row is said to have is checked when it is asked for, and that a list holds no
 * other rows when the last one was.
 */
#ifndef XFP_OUTLIER_ROWS_H
#define XFP_OUTLIER_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct xfp_outlier_rows {
	const uint8_t *row; /* uint32 [rows + 1]: where each row's begin; listed: uint32 [count], the row of each */
	const uint8_t *column, *residual; /* [count], uint16 or uint32, and fp16; nothing is aligned */
	size_t rows, cols;                /* of the matrix */
	uint32_t count;                   /* 0: the pointers may be NULL */
	bool listed;
	bool wide; /* columns are uint32 */
};

/* Which ones a row has: numbers [first, end). */
struct xfp_outlier_row {
	uint32_t first, end;
};

/* Before rows from `row` on are asked for, in their order. */
void xfp_outlier_rows_begin(const struct xfp_outlier_rows *o, size_t row, struct xfp_outlier_row *at);

/* The row's where they are not listed. False when they are none that a row can have. */
static inline bool xfp_outlier_rows_of(const struct xfp_outlier_rows *o, size_t row, struct xfp_outlier_row *at)
{
	uint32_t bounds[2];

	memcpy(bounds, o->row + row * 4, sizeof bounds);
	at->first = bounds[0];
	at->end = bounds[1];
	return at->first <= at->end && at->end <= o->count && (row || !at->first) &&
	       (row + 1 != o->rows || at->end == o->count);
}

/* The next row's, which is `row`. False when they are none that a row can have. */
bool xfp_outlier_rows_next(const struct xfp_outlier_rows *o, size_t row, struct xfp_outlier_row *at);

/* After the last row that was asked for, `end` - 1: false when a list is not in the order of its rows, or has rows that
 * are not there. */
bool xfp_outlier_rows_end(const struct xfp_outlier_rows *o, size_t end, const struct xfp_outlier_row *at);

uint32_t xfp_outlier_column(const struct xfp_outlier_rows *o, uint32_t number);

/* Add a row's to its scaled weights, in f32: columns [first, first + cols) of it. False, and nothing is done, when
 * columns are not within the matrix or not ascending. */
bool xfp_outlier_rows_add(const struct xfp_outlier_rows *o, const struct xfp_outlier_row *at, float *x, size_t first,
			  size_t cols);

/* sum[m] += a row's outliers times vector m. Vectors are `cols` apart and stand for the matrix's columns from `first`
 * on; other columns do not count. False when columns are not within the matrix. */
bool xfp_outlier_rows_dot(const struct xfp_outlier_rows *o, const struct xfp_outlier_row *at, const float *vectors,
			  unsigned count, size_t first, size_t cols, double *sum);

#endif
