/* SPDX-License-Identifier: Apache-2.0 */
#include "cosine.h"

#include <math.h> /* sqrt alone, which IEEE 754 rounds correctly */

#include "encode.h"
#include "scale.h"

double xfp_row_norm(const float *w, size_t cols)
{
	return xfp_encoder()->norm(w, cols);
}

static struct xfp_row_error compare(const float *w, double norm, const float *value, const float *down, float factor,
				    size_t cols)
{
	struct xfp_row_sums sums = xfp_encoder()->compare(w, value, down, factor, cols);
	struct xfp_row_error result = { .error = norm - 2 * sums.dot + sums.square, .norm = norm };

	/* Rounding may leave a little less than nothing; what is no number stays. */
	if (result.error < 0)
		result.error = 0;
	if (norm == 0 || sums.square == 0)
		result.cosine = norm == sums.square;
	else
		result.cosine = sums.dot / (sqrt(norm) * sqrt(sums.square));
	return result;
}

struct xfp_row_error xfp_row_compare(const float *w, const float *r, size_t cols)
{
	return compare(w, xfp_row_norm(w, cols), r, NULL, 1, cols);
}

struct xfp_row_error xfp_row_compare_scaled(const float *w, double norm, const float *value, const float *down,
					    int exponent, size_t cols)
{
	return compare(w, norm, value, down, xfp_exp2i(-exponent), cols);
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
