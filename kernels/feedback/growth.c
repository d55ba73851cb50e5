/* SPDX-License-Identifier: Apache-2.0 */
/* The error that feedback results in, predicted from R alone; and the squares of outputs. */
#include <string.h>

#include "kernels/feedback/feedback.h"

#define LANES ((size_t)XFP_LANES)

/* Add the products of row c of a triangle with the elements before c of sixteen rows, in order. */
static void add_before(const float *triangle, size_t padded, size_t c, const float *x, double sum[XFP_LANES])
{
	for (size_t first = 0; first < c; first += LANES) {
		const float *row = triangle + xfp_triangle_at(padded, c, first);
		const size_t count = c - first < LANES ? c - first : LANES;

		for (size_t j = 0; j < count; j++, x += LANES)
			for (size_t lane = 0; lane < LANES; lane++)
				sum[lane] += (double)row[j] * x[lane];
	}
}

/* Sixteen pseudorandom bits for a column (splitmix64). */
static uint64_t signs_of(uint64_t column)
{
	uint64_t bits = (column + 1) * 0x9e3779b97f4a7c15u;

	bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
	bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
	return bits ^ bits >> 31;
}

struct xfp_feedback_growth xfp_feedback_growth(const struct xfp_feedback *f, float *x)
{
	struct xfp_feedback_growth growth = { 0 };
	double squares[XFP_LANES] = { 0 };

	for (size_t c = 0; c < f->padded; c++) {
		const uint64_t signs = signs_of(c);
		float *own = x + c * LANES;
		double sum[XFP_LANES] = { 0 };

		memset(own, 0, LANES * sizeof *own);
		if (f->column[c] >= f->cols)
			continue;
		add_before(f->factor, f->padded, c, x, sum);
		for (size_t lane = 0; lane < LANES; lane++) {
			own[lane] = (float)((signs >> lane & 1 ? 1 : -1) - sum[lane]);
			squares[lane] += (double)own[lane] * own[lane];
		}
		growth.outputs += (double)f->pivot[c] * f->pivot[c];
	}
	for (size_t lane = 0; lane < LANES; lane++)
		growth.weights += squares[lane] / (double)LANES;
	growth.outputs -= XFP_FEEDBACK_DAMPING * growth.weights;
	return growth;
}

void xfp_feedback_norms(const struct xfp_feedback *f, const float *tile, double out[XFP_LANES])
{
	double damping[XFP_LANES] = { 0 };

	memset(out, 0, LANES * sizeof *out);
	for (size_t c = 0; c < f->padded; c++) {
		const float *own = tile + c * LANES;
		double sum[XFP_LANES] = { 0 };

		add_before(f->h, f->padded, c, tile, sum);
		for (size_t lane = 0; lane < LANES; lane++) {
			const float v = (float)(2 * sum[lane] + (double)f->diagonal[c] * own[lane]);

			out[lane] += (double)own[lane] * v;
			damping[lane] += (double)own[lane] * own[lane];
		}
	}
	for (size_t lane = 0; lane < LANES; lane++)
		out[lane] -= XFP_FEEDBACK_DAMPING * damping[lane];
}
