/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outlier_extract.c - xfp-outlier-extract: statistics of a unit's matrices, computed before any fit.
 *
 * input    the checkpoint's rows
 * output   an outliers artifact (schemas/outliers.h): digests, balance, exponents, moments, outliers
 * key      dtype, shape and digest of every matrix; sigma, cap, balance
 *
 * This is the unit's first stage, apart from a survey: its key is only known after reading the weights. One pass over
 * the rows computes the digests and the column statistics; then the key is known, and another pass computes the moments
 * and the outliers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "kernels/encode/encode.h"
#include "kernels/encode/moments.h"
#include "schemas/outliers.h"
#include "schemas/surveyed.h"
#include "stages/quantize/rows.h"
#include "stages/quantize/scan.h"
#include "stages/quantize/threads.h"
#include "stages/stage.h"

/* A thread's buffers. */
struct outlier_scan {
	struct xfp_scaling scaling;
	float *x;         /* one row */
	uint32_t *column; /* outliers of one row */
	xfp_outlier *found;
	size_t found_count, found_capacity;
};

static void scan_free(struct outlier_scan *scan)
{
	xfp_scaling_free(&scan->scaling);
	free(scan->x);
	free(scan->column);
	free(scan->found);
}

static enum xfp_status scan_init(struct outlier_scan *scan, uint64_t cols, struct xfp_error *err)
{
	scan->x = xfp_row_new(cols);
	scan->column = malloc((cols + XFP_LANES) * sizeof *scan->column);
	if (!scan->x || !scan->column)
		return xfp_no_memory(err);
	return xfp_scaling_init(&scan->scaling, cols, err);
}

static void load_row(struct outlier_scan *scan, const struct xfp_rows *rows, uint64_t r)
{
	xfp_rows_scaled(rows, &scan->scaling, r, 1, NULL, scan->x);
}

static enum xfp_status reserve(struct outlier_scan *scan, uint64_t cols, struct xfp_error *err)
{
	size_t capacity = scan->found_capacity + scan->found_capacity / 2 + cols;
	xfp_outlier *grown;

	if (scan->found_capacity - scan->found_count >= cols)
		return XFP_OK;
	grown = realloc(scan->found, capacity * sizeof *grown);
	if (!grown)
		return xfp_no_memory(err);
	scan->found = grown;
	scan->found_capacity = capacity;
	return XFP_OK;
}

/* Record the weights of a block outside the rule, and add up its moments unless they are known (NULL). */
static enum xfp_status find_in_block(struct outlier_scan *scan, const struct xfp_rows *rows,
				     const struct xfp_outlier_rule *rule, struct xfp_moments *moments,
				     struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint64_t r = 0; !status && r < rows->count; r++) {
		uint64_t base = (rows->first + r) * rows->cols;
		size_t count;

		if ((status = reserve(scan, rows->cols, err)))
			break;
		load_row(scan, rows, r);
		count = moments ? xfp_moments_and_outliers(moments, rule, scan->x, rows->cols, scan->column)
				: xfp_outliers_find(rule, scan->x, rows->cols, scan->column);
		for (size_t i = 0; i < count; i++) {
			uint32_t c = scan->column[i];

			scan->found[scan->found_count++] = xfp_outlier_of(base + c, xfp_q_of(scan->x[c]));
		}
	}
	return status;
}

/* Compute the moments of a matrix and, in the same pass, collect the weights outside rules guessed from the rows read
 * so far and somewhat too wide. `certain`: the outermost bounds of these guesses; a rule that is at least as wide as
 * these has missed nothing. */
static enum xfp_status find_once(struct outlier_scan *scan, const struct xfp_matrix_source *source,
				 const uint8_t known[16], uint32_t sigma_milli, struct xfp_moments *moments,
				 struct xfp_outlier_rule *certain, struct xfp_error *err)
{
	struct xfp_rows rows = { 0 };
	enum xfp_status status = xfp_rows_open_again(source, known, &rows, err);

	*certain = (struct xfp_outlier_rule){ .low = INT32_MAX, .high = INT32_MIN };
	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
		bool first = !rows.first;
		struct xfp_outlier_rule guess;

