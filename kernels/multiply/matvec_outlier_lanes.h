/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_outlier_lanes.h - matvec_outliers.h on the sixteen lanes of matvec_lanes.h: residuals are converted sixteen at
 * once, and multiplied one by one.
 */
#ifndef XFP_MATVEC_OUTLIER_LANES_H
#define XFP_MATVEC_OUTLIER_LANES_H

#include "kernels/multiply/matvec_lanes.h"

/* `product` contains the residuals. */
INLINE bool multiply_outliers(bool wide, const struct xfp_matvec *w, const float *vector, size_t from, size_t count,
			      float *product)
{
	const uint8_t *at = w->outliers.column + from * (wide ? 4 : 2);
	bool inside = true;

	for (size_t i = 0; i < count; i++) {
		uint16_t narrow;
		uint32_t column;
		size_t c;

		if (wide) {
			memcpy(&column, at + 4 * i, sizeof column);
		} else {
			memcpy(&narrow, at + 2 * i, sizeof narrow);
			column = narrow;
		}
		c = column - w->first_column; /* wraps to a value beyond the last column */
		inside &= column < w->outliers.cols;
		product[i] = c < w->cols ? product[i] * vector[c] : 0;
	}
	return inside;
}

static bool outlier_products(const struct xfp_matvec *w, const float *vector, size_t from, size_t end, float *product)
{
	const uint8_t *residual = w->outliers.residual + from * 2;
	size_t count = end - from, i = 0;
	uint8_t last[32] = { 0 };

	for (; i + 16 <= count; i += 16)
		vf_store(product + i, stored_numbers(XFP_MATVEC_F16, residual + 2 * i));
	memcpy(last, residual + 2 * i, 2 * (count - i));
	vf_store(product + i, stored_numbers(XFP_MATVEC_F16, last));
	return w->outliers.wide ? multiply_outliers(true, w, vector, from, count, product)
				: multiply_outliers(false, w, vector, from, count, product);
}

INLINE double outlier_sum(const float *product, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += (double)product[i];
	return sum;
}

static void add_sums(const struct xfp_matvec *w, size_t first, size_t end, const float *product, float *y)
{
	for (size_t r = first; r < end; r++) {
		struct xfp_outlier_row at;

		xfp_outlier_rows_of(&w->outliers, r, &at);
		y[r - first] += (float)(outlier_sum(product, at.end - at.first) * w->unit);
		product += at.end - at.first;
	}
}

#include "kernels/multiply/matvec_outliers.h"

#define FEW_VECTORS 2 /* for more, reading each outlier once is faster */

static bool add_outliers(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows, float *y,
			 size_t stride)
{
	return (x->count <= FEW_VECTORS ? grouped_outliers : xfp_matvec_outliers)(w, x, first, rows, y, stride);
}

#endif
