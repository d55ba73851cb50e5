/* SPDX-License-Identifier: Apache-2.0 */
#include "moments.h"

#include <math.h> /* sqrt, floor and ceil: exact or correctly rounded */
#include <stdlib.h>

#include "round.h"

void xfp_moments_add(struct xfp_moments *moments, const float *x, size_t count)
{
	moments->count += count;
	while (count) {
		/* 2^14 squares of at most 2^48 fit in 63 bits. */
		size_t run = count < 16384 ? count : 16384;
		int64_t sum = 0, square = 0;

		for (size_t i = 0; i < run; i++) {
			int64_t q = xfp_round_even(x[i] * (float)XFP_Q_PER_X);

			sum += q;
			square += q * q;
		}
		moments->sum += sum;
		moments->square += square;
		x += run;
		count -= run;
	}
}

void xfp_moments_join(struct xfp_moments *moments, const struct xfp_moments *other)
{
	moments->count += other->count;
	moments->sum += other->sum;
	moments->square += other->square;
}

struct xfp_outlier_rule xfp_outlier_rule(const struct xfp_moments *moments, uint32_t sigma_milli)
{
	struct xfp_outlier_rule rule = { 0, 0, INT32_MIN, INT32_MAX };
	xfp_int128 spread = (xfp_int128)moments->count * moments->square - moments->sum * moments->sum;
	double n = (double)moments->count, reach;

	if (!moments->count)
		return rule;
	rule.mean = (double)moments->sum / n;
	if (moments->count > 1)
		rule.sigma = sqrt((double)spread / (n * (n - 1)));
	if (!sigma_milli || rule.sigma == 0)
		return rule;
	reach = rule.sigma * sigma_milli / 1000;
	if (rule.mean + reach < INT32_MAX)
		rule.high = (int32_t)floor(rule.mean + reach);
	if (rule.mean - reach > INT32_MIN)
		rule.low = (int32_t)ceil(rule.mean - reach);
	return rule;
}

size_t xfp_outliers_find(const struct xfp_outlier_rule *rule, const float *x, size_t count, uint64_t first,
			 struct xfp_outlier *found, size_t room)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t q = xfp_round_even(x[i] * (float)XFP_Q_PER_X);

		if (q >= rule->low && q <= rule->high)
			continue;
		if (used < room) {
			found[used].position = first + i;
			found[used].distance = fabs((double)q - rule->mean);
		}
		used++;
	}
	return used;
}

static int compare(const void *left, const void *right)
{
	const struct xfp_outlier *a = left, *b = right;

	if (a->distance != b->distance)
		return a->distance < b->distance ? 1 : -1;
	return a->position < b->position ? -1 : a->position > b->position;
}

void xfp_outliers_sort(struct xfp_outlier *found, size_t count)
{
	if (count > 1) /* qsort must not be given a null array, even an empty one */
		qsort(found, count, sizeof *found, compare);
}