		for (uint64_t r = 0; first && r < rows.count; r++) {
			load_row(scan, &rows, r);
			xfp_moments_add(moments, scan->x, rows.cols);
		}
		guess = xfp_outlier_rule(moments, sigma_milli - sigma_milli / 8);
		certain->low = guess.low < certain->low ? guess.low : certain->low;
		certain->high = guess.high > certain->high ? guess.high : certain->high;
		status = find_in_block(scan, &rows, &guess, first ? NULL : moments, err);
	}
	xfp_rows_close(&rows);
	return status;
}

/* Collect the weights outside the true rule, in a second pass. */
static enum xfp_status find_again(struct outlier_scan *scan, const struct xfp_matrix_source *source,
				  const uint8_t known[16], const struct xfp_outlier_rule *rule, struct xfp_error *err)
{
	struct xfp_rows rows = { 0 };
	enum xfp_status status = xfp_rows_open_again(source, known, &rows, err);

	scan->found_count = 0;
	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count)
		status = find_in_block(scan, &rows, rule, NULL, err);
	xfp_rows_close(&rows);
	return status;
}

/* The moments and outliers of one matrix: in one pass if the guesses were wide enough, which they nearly always are. */
static enum xfp_status find_outliers(struct outlier_scan *scan, const struct xfp_matrix_source *source,
				     const uint8_t known[16], uint32_t sigma_milli, struct xfp_outlier_rule *rule,
				     struct xfp_error *err)
{
	struct xfp_moments moments = { 0 };
	struct xfp_outlier_rule certain;
	size_t kept = 0;
	enum xfp_status status;

	scan->found_count = 0;
	status = find_once(scan, source, known, sigma_milli, &moments, &certain, err);
	*rule = xfp_outlier_rule(&moments, sigma_milli);
	if (!status && sigma_milli && rule->sigma > 0 && (rule->low > certain.low || rule->high < certain.high))
		status = find_again(scan, source, known, rule, err);
	for (size_t i = 0; i < scan->found_count; i++) {
		int32_t q = xfp_outlier_q(scan->found[i]);

		if (q < rule->low || q > rule->high)
			scan->found[kept++] = scan->found[i];
	}
	scan->found_count = kept;
	return status;
}

/* The capped outliers of one matrix: their positions, ordered by distance, in *positions. */
static enum xfp_status extract(const struct xfp_job *job, struct xfp_outliers *known, struct outlier_scan *scan,
			       uint32_t m, xfp_outlier **positions, struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, m);
	uint64_t weights = source.view.rows * source.view.cols;
	uint64_t cap = (uint64_t)((xfp_int128)weights * job->parameters.outlier_cap / XFP_NANO);
	struct xfp_outlier_rule rule;
	xfp_outlier *buffer;
	enum xfp_status status;

	if (weights > XFP_OUTLIER_WEIGHTS)
		return xfp_fail(err, XFP_BAD_INPUT, "tensor %s has more than 2^38 weights in a matrix",
				xfp_printable(source.tensor).text);
	xfp_scaling_set(&scan->scaling, known->balance, known->exponent[m]);
	status = find_outliers(scan, &source, known->source[m], job->parameters.outlier_sigma, &rule, err);
	if (status)
		return status;
	known->mean[m] = rule.mean / XFP_Q_PER_X;
	known->sigma[m] = rule.sigma / XFP_Q_PER_X;
	buffer = malloc((scan->found_count + 1) * sizeof *buffer);
	if (!buffer)
		return xfp_no_memory(err);
	xfp_outliers_sort(rule.mean, scan->found, scan->found_count, buffer);
	scan->found_count = scan->found_count < cap ? scan->found_count : (size_t)cap;
	for (size_t i = 0; i < scan->found_count; i++)
		buffer[i] = xfp_outlier_position(scan->found[i]);
	*positions = buffer;
	return XFP_OK;
}

