/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/verify/cuda/expected.h"

#include <math.h> /* fabs, fmax and isfinite, which are exact */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/verify/matvec.h"
#include "kernels/verify/reference.h"

static double half_at(const void *from, size_t number)
{
	uint16_t half;

	memcpy(&half, (const uint8_t *)from + number * 2, sizeof half);
	return xfp_half_to_float(half);
}

static void add_outliers(const struct xfp_matvec *w, size_t number, size_t first, struct xfp_expected_row *row)
{
	const struct xfp_outlier_rows *o = &w->outliers;
	struct xfp_outlier_row at;

	xfp_outlier_rows_begin(o, number, &at);
	if (!o->count || !xfp_outlier_rows_next(o, number, &at))
		return;
	for (uint32_t i = at.first; i < at.end; i++) {
		size_t c = xfp_outlier_column(o, i);
		double residual = half_at(o->residual, i);

		if (c < first || c - first >= row->cols)
			continue;
		row->weight[c - first] += residual;
		row->size[c - first] += fabs(residual);
	}
}

void xfp_expected_row(const struct xfp_matvec *w, size_t number, size_t first, struct xfp_expected_row *row)
{
	float *stored = malloc(w->cols * sizeof *stored);

	if (!stored)
		abort();
	xfp_matvec_reference_row(w, number, stored);
	row->unit = w->unit;
	row->holds = xfp_matvec_bound_holds(w, number);
	row->largest = 0;
	for (size_t c = 0; c < row->cols; c++) {
		double value = stored[first + c], midpoint = 0;

		if (w->mode == XFP_MATVEC_V2A)
			midpoint = half_at(w->pair, 2 * (number * w->row_groups + ((first + c) >> w->group)) + 1);
		row->weight[c] = value;
		row->size[c] = fabs(value - midpoint) + fabs(midpoint);
	}
	free(stored);
	add_outliers(w, number, first, row);
	for (size_t c = 0; c < row->cols; c++)
		row->largest = fmax(row->largest, fmax(row->size[c], fabs(row->weight[c])));
}

double xfp_expected_product(const struct xfp_expected_row *row, const struct xfp_matvec *w, const float *natural,
			    size_t count, double *off)
{
	double sum = 0, size = 0, largest = 0, cols = (double)row->cols;

	(void)w, (void)count; /* one bound for all modes and numbers of vectors */
	for (size_t c = 0; c < row->cols; c++) {
		sum += row->weight[c] * natural[c];
		size += row->size[c] * fabs((double)natural[c]);
		largest = fmax(largest, fabs((double)natural[c]));
	}
	*off = ((cols / 4 + 64) * 0x1p-24 * size + cols * 0x1p-40 * largest * row->largest) * row->unit + 1e-30;
	return sum * row->unit;
}

double xfp_expected_rounding(enum xfp_float type, double size)
{
	return type == XFP_FLOAT32 ? 0 : type == XFP_FLOAT16 ? size * 0x1p-11 + 0x1p-25 : size * 0x1p-8;
}
