/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/fit_unit.h"

#include <stdlib.h>

#include "stages/quantize/candidates.h"
#include "stages/quantize/rows.h"
#include "stages/quantize/threads.h"

#define WIDE 16384

/* A unit whose rows are on disk. */
struct unit_fit {
	struct xfp_job *job;
	enum xfp_fit_kind kind;
	const struct xfp_fit_methods *methods;
	struct xfp_artifact outliers;
	char outliers_key[33];
	struct xfp_fitting fitting;
};

/* ---- rows to train on -------------------------------------------------------------------------- */

struct row_walk {
	uint64_t n, next; /* numbers of rows in total and of the next one */
	void (*visit)(void *own, const struct xfp_training_row *row, uint64_t i);
	void *own;
};

/* Visit the training rows of matrix m. */
static enum xfp_status walk_matrix(struct unit_fit *u, uint32_t m, struct row_walk *walk, struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(u->job->ledger, m);
	const struct xfp_outliers *known = &u->fitting.known;
	uint64_t first = m * known->rows;
	struct xfp_marks marks = { 0 };
	struct xfp_rows rows = { 0 };
	float *x = xfp_row_new(known->cols);
	enum xfp_status status = x ? XFP_OK : xfp_no_memory(err);

	if (!status)
		status = xfp_marks_load(&u->outliers, known, m, &marks, err);
	if (!status)
		status = xfp_rows_open(&source, &rows, err);
	xfp_fitting_matrix(&u->fitting, m);
	for (; !status && walk->next < walk->n; walk->next++) {
		uint64_t row = walk->next * u->fitting.training.rows / walk->n - first;
		struct xfp_training_row taken = { .x = x };

		if (row >= known->rows || (status = xfp_rows_one(&rows, row, err)))
			break;
		xfp_rows_scaled(&rows, &u->fitting.scaling, 0, 1, NULL, x);
		taken.marked = marks.column + marks.first[row];
		taken.marks = marks.first[row + 1] - marks.first[row];
		for (uint64_t i = 0; i < taken.marks; i++)
			x[taken.marked[i]] = 0;
		walk->visit(walk->own, &taken, walk->next);
	}
	xfp_rows_close(&rows);
	xfp_marks_free(&marks);
	free(x);
	return status;
}

static enum xfp_status walk_unit(void *context, uint64_t n,
				 void (*visit)(void *own, const struct xfp_training_row *row, uint64_t i), void *own,
				 struct xfp_error *err)
{
	struct unit_fit *u = context;
	struct row_walk walk = { .n = n, .visit = visit, .own = own };
	enum xfp_status status = XFP_OK;

	for (uint32_t m = 0; !status && m < u->fitting.known.matrices; m++)
		if (walk.next < n &&
		    walk.next * u->fitting.training.rows / n < (m + (uint64_t)1) * u->fitting.known.rows)
			status = walk_matrix(u, m, &walk, err);
	return status;
}

/* ---- all rows ---------------------------------------------------------------------------------- */

/* Rows are independent of each other. */
static enum xfp_status fit_matrix(struct unit_fit *u, uint32_t m, struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(u->job->ledger, m);
	struct xfp_fitting *fitting = &u->fitting;
	struct xfp_marks marks = { 0 };
	struct xfp_rows rows = { 0 };
	bool wide = fitting->known.cols >= WIDE; /* one long row has as much work as a block of short ones */
	enum xfp_status status = xfp_marks_load(&u->outliers, &fitting->known, m, &marks, err);

	xfp_fitting_matrix(fitting, m);
	if (!status)
		status = xfp_rows_open_again(&source, fitting->known.source[m], &rows, err);
	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
#pragma omp parallel for schedule(dynamic, 4)
		for (uint64_t r = 0; r < rows.count; r++) {
			xfp_fitting_row(fitting, xfp_thread(), &rows, &marks, r);
			if (wide)
				xfp_fitting_done(fitting, 1);
		}
		if (!wide)
			xfp_fitting_done(fitting, rows.count);
		fitting->measure.held += rows.count;
		if (fitting->measure.held >= XFP_MEASURE_HELD)
			status = xfp_measure_flush(&fitting->measure, artifact, err);
	}
	xfp_rows_close(&rows);
	xfp_marks_free(&marks);
	return status;
}

static enum xfp_status fill(void *own, struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct unit_fit *u = own;
	struct xfp_job *job = u->job;
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, 0);
	struct xfp_measure *measure = &u->fitting.measure;
	const struct xfp_outliers *known = &u->fitting.known;
	enum xfp_status status = xfp_outliers_read(&u->outliers, &u->fitting.known, err);

	/* A unit with NaN or infinite weights has no candidates. */
	if (!status && !(known->sigma[0] < 0))
		measure->count = xfp_candidates_of(u->kind, &job->parameters, measure->candidates);
	u->fitting.training =
		(struct xfp_training){ known->matrices * known->rows, job->ledger->watcher, u, walk_unit };
	xfp_watch_more(job->ledger->watcher, xfp_fitting_work(&job->parameters, measure->candidates, measure->count, 1,
							      known->matrices * known->rows, known->cols));
	if (!status)
		status = xfp_fitting_init(&u->fitting, err);
	if (!status)
		status = xfp_measure_begin(measure, xfp_rows_block(&source) + XFP_MEASURE_HELD, err);
	if (!status)
		status = xfp_fit_begin(artifact, job->unit->experts * job->unit->rows, measure->candidates,
				       measure->count, err);
	if (!status)
		status = xfp_fitting_begin(&u->fitting, u->methods, artifact, err);
	for (uint32_t m = 0; !status && measure->count && m < job->unit->experts; m++)
		status = fit_matrix(u, m, artifact, err);
	if (!status)
		status = xfp_measure_end(measure, known, u->outliers_key, artifact, err);
	return status;
}

enum xfp_status xfp_fit_unit(struct xfp_job *job, enum xfp_fit_kind kind, const struct xfp_fit_methods *methods,
			     struct xfp_error *err)
{
	struct unit_fit u = {
		.job = job, .kind = kind, .methods = methods, .fitting = { .parameters = &job->parameters }
	};
	enum xfp_stamp stamp = xfp_fit_stamp(kind);
	struct xfp_key key = { 0 };
	enum xfp_status status;

	status = xfp_job_open(job, XFP_STAMP_OUTLIERS, &u.outliers, u.outliers_key, err);
	if (!status)
		status = xfp_key_fit_kind(kind, u.outliers_key, &job->parameters, &key, err);
	if (!status)
		status = xfp_job_make(job, stamp, &key, fill, &u, err);
	if (!status)
		status = xfp_job_stamp(job, stamp, key.hex, err);
	xfp_key_free(&key);
	xfp_artifact_close(&u.outliers);
	xfp_fitting_free(&u.fitting);
	return status;
}
