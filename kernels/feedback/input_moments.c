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

#define ROWS ((size_t)4) /* of blocks that are computed together */
#define VALUES (XFP_FEEDBACK_INPUTS * PANEL)

/* Some panels of f64, then all panels of f32: each input's sixteen columns, then the next input's. */
size_t xfp_feedback_moments_scratch(size_t cols)
{
	return (2 * (ROWS + 1) + panels_of(cols)) * VALUES;
}

static void load_panels(const uint16_t *x, size_t stride, size_t rows, size_t cols, size_t end, float *to)
{
	for (size_t first = 0; first < end * PANEL; first += PANEL) {
		const size_t count = cols - first < PANEL ? cols - first : PANEL;

		for (size_t r = 0; r < rows; r++, to += PANEL) {
			uint32_t bits[XFP_LANES] = { 0 };

			for (size_t i = 0; i < count; i++)
				bits[i] = (uint32_t)x[r * stride + first + i] << 16;
			memcpy(to, bits, sizeof bits);
		}
	}
}

/* Add `count` inputs to rows [first, end) of blocks. */
static void add_blocks(double *sum, const float *panels, size_t count, size_t cols, size_t first, size_t end, double *a)
{
	const struct xfp_feedback_set *set = xfp_feedback_set();
	double *b = a + ROWS * VALUES;

	for (size_t i = first; i < end; i++)
		set->widen(panels + i * count * PANEL, count * PANEL, a + (i - first) * VALUES);
	for (size_t j = 0; j < end; j++, panels += count * PANEL) {
		const float *next = j + 1 < end ? panels + count * PANEL : NULL;

		set->widen(panels, count * PANEL, b);
		for (size_t i = first > j ? first : j; i < end; i++)
			set->multiply(count, a + (i - first) * VALUES, b, XFP_LANES,
				      sum + xfp_triangle_at(cols, i * PANEL, j * PANEL), next);
	}
}

void xfp_feedback_moments_add(double *sum, const uint16_t *x, size_t stride, size_t rows, size_t cols, size_t first,
			      size_t end, float *scratch)
{
	float *panels = scratch + 2 * (ROWS + 1) * VALUES;

	for (size_t done = 0; done < rows; done += XFP_FEEDBACK_INPUTS) {
		const size_t count = rows - done < XFP_FEEDBACK_INPUTS ? rows - done : XFP_FEEDBACK_INPUTS;

		load_panels(x + done * stride, stride, count, cols, end, panels);
		for (size_t i = first; i < end; i += ROWS)
			add_blocks(sum, panels, count, cols, i, end - i < ROWS ? end : i + ROWS,
				   (double *)(void *)scratch);
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
