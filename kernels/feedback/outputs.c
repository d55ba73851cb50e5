/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs of rows for some inputs. */
#include <string.h>

#include "kernels/common/number.h"
#include "kernels/feedback/feedback_set.h"

#define LANES ((size_t)XFP_LANES)

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

	memset(out, 0, (inputs + LANES - 1) / LANES * LANES * LANES * sizeof *out);
	for (size_t i = 0; i < inputs; i += LANES)
		set->multiply(cols, panels + i * cols, XFP_LANES, tile, XFP_LANES, XFP_LANES, out + i * LANES);
}
