/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/encode/cosine.h"

#include <math.h> /* sqrt, which IEEE 754 rounds correctly, and exact functions */
#include <string.h>

#include "kernels/common/scale.h"
#include "kernels/encode/encode.h"

struct xfp_row_error xfp_row_result(double norm, struct xfp_row_sums sums)
{
	struct xfp_row_error result = { .error = sums.error, .norm = norm };

	if (norm == 0 || sums.square == 0)
		result.cosine = norm == sums.square;
	else if (sums.error == 0)
		result.cosine = 1;
	else
		result.cosine = (norm + sums.square - sums.error) / 2 / (sqrt(norm) * sqrt(sums.square));
	if (!(result.cosine >= -1)) /* f32 overflowed */
		result.cosine = -1;
	if (result.cosine > 1)
		result.cosine = 1;
	return result;
}

/* Return the power of two that puts the largest |w| in [1, 2), or the nearest that f32 can represent. */
static float unit_of(const float *w, size_t cols)
{
	float largest = 0;
	int exponent;

	for (size_t c = 0; c < cols; c++) {
		float magnitude = fabsf(w[c]);

		largest = magnitude > largest ? magnitude : largest;
	}
	frexpf(largest, &exponent);
	return xfp_exp2i(1 - exponent < 126 ? 1 - exponent : 126);
}

struct xfp_row_error xfp_row_compare(const float *w, const float *r, size_t cols)
{
	float unit = unit_of(w, cols);
	struct xfp_row_sums sums = xfp_encoder()->rows->compare(w, r, unit, cols);
	double back = 1 / ((double)unit * unit);

	sums.error *= back;
	sums.square *= back;
	return xfp_row_result(xfp_encoder()->rows->norm(w, cols), sums);
}

/* Map doubles to integers of the same order, and back. */
static uint64_t key_of(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	return bits >> 63 ? ~bits : bits | 1ull << 63;
}

static double value_of(uint64_t key)
{
	uint64_t bits = key >> 63 ? key & INT64_MAX : ~key;
	double value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

/* Return the size of the next digit: a full one, or the remaining bits. */
static unsigned digit_bits(const struct xfp_summary *summary)
{
	return summary->known + XFP_SUMMARY_DIGIT <= 64 ? XFP_SUMMARY_DIGIT : 64 - summary->known;
}

void xfp_summary_begin(struct xfp_summary *summary, uint64_t count)
{
	memset(summary, 0, sizeof *summary);
	summary->median = summary->p5 = 1;
	if (!count) {
		summary->known = 64;
		return;
	}
	summary->rank[0] = (count - 1) / 2;
	/* Nearest rank: the smallest value that at least 5 % of the values do not exceed. */
	summary->rank[1] = (count * 5 + 99) / 100 - 1;
}

void xfp_summary_add(struct xfp_summary *summary, const double *cosine, size_t n)
{
	unsigned bits = digit_bits(summary), shift = 64 - summary->known - bits;
	uint64_t mask = (1u << bits) - 1;

	for (size_t i = 0; i < n; i++) {
		uint64_t key = key_of(cosine[i]) >> shift;

		for (int which = 0; which < 2; which++)
			if (key >> bits == summary->prefix[which])
				summary->count[which][key & mask]++;
	}
}

void xfp_summary_narrow(struct xfp_summary *summary)
{
	unsigned bits = digit_bits(summary);

	for (int which = 0; which < 2; which++) {
		uint64_t digit = 0;

		while (summary->rank[which] >= summary->count[which][digit])
			summary->rank[which] -= summary->count[which][digit++];
		summary->prefix[which] = summary->prefix[which] << bits | digit;
	}
	memset(summary->count, 0, sizeof summary->count);
	summary->known += bits;
	if (summary->known == 64) {
		summary->median = value_of(summary->prefix[0]);
		summary->p5 = value_of(summary->prefix[1]);
	}
}

bool xfp_summary_done(const struct xfp_summary *summary)
{
	return summary->known == 64;
}

void xfp_cosine_summary(const double *cosine, size_t count, double *median, double *p5)
{
	struct xfp_summary summary;

	for (xfp_summary_begin(&summary, count); !xfp_summary_done(&summary); xfp_summary_narrow(&summary))
		xfp_summary_add(&summary, cosine, count);
	*median = summary.median;
	*p5 = summary.p5;
}
