/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/fit_unit.h"

#include <stdlib.h>

#include "stages/quantize/candidates.h"
#include "stages/quantize/rows.h"
#include "stages/quantize/threads.h"
#include "stages/work/fit_note.h"

#define WIDE 16384

/* A unit whose rows are on disk. */
struct unit_fit {
	struct xfp_job *job;
	enum xfp_fit_kind kind;
	const struct xfp_fit_methods *methods;
	struct xfp_artifact outliers;
	char outliers_key[33];
	/* with error feedback: */
	const struct xfp_layer_inputs *layer;
	struct xfp_artifact artifact;
	struct xfp_inputs inputs;
	struct xfp_second_moments moments;
	struct xfp_outputs outputs;
	struct xfp_fitting fitting;
};

/* ---- rows to train on -------------------------------------------------------------------------- */

struct row_walk {
	uint64_t n, next; /* numbers of rows in total and of the next one */
	void (*visit)(void *own, const struct xfp_training_row *row, uint64_t i);
	void *own;
};

/* Visit the training rows of matrix m, the number `at` of those that are trained on. */
static enum xfp_status walk_matrix(struct unit_fit *u, uint32_t at, uint32_t m, struct row_walk *walk,
				   struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(u->job->ledger, m);
	const struct xfp_outliers *known = &u->fitting.known;
	uint64_t first = at * known->rows;
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
		struct xfp_training_row taken = { .x = x, .matrix = at };

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
	const struct xfp_training *training = &u->fitting.training;
	struct row_walk walk = { .n = n, .visit = visit, .own = own };
	uint32_t matrices = training->moments ? training->matrices : u->fitting.known.matrices;
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < matrices; i++)
		if (walk.next < n && walk.next * training->rows / n < (i + (uint64_t)1) * u->fitting.known.rows)
			status = walk_matrix(u, i, training->moments ? training->matrix[i] : i, &walk, err);
	return status;
}

/* ---- inputs ------------------------------------------------------------------------------------ */

/* Prepare for error feedback. A unit that the layer does not multiply by, or only by zeros, is fitted without. */
static enum xfp_status use_inputs(struct unit_fit *u, struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct xfp_fitting *fitting = &u->fitting;
	const struct xfp_outliers *known = &fitting->known;
	struct xfp_training *training = &fitting->training;
	const struct xfp_measure *measure = &fitting->measure;
	bool found = false;
	enum xfp_status status = xfp_layer_inputs_open(u->job, u->layer, &u->artifact, &u->inputs, err);

	if (!status)
		status = xfp_second_moments_init(&u->moments, &u->artifact, &u->inputs, u->job->ledger, known->balance,
						 fitting->threads, &found, err);
	if (status || !found)
		return status;
	training->moments = &u->moments;
	training->matrices = xfp_second_moments_largest(&u->moments, training->matrix, &training->blocks);
	training->rows = training->matrices * known->rows;
	fitting->outputs = &u->outputs;
	status = xfp_outputs_init(&u->outputs, measure->count, known->matrices, known->rows, known->cols,
				  fitting->threads, err);
	u->outputs.unreached = u->moments.unreached;
	return status ? status
		      : xfp_fit_begin_codes(artifact, known->matrices * known->rows, known->cols,
					    known->first[known->matrices], measure->candidates, measure->count, err);
}

/* ---- all rows ---------------------------------------------------------------------------------- */

