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
	if (fitting->own)
		fitting->methods->end(fitting->own);
	xfp_fit_fp8.end(fitting->own_fp8);
}

enum xfp_status xfp_fitting_begin(struct xfp_fitting *fitting, const struct xfp_fit_methods *methods,
				  struct xfp_artifact *artifact, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	fitting->methods = methods;
	if (fitting->measure.fitted)
		status = methods->begin(fitting, artifact, &fitting->own, err);
	if (!status && fitting->measure.count > fitting->measure.fitted)
		status = xfp_fit_fp8.begin(fitting, artifact, &fitting->own_fp8, err);
	return status;
}

void xfp_fitting_row(const struct xfp_fitting *fitting, int thread, const struct xfp_rows *rows,
		     const struct xfp_marks *marks, uint64_t r)
{
	if (fitting->measure.fitted)
		fitting->methods->row(fitting, fitting->own, thread, rows, marks, r);
	if (fitting->measure.count > fitting->measure.fitted)
		xfp_fit_fp8.row(fitting, fitting->own_fp8, thread, rows, marks, r);
}

void xfp_fitting_matrix(struct xfp_fitting *fitting, uint32_t m)
{
	fitting->exponent = fitting->known.exponent[m];
	xfp_scaling_set(&fitting->scaling, fitting->known.balance, fitting->exponent);
	fitting->unit = xfp_measure_unit(fitting->scaling.fits, fitting->exponent);
}
