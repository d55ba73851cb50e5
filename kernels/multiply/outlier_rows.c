/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/multiply/outlier_rows.h"

#include <string.h>

#include "kernels/common/number.h"

static uint32_t load32(const uint8_t *from, size_t number)
{
	uint32_t value;

	memcpy(&value, from + number * 4, sizeof value);
	return value;
}

static uint16_t load16(const uint8_t *from, size_t number)
{
	uint16_t value;

	memcpy(&value, from + number * 2, sizeof value);
	return value;
}

/* Return how many outliers of an ordered list are in rows before this one; for an unordered list any number up to the
 * count. */
static uint32_t listed_before(const struct xfp_outlier_rows *o, size_t row)
{
	uint32_t low = 0, high = o->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (load32(o->row, middle) < row)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void xfp_outlier_rows_begin(const struct xfp_outlier_rows *o, size_t row, struct xfp_outlier_row *at)
{
	at->first = at->end = o->listed && row ? listed_before(o, row) : 0;
}

bool xfp_outlier_rows_ascend(const struct xfp_outlier_rows *o, const struct xfp_outlier_row *at)
{
	for (uint32_t i = at->first; i < at->end; i++)
		if (xfp_outlier_column(o, i) >= o->cols ||
		    (i > at->first && xfp_outlier_column(o, i) <= xfp_outlier_column(o, i - 1)))
			return false;
	return true;
}

bool xfp_outlier_rows_next(const struct xfp_outlier_rows *o, size_t row, struct xfp_outlier_row *at)
{
	if (!o->count)
		return true;
	if (!o->listed)
		return xfp_outlier_rows_of(o, row, at);
	at->first = at->end;
	while (at->end < o->count && load32(o->row, at->end) == row)
		at->end++;
	return true;
}

bool xfp_outlier_rows_end(const struct xfp_outlier_rows *o, size_t end, const struct xfp_outlier_row *at)
{
	return !o->listed || at->end == (end < o->rows ? listed_before(o, end) : o->count);
}

uint32_t xfp_outlier_column(const struct xfp_outlier_rows *o, uint32_t number)
{
	return o->wide ? load32(o->column, number) : load16(o->column, number);
}

bool xfp_outlier_rows_add(const struct xfp_outlier_rows *o, const struct xfp_outlier_row *at, float *x, size_t first,
			  size_t cols)
{
	if (!xfp_outlier_rows_ascend(o, at))
		return false;
	for (uint32_t i = at->first; i < at->end; i++) {
		size_t c = xfp_outlier_column(o, i) - first; /* wraps to a value beyond the last column */

		if (c < cols)
			x[c] += xfp_half_to_float(load16(o->residual, i));
	}
	return true;
}

void xfp_outlier_rows_add_next(const struct xfp_outlier_rows *o, struct xfp_outlier_row *at, float *x, size_t first,
			       size_t cols)
{
	for (; at->first < at->end; at->first++) {
		size_t c = xfp_outlier_column(o, at->first);

		if (c >= first + cols)
			break;
		if (c >= first)
			x[c - first] += xfp_half_to_float(load16(o->residual, at->first));
	}
}

bool xfp_outlier_rows_dot(const struct xfp_outlier_rows *o, const struct xfp_outlier_row *at, const float *vectors,
			  unsigned count, size_t first, size_t cols, double *sum)
{
	for (uint32_t i = at->first; i < at->end; i++) {
		uint32_t column = xfp_outlier_column(o, i);
		size_t c = column - first; /* wraps to a value beyond the last column */
		float residual = xfp_half_to_float(load16(o->residual, i));

		if (column >= o->cols)
			return false;
		for (unsigned m = 0; c < cols && m < count; m++)
			sum[m] += (double)residual * vectors[m * cols + c];
	}
	return true;
}
