/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outlier_rows.h - access to a matrix's stored outliers (schemas/layout/bundle_layout.h), row by row.
 *
 * The data is untrusted. The range of a row is checked when the row is requested. After the last row, a check finds
 * listed outliers of rows that do not exist.
 */
#ifndef XFP_OUTLIER_ROWS_H
#define XFP_OUTLIER_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct xfp_outlier_rows {
	const uint8_t *row; /* uint32 [rows + 1]: start of each row; if listed: uint32 [count], row of each */
	const uint8_t *column, *residual; /* [count], uint16 or uint32, and fp16; unaligned */
	size_t rows, cols;                /* shape of the matrix */
	uint32_t count;                   /* 0: the pointers may be NULL */
	bool listed;
	bool wide; /* columns are uint32 */
};

/* The outliers of a row: numbers [first, end). */
struct xfp_outlier_row {
	uint32_t first, end;
};

/* Start a pass at `row`; rows are then requested in order. */
void xfp_outlier_rows_begin(const struct xfp_outlier_rows *o, size_t row, struct xfp_outlier_row *at);

/* Get the range of a row of outliers that are not listed. Returns false if it is invalid. */
static inline bool xfp_outlier_rows_of(const struct xfp_outlier_rows *o, size_t row, struct xfp_outlier_row *at)
{
	uint32_t bounds[2];

	memcpy(bounds, o->row + row * 4, sizeof bounds);
	at->first = bounds[0];
	at->end = bounds[1];
	return at->first <= at->end && at->end <= o->count && (row || !at->first) &&
	       (row + 1 != o->rows || at->end == o->count);
}

/* Get the range of the next row, `row`. Returns false if it is invalid. */
bool xfp_outlier_rows_next(const struct xfp_outlier_rows *o, size_t row, struct xfp_outlier_row *at);

/* End a pass after row `end` - 1. Returns false if a list is not ordered by row, or has rows that do not exist. */
bool xfp_outlier_rows_end(const struct xfp_outlier_rows *o, size_t end, const struct xfp_outlier_row *at);

uint32_t xfp_outlier_column(const struct xfp_outlier_rows *o, uint32_t number);

/* Return whether the columns of a row's outliers are within the matrix and ascending. */
bool xfp_outlier_rows_ascend(const struct xfp_outlier_rows *o, const struct xfp_outlier_row *at);

/* Add the outliers of a row to its scaled weights, in f32, for columns [first, first + cols). Returns false, and
 * changes nothing, if columns are outside the matrix or not ascending. */
bool xfp_outlier_rows_add(const struct xfp_outlier_rows *o, const struct xfp_outlier_row *at, float *x, size_t first,
			  size_t cols);

/* The same for columns that are decoded from left to right, if xfp_outlier_rows_ascend was true: those added, and those
 * before `first`, are removed from `at`. */
void xfp_outlier_rows_add_next(const struct xfp_outlier_rows *o, struct xfp_outlier_row *at, float *x, size_t first,
			       size_t cols);

/* Add a row's outliers times vector m to sum[m]. Vectors are `cols` elements apart and begin at column `first` of the
 * matrix; outliers in other columns are skipped. Returns false if columns are outside the matrix. */
bool xfp_outlier_rows_dot(const struct xfp_outlier_rows *o, const struct xfp_outlier_row *at, const float *vectors,
			  unsigned count, size_t first, size_t cols, double *sum);

#endif
