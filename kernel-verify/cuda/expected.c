/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel-verify/cuda/expected.h"

#include <math.h> /* fabs, fmax and isfinite, which are exact */
#include <stdlib.h>
#include <string.h>

#include "kernel-verify/trial/bound.h"
#include "kernel-verify/trial/reference.h"
#include "kernels/common/number.h"
#include "kernels/common/scale.h"

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

/* v2: the largest entry of the row's codebook; v2c: of the library, times the largest ratio and the row's factor. */
static double largest_entry(const struct xfp_matvec *w, size_t number)
{
	struct xfp_matvec_bound bound;
	double largest = 0;

	if (w->mode == XFP_MATVEC_V2)
		for (size_t j = 0; j < (size_t)1 << w->k; j++)
			largest = fmax(largest, fabs(half_at(w->code, (number << w->k) + j)));
	if (w->mode == XFP_MATVEC_V2C) {
		xfp_matvec_bound_init(&bound, w);
		largest = (double)bound.largest * (0x1p14f * xfp_balance_down(w->row[number]));
	}
	return largest;
}

/* Whether the library may multiply this many vectors with integer kernels. */
static bool in_integers(const struct xfp_matvec *w, size_t cols, size_t count)
{
	return count <= 4 && w->k <= 4 && cols <= 65536 &&
	       (w->mode == XFP_MATVEC_V2 || (w->mode == XFP_MATVEC_V2C && w->group >= 5));
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
	row->entry = largest_entry(w, number);
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
	double sum = 0, size = 0, all = 0, largest = 0, cols = (double)row->cols, off_by;

	for (size_t c = 0; c < row->cols; c++) {
		sum += row->weight[c] * natural[c];
		size += row->size[c] * fabs((double)natural[c]);
		largest = fmax(largest, fabs((double)natural[c]));
		all += fabs((double)natural[c]);
	}
	off_by = (cols / 4 + 64) * 0x1p-24 * size + cols * 0x1p-40 * largest * row->largest;
	if (in_integers(w, row->cols, count))
		off_by += row->entry * ((w->k == 4 ? 0x1p-14 : 0x1p-16) * all + 0x1p-21 * cols * largest);
	*off = off_by * row->unit + 1e-30;
	return sum * row->unit;
}

double xfp_expected_rounding(enum xfp_float type, double size)
{
	return type == XFP_FLOAT32 ? 0 : type == XFP_FLOAT16 ? size * 0x1p-11 + 0x1p-25 : size * 0x1p-8;
}
