/* SPDX-License-Identifier: Apache-2.0 */
/* Second moments of inputs. */
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/feedback/feedback_set.h"

#define PANEL ((size_t)XFP_LANES)

static size_t panels_of(size_t cols)
{
	return (cols + PANEL - 1) / PANEL;
}

/* A panel of f64, then all panels of f32: each input's sixteen columns, then the next input's. */
size_t xfp_feedback_moments_scratch(size_t cols)
{
	return (2 + panels_of(cols)) * XFP_FEEDBACK_INPUTS * PANEL;
}

static void load_panels(const uint16_t *x, size_t stride, size_t rows, size_t cols, size_t end, float *to)
{
	for (size_t first = 0; first < end * PANEL; first += PANEL) {
		const size_t count = cols - first < PANEL ? cols - first : PANEL;

		for (size_t r = 0; r < rows; r++, to += PANEL) {
			for (size_t i = 0; i < count; i++)
				to[i] = xfp_bf16_to_float(x[r * stride + first + i]);
			memset(to + count, 0, (PANEL - count) * sizeof *to);
		}
	}
}

void xfp_feedback_moments_add(double *sum, const uint16_t *x, size_t stride, size_t rows, size_t cols, size_t first,
			      size_t end, float *scratch)
{
	const struct xfp_feedback_set *set = xfp_feedback_set();
	double *wide = (double *)(void *)scratch;
	float *panels = scratch + 2 * XFP_FEEDBACK_INPUTS * PANEL;

	for (size_t done = 0; done < rows; done += XFP_FEEDBACK_INPUTS) {
		const size_t count = rows - done < XFP_FEEDBACK_INPUTS ? rows - done : XFP_FEEDBACK_INPUTS;

		load_panels(x + done * stride, stride, count, cols, end, panels);
		for (size_t i = first; i < end; i++) {
			set->widen(panels + i * count * PANEL, count * PANEL, wide);
			for (size_t j = 0; j <= i; j++)
				set->multiply(count, wide, XFP_LANES, panels + j * count * PANEL, XFP_LANES, XFP_LANES,
					      sum + xfp_triangle_at(cols, i * PANEL, j * PANEL));
		}
	}
}

void xfp_feedback_squares_add(double *sum, const uint16_t *x, size_t stride, size_t rows, size_t cols)
{
	for (size_t r = 0; r < rows; r++, x += stride) {
		for (size_t c = 0; c < cols; c++) {
			double value = xfp_bf16_to_float(x[c]);

			sum[c] += value * value;
		}
	}
}

void xfp_feedback_moments_mean(const double *sum, size_t values, uint64_t inputs, float *mean)
{
	const double n = (double)inputs;
	double from[64];
	float to[64];

	/* By copies: both may be the same memory. */
	for (size_t first = 0; first < values; first += 64) {
		const size_t count = values - first < 64 ? values - first : 64;

		memcpy(from, sum + first, count * sizeof *from);
		for (size_t i = 0; i < count; i++)
			to[i] = (float)(from[i] / n);
		memcpy(mean + first, to, count * sizeof *to);
	}
}