/* Rows are independent of each other. */
static enum xfp_status fit_rows(struct unit_fit *u, uint32_t m, const struct xfp_matrix_source *source,
				const struct xfp_marks *marks, struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct xfp_fitting *fitting = &u->fitting;
	struct xfp_rows rows = { 0 };
	bool wide = fitting->known.cols >= WIDE; /* one long row has as much work as a block of short ones */
	enum xfp_status status = xfp_rows_open_again(source, fitting->known.source[m], &rows, err);

	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
#pragma omp parallel for schedule(dynamic, 4)
		for (uint64_t r = 0; r < rows.count; r++) {
			xfp_fitting_row(fitting, xfp_thread(), &rows, marks, r);
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
	return status;
}

static enum xfp_status fit_matrix(struct unit_fit *u, uint32_t m, struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(u->job->ledger, m);
	struct xfp_fitting *fitting = &u->fitting;
	struct xfp_marks marks = { 0 };
	enum xfp_status status = xfp_marks_load(&u->outliers, &fitting->known, m, &marks, err);

	xfp_fitting_matrix(fitting, m);
	if (!status && !fitting->training.moments)
		status = fit_rows(u, m, &source, &marks, artifact, err);
	else if (!status)
		status = u->methods->matrix(fitting, fitting->own, m, &source, &marks, artifact, err);
	if (!status && fitting->training.moments)
		status = xfp_measure_flush(&fitting->measure, artifact, err);
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
	uint64_t held, cols;

	/* A unit with NaN or infinite weights has no candidates. */
	if (!status && !(known->sigma[0] < 0))
		measure->count = xfp_candidates_of(u->kind, &job->parameters, measure->candidates);
	u->fitting.training = (struct xfp_training){
		.rows = known->matrices * known->rows, .watcher = job->ledger->watcher, .context = u, .walk = walk_unit
	};
	xfp_watch_more(job->ledger->watcher, xfp_fitting_work(&job->parameters, measure->candidates, measure->count, 1,
							      known->matrices * known->rows, known->cols));
	if (!status)
		status = xfp_fitting_init(&u->fitting, err);
	if (!status && u->layer && measure->count)
		status = use_inputs(u, artifact, err);
	/* With inputs, results are those of a matrix, and codes are stored separately. */
	held = u->fitting.training.moments ? known->rows : xfp_rows_block(&source) + XFP_MEASURE_HELD;
	cols = !u->fitting.training.moments && xfp_fit_keeps_bytes(measure->candidates, measure->count, known->cols)
		       ? known->cols
		       : 0;
	if (!status)
		status = xfp_measure_begin(measure, held, cols, err);
	if (!status)
		status = xfp_fit_begin(artifact, job->unit->experts * job->unit->rows, cols, measure->candidates,
				       measure->count, err);
	if (!status)
		status = xfp_fitting_begin(&u->fitting, u->methods, artifact, err);
	for (uint32_t m = 0; !status && measure->count && m < job->unit->experts; m++)
		status = fit_matrix(u, m, artifact, err);
	if (!status)
		status = xfp_measure_end(measure, u->fitting.outputs, known, u->outliers_key, artifact, err);
	return status;
}

/* Report matrices that no token reached, and those whose inputs are all zero. */
static void report(const struct unit_fit *u)
{
	struct xfp_fit_note note = { .unreached = u->moments.unreached };

	for (uint32_t i = 0; u->moments.zero && i < u->moments.matrices; i++)
		note.zero += u->moments.zero[i];
	xfp_fit_note_write(&note, &u->job->event);
}

enum xfp_status xfp_fit_unit(struct xfp_job *job, enum xfp_fit_kind kind, const struct xfp_fit_methods *methods,
			     const struct xfp_layer_inputs *inputs, struct xfp_error *err)
{
	struct unit_fit u = { .job = job,
			      .kind = kind,
			      .methods = methods,
			      .layer = inputs,
			      .fitting = { .parameters = &job->parameters } };
	enum xfp_stamp stamp = xfp_fit_stamp(kind);
	struct xfp_key key = { 0 };
	enum xfp_status status;

	status = xfp_job_open(job, XFP_STAMP_OUTLIERS, &u.outliers, u.outliers_key, err);
	if (!status)
		status = xfp_key_fit_kind(kind, u.outliers_key, inputs ? inputs->key : "", &job->parameters, &key, err);
	if (!status)
		status = xfp_job_make(job, stamp, &key, fill, &u, err);
	if (!status)
		report(&u);
	if (!status)
		status = xfp_job_stamp(job, stamp, key.hex, err);
	xfp_key_free(&key);
	xfp_artifact_close(&u.outliers);
	xfp_fitting_free(&u.fitting);
	xfp_outputs_free(&u.outputs);
	xfp_second_moments_free(&u.moments);
	xfp_inputs_free(&u.inputs);
	xfp_artifact_close(&u.artifact);
	return status;
}
