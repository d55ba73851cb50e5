/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/encode/moments.h"

#include <math.h> /* sqrt, floor and ceil: exact or correctly rounded */
#include <string.h>

#include "kernels/common/round.h"
#include "kernels/encode/encode.h"

#define RUN (1u << 14) /* columns; the sum of their squares, at most 2^48 each, fits in 63 bits */

size_t xfp_moments_and_outliers(struct xfp_moments *moments, const struct xfp_outlier_rule *rule, const float *x,
				size_t cols, uint32_t *column)
{
	size_t found = 0;

	moments->count += cols;
	for (size_t first = 0; first < cols; first += RUN) {
		int64_t sum, square;
		size_t end = found + xfp_encoder()->rows->survey(x + first, cols - first < RUN ? cols - first : RUN,
								 rule->low, rule->high, column + found, &sum, &square);

		for (; found < end; found++)
			column[found] += (uint32_t)first;
		moments->sum += sum;
		moments->square += square;
	}
	return found;
}

void xfp_moments_add(struct xfp_moments *moments, const float *x, size_t cols)
{
	static const struct xfp_outlier_rule none = { .low = INT32_MIN, .high = INT32_MAX };
	uint32_t column[1];

	xfp_moments_and_outliers(moments, &none, x, cols, column);
}

size_t xfp_outliers_find(const struct xfp_outlier_rule *rule, const float *x, size_t cols, uint32_t *column)
{
	struct xfp_moments moments = { 0 };

	return xfp_moments_and_outliers(&moments, rule, x, cols, column);
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

int32_t xfp_q_of(float x)
{
	return (int32_t)xfp_round_even(x * (float)XFP_Q_PER_X);
}

#define DIGIT 11 /* bits; six digits cover 64 bits */
#define DIGITS 6

/* A key that increases as the distance decreases: positive doubles compare like their bits. */
static uint64_t key_of(double mean, xfp_outlier outlier)
{
	double distance = fabs(xfp_outlier_q(outlier) - mean);
	uint64_t bits;

	memcpy(&bits, &distance, sizeof bits);
	return ~bits;
}

/* Radix sort, lowest digit first; a digit that all keys share is skipped. */
void xfp_outliers_sort(double mean, xfp_outlier *found, size_t count, xfp_outlier *buffer)
{
	xfp_outlier *from = found, *to = buffer, *swap;
	uint64_t all = UINT64_MAX, any = 0;

	for (size_t i = 0; i < count; i++) {
		all &= key_of(mean, found[i]);
		any |= key_of(mean, found[i]);
	}
	for (int digit = 0; digit < DIGITS; digit++) {
		const unsigned shift = (unsigned)digit * DIGIT, mask = (1u << DIGIT) - 1;
		size_t next[1u << DIGIT] = { 0 }, place = 0;

		if (!((all ^ any) >> shift & mask))
			continue;
		for (size_t i = 0; i < count; i++)
			next[key_of(mean, from[i]) >> shift & mask]++;
		for (unsigned value = 0; value <= mask; value++) {
			size_t size = next[value];

			next[value] = place;
			place += size;
		}
		for (size_t i = 0; i < count; i++)
			to[next[key_of(mean, from[i]) >> shift & mask]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
	if (from != found)
		memcpy(found, from, count * sizeof *found);
}
