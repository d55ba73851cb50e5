/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/fit_rows.h"

#include <stdlib.h>

#include "kernels/common/scale.h"
#include "stages/quantize/threads.h"

enum xfp_status xfp_fitting_init(struct xfp_fitting *fitting, struct xfp_error *err)
{
	uint64_t cols = fitting->known.cols;

	fitting->threads = xfp_threads();
	fitting->down = xfp_row_new(cols);
	if (!fitting->down)
		return xfp_no_memory(err);
	for (uint64_t c = 0; c < cols; c++)
		fitting->down[c] = xfp_balance_down(fitting->known.balance[c]);
	return xfp_scaling_init(&fitting->scaling, cols, err);
}

void xfp_fitting_free(struct xfp_fitting *fitting)
{
	xfp_outliers_free(&fitting->known);
	xfp_scaling_free(&fitting->scaling);
	xfp_measure_free(&fitting->measure);
	free(fitting->down);
}

void xfp_fitting_matrix(struct xfp_fitting *fitting, uint32_t m)
{
	fitting->exponent = fitting->known.exponent[m];
	xfp_scaling_set(&fitting->scaling, fitting->known.balance, fitting->exponent);
	fitting->unit = xfp_measure_unit(fitting->scaling.fits, fitting->exponent);
}
