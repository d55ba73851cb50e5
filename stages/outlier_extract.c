/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outlier_extract.c - xfp-outlier-extract: what is known of a unit's matrices before any fit.
 *
 * input    the checkpoint's rows
 * output   an outliers artifact (schemas/outliers.h): digests, balance, exponents, moments, outliers
 * key      dtype, shape and digest of every matrix; sigma, cap, balance
 *
 * The unit's first stage: only reading can tell its key. One pass over the rows gives the digests and
 * the column statistics; when the key is known two more give the moments and the outliers.
 */
#include <stdlib.h>
#include <string.h>

#include "balance.h"
#include "moments.h"
#include "outliers.h"
#include "rows.h"
#include "scale.h"
#include "work.h"

/* What the passes share. */
struct scan {
	struct xfp_outliers known; /* digests, balance, exponents, moments */
	float *largest;            /* [matrices][cols] largest |w| */
	double *square;            /* [cols] sums of squares over the unit */
	double *chunk;             /* [cols] the same over one chunk of rows */
	float *narrow, *narrow_or_null;
	double *wide;
	float *x; /* one row */
	struct xfp_outlier *found;
	size_t found_room;
};

static void scan_free(struct scan *scan)
{
	xfp_outliers_free(&scan->known);
	free(scan->largest);
	free(scan->square);
	free(scan->chunk);
	free(scan->narrow);
	free(scan->wide);
	free(scan->x);
	free(scan->found);
}

static enum xfp_status scan_init(struct scan *scan, const struct xfp_ledger_unit *unit, struct xfp_error *err)
{
	enum xfp_status status = xfp_outliers_init(&scan->known, unit->experts, unit->rows, unit->cols, err);

	if (status)
		return status;
	scan->largest = calloc(unit->experts * unit->cols, sizeof *scan->largest);
	scan->square = calloc(unit->cols, sizeof *scan->square);
	scan->chunk = malloc(unit->cols * sizeof *scan->chunk);
	scan->narrow = malloc(unit->cols * sizeof *scan->narrow);
	scan->wide = malloc(unit->cols * sizeof *scan->wide);
	scan->x = malloc(unit->cols * sizeof *scan->x);
	if (!scan->largest || !scan->square || !scan->chunk || !scan->narrow || !scan->wide || !scan->x)
		return xfp_fail(err, XFP_FAILED, "out of memory");
	return XFP_OK;
}

/* Digest of one matrix, its largest weights and its share of the column sums. */
static enum xfp_status scan_matrix(struct scan *scan, const struct xfp_matrix_source *source, uint32_t m,
				   size_t *nonfinite, struct xfp_error *err)
{
	uint64_t cols = source->view.cols;
	float *largest = scan->largest + m * cols;
	struct xfp_digest *digest = xfp_digest_new();
	struct xfp_rows rows = { 0 };
	enum xfp_status status =
		digest ? xfp_rows_open(source, &rows, err) : xfp_fail(err, XFP_FAILED, "out of memory");

	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
		xfp_digest_update(digest, rows.raw, rows.count * cols * rows.element);
		for (uint64_t r = 0; r < rows.count; r += XFP_BALANCE_CHUNK) {
			uint64_t left = rows.count - r;
			size_t count = left < XFP_BALANCE_CHUNK ? (size_t)left : XFP_BALANCE_CHUNK;

			*nonfinite += xfp_column_scan(rows.w + r * cols, count, cols, scan->chunk, largest);
			for (uint64_t c = 0; c < cols; c++)
				scan->square[c] += scan->chunk[c];
		}
	}
	xfp_rows_close(&rows);
	if (digest)
		xfp_digest_final(digest, scan->known.source[m]);
	return status;
}

/* First pass: everything that the key needs. */
static enum xfp_status scan_unit(struct xfp_job *job, struct scan *scan, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = job->unit;
	const char *tensor = NULL;
	size_t nonfinite = 0;
	enum xfp_status status = scan_init(scan, unit, err);

	for (uint32_t m = 0; !status && m < unit->experts; m++) {
		struct xfp_matrix_source source = xfp_ledger_source(job->ledger, m);

		status = scan_matrix(scan, &source, m, &nonfinite, err);
		if (nonfinite && !tensor)
			tensor = source.tensor;
	}
	if (status)
		return status;
	scan->known.sigma_milli = job->parameters.outlier_sigma;
	if (nonfinite && job->parameters.on_nonfinite == XFP_NONFINITE_FAIL)
		return xfp_fail_nonfinite(err, tensor, nonfinite);
	if (nonfinite) {
		/* Said by a standard deviation that is none; such a unit has no candidates. */
		for (uint32_t m = 0; m < unit->experts; m++)
			scan->known.sigma[m] = -1;
		return XFP_OK;
	}
	xfp_balance(scan->square, unit->experts * unit->rows, unit->cols, job->parameters.balance, scan->known.balance);
	for (uint32_t m = 0; m < unit->experts; m++)
		scan->known.exponent[m] =
			(int16_t)xfp_matrix_exponent(scan->largest + m * unit->cols, scan->known.balance, unit->cols);
	return XFP_OK;
}