/* Process matrices of a stack concurrently; results are written in order, by one thread at a time. */
static enum xfp_status extract_all(struct xfp_job *job, struct xfp_outliers *known, struct outlier_scan *scans,
				   struct xfp_artifact *artifact, struct xfp_error *err)
{
	uint32_t experts = job->unit->experts;
	enum xfp_status all = XFP_OK;

#pragma omp parallel for ordered schedule(static, 1) if (experts > 1)
	for (uint32_t m = 0; m < experts; m++) {
		struct outlier_scan *scan = &scans[xfp_thread()];
		struct xfp_error own = { .status = XFP_OK };
		xfp_outlier *positions = NULL;
		enum xfp_status status, before;

#pragma omp atomic read
		before = all;
		status = before ? before : extract(job, known, scan, m, &positions, &own);
#pragma omp ordered
		{
			if (!all && !status)
				status = xfp_outliers_append(artifact, known, m, positions, scan->found_count, &own);
			if (!all && status) {
#pragma omp atomic write
				all = status;
				if (err)
					*err = own;
			}
		}
		free(positions);
	}
	return all;
}

/* The input of an artifact. */
struct outliers_making {
	struct xfp_job *job;
	struct xfp_outliers *known;
};

static enum xfp_status fill(void *own, struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct xfp_job *job = ((struct outliers_making *)own)->job;
	struct xfp_outliers *known = ((struct outliers_making *)own)->known;
	int count = job->unit->experts > 1 ? xfp_threads() : 1;
	struct outlier_scan *scans = calloc((size_t)count, sizeof *scans);
	bool finite = known->sigma[0] >= 0;
	enum xfp_status status = scans ? XFP_OK : xfp_no_memory(err);

	known->sigma_milli = job->parameters.outlier_sigma;
	for (int t = 0; !status && t < count; t++)
		status = scan_init(&scans[t], job->unit->cols, err);
	if (!status)
		status = xfp_outliers_begin(artifact, err);
	if (!status && finite)
		status = extract_all(job, known, scans, artifact, err);
	for (uint32_t m = 0; !status && !finite && m < job->unit->experts; m++)
		status = xfp_outliers_append(artifact, known, m, NULL, 0, err);
	if (!status)
		status = xfp_outliers_end(artifact, known, err);
	for (int t = 0; scans && t < count; t++)
		scan_free(&scans[t]);
	free(scans);
	return status;
}

/* Compute what requires reading every weight, unless a survey already has. */
static enum xfp_status scan_unit(struct xfp_job *job, struct xfp_outliers *known, struct xfp_error *err)
{
	struct xfp_artifact survey = { 0 };
	enum xfp_status status;
	char key[33];

	if (!job->narrowed) {
		xfp_watch_more(job->ledger->watcher, xfp_unit_weights(job->unit));
		return xfp_scan_unit(job->ledger, job->unit, &job->parameters, known, NULL, err);
	}
	status = xfp_job_open(job, XFP_STAMP_SURVEY, &survey, key, err);
	if (!status)
		status = xfp_outliers_read(&survey, known, err);
	xfp_artifact_close(&survey);
	return status;
}

static enum xfp_status run(struct xfp_job *job, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = job->unit;
	struct xfp_key_source source;
	struct xfp_key key = { 0 };
	struct xfp_outliers known = { 0 };
	enum xfp_status status;

	if (unit->plan != XFP_PLAN_FIT)
		return xfp_fail(err, XFP_USAGE, "is stored as fp8; only xfp-pack applies to it");
	status = scan_unit(job, &known, err);
	source = xfp_key_source_of(unit, known.source);
	if (!status)
		status = xfp_key_outliers(&source, &job->parameters, &key, err);
	if (!status)
		status = xfp_job_make(job, XFP_STAMP_OUTLIERS, &key, fill, &(struct outliers_making){ job, &known },
				      err);
	if (!status)
		status = xfp_job_stamp(job, XFP_STAMP_OUTLIERS, key.hex, err);
	xfp_key_free(&key);
	xfp_outliers_free(&known);
	return status;
}

int main(int argc, char **argv)
{
	static const struct xfp_stage stage = {
		.step = XFP_STAMP_OUTLIERS,
		.summary = "Digests a unit's matrices, balances their columns and finds their outliers.",
		.run = run,
	};

	return xfp_stage_main(argc, argv, &stage);
}
