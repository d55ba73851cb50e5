/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_outliers.h - outliers of many rows are processed together, since most rows have few: first all products,
 * regardless of rows, then the sum of each row. The file that includes it defines
 *
 *     bool outlier_products(w, vector, from, end, product)   products of outliers [from, end); 0 for columns outside
 *                                                            `w`. Returns false if one is outside the whole matrix
 *     double outlier_sum(product, count)
 *     void add_sums(w, first, end, product, y)               add the sum of each row to y, times the unit factor;
 *                                                            `product` begins with row `first`
 *
 * and `product` has room for OUTLIERS_AT_ONCE + 16.
 */
#ifndef XFP_MATVEC_OUTLIERS_H
#define XFP_MATVEC_OUTLIERS_H

#define OUTLIERS_AT_ONCE 512

/* Process a row with any number of outliers. */
static bool long_row(const struct xfp_matvec *w, const struct xfp_matvec_x *x, const struct xfp_outlier_row *at,
		     float *y, size_t stride)
{
	float product[OUTLIERS_AT_ONCE + 16];

	for (unsigned m = 0; m < x->count; m++) {
		double sum = 0;

		for (size_t i = at->first, end; i < at->end; i = end) {
			end = at->end - i < OUTLIERS_AT_ONCE ? at->end : i + OUTLIERS_AT_ONCE;
			if (!outlier_products(w, x->natural + m * w->cols, i, end, product))
				return false;
			sum += outlier_sum(product, end - i);
		}
		y[m * stride] += (float)(sum * w->unit);
	}
	return true;
}

/* Process rows [first, end), whose outliers fit in one batch. */
static bool short_rows(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t end,
		       const struct xfp_outlier_row *all, float *y, size_t stride)
{
	float product[OUTLIERS_AT_ONCE + 16];

	for (unsigned m = 0; m < x->count; m++) {
		if (!outlier_products(w, x->natural + m * w->cols, all->first, all->end, product))
			return false;
		add_sums(w, first, end, product, y + m * stride);
	}
	return true;
}

static bool grouped_outliers(const struct xfp_matvec *w, const struct xfp_matvec_x *x, size_t first, size_t rows,
			     float *y, size_t stride)
{
	const struct xfp_outlier_rows *o = &w->outliers;
	struct xfp_outlier_row at;

	if (o->listed)
		return xfp_matvec_outliers(w, x, first, rows, y, stride);
	for (size_t r = first, next; r < first + rows; r = next) {
		struct xfp_outlier_row all;

		if (!xfp_outlier_rows_of(o, r, &all))
			return false;
		if (all.end - all.first > OUTLIERS_AT_ONCE) {
			next = r + 1;
			if (!long_row(w, x, &all, y + (r - first), stride))
				return false;
			continue;
		}
		for (next = r + 1; next < first + rows; next++) {
			if (!xfp_outlier_rows_of(o, next, &at))
				return false;
			if (at.end - all.first > OUTLIERS_AT_ONCE)
				break;
			all.end = at.end;
		}
		if (!short_rows(w, x, r, next, &all, y + (r - first), stride))
			return false;
	}
	return true;
}

#endif