static enum xfp_status moments_of(struct scan *scan, const struct xfp_matrix_source *source,
				  struct xfp_moments *moments, struct xfp_error *err)
{
	uint64_t cols = source->view.cols;
	struct xfp_rows rows = { 0 };
	enum xfp_status status = xfp_rows_open(source, &rows, err);

	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
		for (uint64_t r = 0; r < rows.count; r++) {
			xfp_scale_row(rows.w + r * cols, scan->narrow_or_null, scan->wide, cols, scan->x);
			xfp_moments_add(moments, scan->x, cols);
		}
	}
	xfp_rows_close(&rows);
	return status;
}

static enum xfp_status find_outliers(struct scan *scan, const struct xfp_matrix_source *source,
				     const struct xfp_outlier_rule *rule, size_t *count, struct xfp_error *err)
{
	uint64_t cols = source->view.cols;
	struct xfp_rows rows = { 0 };
	enum xfp_status status = xfp_rows_open(source, &rows, err);

	*count = 0;
	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
		for (uint64_t r = 0; !status && r < rows.count; r++) {
			if (scan->found_room - *count < cols) {
				size_t room = 2 * scan->found_room + cols;
				struct xfp_outlier *grown = realloc(scan->found, room * sizeof *grown);

				if (!grown) {
					status = xfp_fail(err, XFP_FAILED, "out of memory");
					break;
				}
				scan->found = grown;
				scan->found_room = room;
			}
			xfp_scale_row(rows.w + r * cols, scan->narrow_or_null, scan->wide, cols, scan->x);
			*count += xfp_outliers_find(rule, scan->x, cols, (rows.first + r) * cols, scan->found + *count,
						    cols);
		}
	}
	xfp_rows_close(&rows);
	return status;
}

/* Outliers of one matrix, capped, into the artifact. */
static enum xfp_status extract(struct xfp_job *job, struct scan *scan, uint32_t m, struct xfp_artifact *artifact,
			       struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, m);
	uint64_t weights = source.view.rows * source.view.cols;
	uint64_t cap = (uint64_t)((xfp_int128)weights * job->parameters.outlier_cap / XFP_NANO);
	struct xfp_moments moments = { 0 };
	struct xfp_outlier_rule rule;
	uint64_t *position = NULL;
	size_t count = 0;
	enum xfp_status status;

	scan->narrow_or_null = xfp_scale_factors(scan->known.balance, scan->known.exponent[m], source.view.cols,
						 scan->narrow, scan->wide)
				       ? scan->narrow
				       : NULL;
	status = moments_of(scan, &source, &moments, err);
	if (status)
		return status;
	rule = xfp_outlier_rule(&moments, job->parameters.outlier_sigma);
	scan->known.mean[m] = rule.mean / XFP_Q_PER_X;
	scan->known.sigma[m] = rule.sigma / XFP_Q_PER_X;
	if (job->parameters.outlier_sigma && rule.sigma > 0)
		status = find_outliers(scan, &source, &rule, &count, err);
	if (status)
		return status;
	xfp_outliers_sort(scan->found, count);
	count = count < cap ? count : cap;
	position = malloc((count + 1) * sizeof *position);
	if (!position)
		return xfp_fail(err, XFP_FAILED, "out of memory");
	for (size_t i = 0; i < count; i++)
		position[i] = scan->found[i].position;
	status = xfp_outliers_append(artifact, &scan->known, m, position, count, err);
	free(position);
	return status;
}

static enum xfp_status produce(struct xfp_job *job, struct scan *scan, const struct xfp_key *key, struct xfp_error *err)
{
	bool finite = scan->known.sigma[0] >= 0;
	struct xfp_artifact artifact = { 0 };
	struct xfp_pending pending = { 0 };
	enum xfp_status status = xfp_job_create(job, key, &pending, &artifact, err);

	if (!status)
		status = xfp_outliers_begin(&artifact, err);
	for (uint32_t m = 0; !status && m < job->unit->experts; m++)
		status = finite ? extract(job, scan, m, &artifact, err)
				: xfp_outliers_append(&artifact, &scan->known, m, NULL, 0, err);
	if (!status)
		status = xfp_outliers_end(&artifact, &scan->known, err);
	if (!status)
		status = xfp_job_publish(job, key, XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, &pending, &artifact, err);
	xfp_artifact_close(&artifact);
	xfp_pending_discard(&pending);
	return status;
}

static enum xfp_status run(struct xfp_job *job, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = job->unit;
	struct xfp_key key = { 0 };
	struct scan scan = { 0 };
	enum xfp_status status;

	if (unit->plan != XFP_PLAN_FIT)
		return xfp_fail(err, XFP_USAGE, "is stored as fp8, which xfp-pack does alone");
	status = scan_unit(job, &scan, err);
	if (!status)
		status = xfp_key_outliers(&(struct xfp_key_source){ unit->dtype, unit->experts, unit->rows, unit->cols,
								    (const uint8_t(*)[16])scan.known.source },
					  &job->parameters, &key, err);
	if (!status && !xfp_job_hit(job, XFP_STAMP_OUTLIERS, key.hex, XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION))
		status = produce(job, &scan, &key, err);
	if (!status)
		status = xfp_stamp_write(job->work, job->number, XFP_STAMP_OUTLIERS, key.hex, err);
	xfp_key_free(&key);
	scan_free(&scan);
	return status;
}

int main(int argc, char **argv)
{
	static const struct xfp_stage stage = {
		.program = "xfp-outlier-extract",
		.name = "outlier-extract",
		.summary = "Digests a unit's matrices, balances their columns and finds their outliers.",
		.run = run,
	};

	return xfp_stage_main(argc, argv, &stage);
}
