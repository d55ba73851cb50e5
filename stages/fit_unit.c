/* SPDX-License-Identifier: Apache-2.0 */
#include "fit_unit.h"

#include <stdlib.h>

#include "scale.h"
#include "threads.h"

static enum xfp_status fitting_init(struct xfp_fitting *fitting, struct xfp_error *err)
{
	uint64_t cols = fitting->known.cols;

	fitting->threads = xfp_threads();
	fitting->down = xfp_row_new(cols);
	if (!fitting->down)
		return xfp_fail(err, XFP_FAILED, "out of memory");
	for (uint64_t c = 0; c < cols; c++)
		fitting->down[c] = xfp_balance_down(fitting->known.balance[c]);
	return xfp_scaling_init(&fitting->scaling, cols, err);
}

static void fitting_free(struct xfp_fitting *fitting)
{
	xfp_artifact_close(&fitting->outliers);
	xfp_outliers_free(&fitting->known);
	xfp_scaling_free(&fitting->scaling);
	xfp_measure_free(&fitting->measure);
	free(fitting->down);
}

/* Rows do not see each other. */
static enum xfp_status fit_matrix(struct xfp_job *job, const struct xfp_fit_methods *methods,
				  struct xfp_fitting *fitting, void *own, uint32_t m, struct xfp_artifact *artifact,
				  struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, m);
	struct xfp_marks marks = { 0 };
	struct xfp_rows rows = { 0 };
	enum xfp_status status = xfp_marks_load(&fitting->outliers, &fitting->known, m, &marks, err);

	fitting->exponent = fitting->known.exponent[m];
	xfp_scaling_set(&fitting->scaling, fitting->known.balance, fitting->exponent);
	fitting->unit = xfp_measure_unit(fitting->scaling.fits, fitting->exponent);
	if (!status)
		status = xfp_rows_open(&source, &rows, err);
	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
#pragma omp parallel for schedule(dynamic, 4)
		for (uint64_t r = 0; r < rows.count; r++)
			methods->row(fitting, own, xfp_thread(), &rows, &marks, r);
		fitting->measure.held += rows.count;
		if (fitting->measure.held >= XFP_MEASURE_HELD)
			status = xfp_measure_flush(&fitting->measure, artifact, err);
	}
	xfp_rows_close(&rows);
	xfp_marks_free(&marks);
	return status;
}

static enum xfp_status produce(struct xfp_job *job, const struct xfp_fit_methods *methods, struct xfp_fitting *fitting,
			       void *own, const struct xfp_key *key, struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, 0);
	struct xfp_measure *measure = &fitting->measure;
	struct xfp_artifact artifact = { 0 };
	struct xfp_pending pending = { 0 };
	enum xfp_status status;

	/* A unit with weights that are no numbers has no candidates. */
	if (!(fitting->known.sigma[0] < 0))
		methods->list(job, fitting);
	status = fitting_init(fitting, err);
	if (!status)
		status = xfp_measure_begin(measure, xfp_rows_block(&source) + XFP_MEASURE_HELD, err);
	if (!status)
		status = xfp_job_create(job, key, &pending, &artifact, err);
	if (!status)
		status = xfp_fit_begin(&artifact, job->unit->experts * job->unit->rows, measure->candidates,
				       measure->count, err);
	if (!status)
		status = methods->begin(job, fitting, &artifact, own, err);
	for (uint32_t m = 0; !status && measure->count && m < job->unit->experts; m++)
		status = fit_matrix(job, methods, fitting, own, m, &artifact, err);
	if (!status)
		status = xfp_measure_end(measure, &fitting->known, fitting->outliers_key, &artifact, err);
	if (!status)
		status = xfp_job_publish(job, key, XFP_FIT_KIND, XFP_FIT_VERSION, &pending, &artifact, err);
	xfp_artifact_close(&artifact);
	xfp_pending_discard(&pending);
	return status;
}

enum xfp_status xfp_fit_unit(struct xfp_job *job, const struct xfp_fit_methods *methods, void *own,
			     struct xfp_error *err)
{
	enum xfp_stamp stamp = xfp_fit_stamp(methods->kind);
	struct xfp_fitting fitting = { .exponent = 0 };
	struct xfp_key key = { 0 };
	enum xfp_status status;

	status = xfp_job_open(job, XFP_STAMP_OUTLIERS, XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, &fitting.outliers,
			      fitting.outliers_key, err);
	if (!status)
		status = xfp_key_fit_kind(methods->kind, fitting.outliers_key, &job->parameters, &key, err);
	if (!status && !xfp_job_hit(job, stamp, key.hex, XFP_FIT_KIND, XFP_FIT_VERSION)) {
		status = xfp_outliers_read(&fitting.outliers, &fitting.known, err);
		if (!status)
			status = produce(job, methods, &fitting, own, &key, err);
	}
	if (!status)
		status = xfp_stamp_write(job->work, job->number, stamp, key.hex, err);
	xfp_key_free(&key);
	fitting_free(&fitting);
	return status;
}
