/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/fit_rows.h"

#include <stdlib.h>

#include "kernels/common/scale.h"
#include "stages/quantize/library_train.h"
#include "stages/quantize/threads.h"

#define WEIGHT_WORK 4 /* work of a candidate, relative to reading the weight */

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
	if (fitting->measure.fitted || fitting->training.moments)
		status = methods->begin(fitting, artifact, &fitting->own, err);
	if (!status && fitting->measure.count > fitting->measure.fitted)
		status = xfp_fit_fp8.begin(fitting, artifact, &fitting->own_fp8, err);
	return status;
}

uint64_t xfp_fitting_work(const struct xfp_parameters *parameters, const struct xfp_candidate *candidates,
			  uint32_t count, uint32_t walks, uint64_t rows, uint64_t cols)
{
	uint64_t work = 0;

	for (uint32_t i = 0; i < count; i++) {
		bool library = XFP_LIBRARY_MODES >> candidates[i].mode & 1;

		work += rows * cols * WEIGHT_WORK * (candidates[i].mode == XFP_MODE_FP8 ? 1 : walks);
		work += library ? xfp_library_work(parameters, rows, cols) : 0;
	}
	return work;
}

void xfp_fitting_done(const struct xfp_fitting *fitting, uint64_t rows)
{
	xfp_watch_done(fitting->training.watcher, rows * fitting->known.cols * fitting->measure.count * WEIGHT_WORK);
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
