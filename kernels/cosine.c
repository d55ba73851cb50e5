/* SPDX-License-Identifier: Apache-2.0 */
#include "cosine.h"

#include <math.h> /* sqrt alone, which IEEE 754 rounds correctly */

#define LANES 16

static double fold(const double lane[LANES])
{
	double sum[LANES / 2];

	for (int i = 0; i < 8; i++)
		sum[i] = lane[i] + lane[i + 8];
	for (int i = 0; i < 4; i++)
		sum[i] = sum[i] + sum[i + 4];
	return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

struct xfp_row_error xfp_row_compare(const float *w, const float *r, size_t cols)
{
	double dot[LANES] = { 0 }, ww[LANES] = { 0 }, rr[LANES] = { 0 }, dd[LANES] = { 0 };
	struct xfp_row_error result;
	double product, norm, square;
	size_t c = 0;

	for (; c + LANES <= cols; c += LANES) {
		for (int i = 0; i < LANES; i++) {
			double a = w[c + i], b = r[c + i], d = a - b;

			dot[i] += a * b;
			ww[i] += a * a;
			rr[i] += b * b;
			dd[i] += d * d;
		}
	}
	for (int i = 0; c < cols; c++, i++) {
		double a = w[c], b = r[c], d = a - b;

		dot[i] += a * b;
		ww[i] += a * a;
		rr[i] += b * b;
		dd[i] += d * d;
	}
	product = fold(dot);
	norm = fold(ww);
	square = fold(rr);
	result.error = fold(dd);
	result.norm = norm;
	if (norm == 0 || square == 0)
		result.cosine = norm == square;
	else
		result.cosine = product / (sqrt(norm) * sqrt(square));
	return result;
}

/* The element of rank `rank` moves to its place, smaller ones before it (quickselect). */
static double select_rank(double *value, size_t count, size_t rank)
{
	size_t low = 0, high = count - 1;

	while (low < high) {
		double pivot = value[low + (high - low) / 2];
		size_t i = low, j = high;

		for (;;) {
			while (value[i] < pivot)
				i++;
			while (pivot < value[j])
				j--;
			if (i >= j)
				break;
			double swap = value[i];
			value[i++] = value[j];
			value[j--] = swap;
		}
		if (rank <= j)
			high = j;
		else
			low = j + 1;
	}
	return value[rank];
}

void xfp_cosine_summary(double *cosine, size_t count, double *median, double *p5)
{
	*median = *p5 = 1;
	if (!count)
		return;
	*median = select_rank(cosine, count, (count - 1) / 2);
	/* Nearest rank: the least value that at least 5 % of the values do not exceed. */
	*p5 = select_rank(cosine, count, (count * 5 + 99) / 100 - 1);
}
