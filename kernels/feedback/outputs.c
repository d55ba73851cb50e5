/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of rows for some inputs. */
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/feedback/feedback_set.h"

#define LANES ((size_t)XFP_LANES)
#define STEPS ((size_t)128) /* columns that are converted at a time */

size_t xfp_feedback_panels_values(size_t cols, size_t inputs)
{
	return (inputs + LANES - 1) / LANES * LANES * cols;
}

void xfp_feedback_panels_load(const uint16_t *x, size_t inputs, size_t cols, double *panels)
{
	memset(panels, 0, xfp_feedback_panels_values(cols, inputs) * sizeof *panels);
	for (size_t i = 0; i < inputs; i++) {
		double *to = panels + i / LANES * LANES * cols + i % LANES;

		for (size_t c = 0; c < cols; c++)
			to[c * LANES] = xfp_bf16_to_float(x[i * cols + c]);
	}
}

void xfp_feedback_outputs(const double *panels, size_t inputs, const float *tile, size_t cols, double *out)
{
	const struct xfp_feedback_set *set = xfp_feedback_set();

	double wide[STEPS * LANES];

	memset(out, 0, (inputs + LANES - 1) / LANES * LANES * LANES * sizeof *out);
	for (size_t steps, c = 0; c < cols; c += steps) {
		steps = cols - c < STEPS ? cols - c : STEPS;
		set->widen(tile + c * LANES, steps * LANES, wide);
		for (size_t i = 0; i < inputs; i += LANES)
			set->multiply(steps, panels + i * cols + c * LANES, wide, XFP_LANES, out + i * LANES,
				      tile + c * LANES);
	}
}
