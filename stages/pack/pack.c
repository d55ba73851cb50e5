/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c - xfp-pack: create a unit's parts as stored in the bundle.
 *
 * input    the checkpoint's rows, the unit's choice, the fit and the outliers it was chosen from
 * output   a packed artifact (schemas/packed.h)
 * key      the chosen candidate and the key of the fit that measured it; for kept and for fp8 units, whether or not
 *          an earlier stage chose that, dtype, shape and digests
 */
#include "stages/pack/pack.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "schemas/outliers.h"
#include "stages/pack/chosen.h"
#include "stages/quantize/rows.h"
#include "stages/quantize/scan.h"

/* Obstacles to fp8, found while reading a unit without an earlier stage. */
struct obstacles {
	uint64_t nonfinite; /* weights that are NaN or infinite */
	uint64_t vanishing; /* nonzero rows whose fp8 scale would be zero */
};

static void check_row(struct obstacles *found, const float *w, uint64_t cols)
{
	float largest = 0;

	for (uint64_t c = 0; c < cols; c++) {
		float magnitude = w[c] < 0 ? -w[c] : w[c];

		found->nonfinite += !(magnitude <= FLT_MAX);
		largest = magnitude > largest ? magnitude : largest;
	}
	found->vanishing += largest > 0 && largest / 448 == 0;
}

static enum xfp_status check_matrix(const struct xfp_matrix_source *source, struct obstacles *found, uint8_t out[16],
				    struct xfp_error *err)
{
	struct xfp_rows rows = { 0 };
	float *w = xfp_row_new(source->view.cols);
	enum xfp_status status = w ? xfp_rows_open_first(source, out, &rows, err) : xfp_no_memory(err);

	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
		for (uint64_t r = 0; r < rows.count; r++) {
			xfp_rows_load(&rows, r, w);
			check_row(found, w, rows.cols);
		}
	}
	xfp_rows_close(&rows);
	free(w);
	return status;
}

static enum xfp_status check_unit(struct xfp_job *job, struct xfp_packed *packed, struct obstacles *found,
				  struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t m = 0; !status && m < packed->matrices; m++) {
		struct xfp_matrix_source source = xfp_ledger_source(job->ledger, m);

		status = check_matrix(&source, found, packed->matrix[m].source, err);
		if (!status && found->nonfinite && job->unit->plan == XFP_PLAN_FP8 &&
		    job->parameters.on_nonfinite == XFP_NONFINITE_FAIL)
			status = xfp_fail_nonfinite(err, source.tensor, found->nonfinite);
	}
	return status;
}

/* Copy the digests of the unit's matrices from an outliers artifact. */
static enum xfp_status copy_digests(struct xfp_artifact *artifact, struct xfp_packed *packed, struct xfp_error *err)
{
	struct xfp_outliers known = { 0 };
	enum xfp_status status = xfp_outliers_read(artifact, &known, err);

	for (uint32_t m = 0; !status && m < packed->matrices; m++)
		memcpy(packed->matrix[m].source, known.source[m], sizeof packed->matrix[m].source);
	xfp_outliers_free(&known);
	return status;
}

/* The input of an artifact. */
struct pack_making {
	struct xfp_job *job;
	const struct xfp_choice *choice;
	struct xfp_packed *packed;
};

static enum xfp_status pack(const struct pack_making *making, struct xfp_artifact *artifact, struct xfp_error *err)
{
	switch (making->packed->mode) {
	case XFP_MODE_KEEP:
		return xfp_pack_keep(making->job, artifact, making->packed, err);
	case XFP_MODE_FP8:
		return xfp_pack_fp8(making->job, artifact, making->packed, err);
	case XFP_MODE_V2:
		return xfp_pack_v2(making->job, making->choice, artifact, making->packed, err);
	default:
		return xfp_pack_groups(making->job, making->choice, artifact, making->packed, err);
	}
}

static enum xfp_status fill(void *own, struct xfp_artifact *artifact, struct xfp_error *err)
{
	struct xfp_packed *packed = ((struct pack_making *)own)->packed;
	enum xfp_status status;

	for (uint32_t m = 0; m < packed->matrices; m++) {
		packed->matrix[m].mode = packed->mode;
		packed->matrix[m].k = packed->k;
	}
	status = pack(own, artifact, err);
	return status ? status : xfp_packed_end(artifact, packed, err);
}

static enum xfp_status read_choice(struct xfp_job *job, struct xfp_choice *choice, struct xfp_error *err)
{
	struct xfp_artifact artifact = { 0 };
	char key[33];
	enum xfp_status status = xfp_job_open(job, XFP_STAMP_CHOICE, &artifact, key, err);

	if (!status)
		status = xfp_choice_read(&artifact, choice, err);
	xfp_artifact_close(&artifact);
	return status;
}

/* The key source of a unit that was read completely, from the digests in `packed`. */
static enum xfp_status source_of(const struct xfp_ledger_unit *unit, const struct xfp_packed *packed,
				 struct xfp_key_source *source, struct xfp_error *err)
{
	uint8_t(*digest)[16] = malloc(packed->matrices * sizeof *digest);

	if (!digest)
		return xfp_no_memory(err);
	for (uint32_t m = 0; m < packed->matrices; m++)
		memcpy(digest[m], packed->matrix[m].source, sizeof digest[m]);
	*source = xfp_key_source_of(unit, digest);
	return XFP_OK;
}

/* Decide about a unit without an earlier stage: kept, or fp8. If fp8 cannot represent it, or would not make it smaller,
 * it is kept. */
static enum xfp_status decide_direct(struct xfp_job *job, struct xfp_packed *packed, struct xfp_error *err)
{
	uint64_t element = xfp_dtype_bits(job->unit->dtype) / 8;
	bool smaller = packed->cols + sizeof(float) < packed->cols * element, fp8;
	struct obstacles found = { 0 };
	enum xfp_status status;

	xfp_watch_more(job->ledger->watcher, xfp_unit_weights(job->unit));
	status = check_unit(job, packed, &found, err);
	fp8 = job->unit->plan == XFP_PLAN_FP8 && smaller && !found.nonfinite && !found.vanishing;
	packed->mode = fp8 ? XFP_MODE_FP8 : XFP_MODE_KEEP;
	return status;
}

/* Follow the choice of a unit. If nothing fitted is needed, copy its digests from the outliers of the choice. */
static enum xfp_status follow_choice(struct xfp_job *job, struct xfp_choice *choice, struct xfp_packed *packed,
				     struct xfp_error *err)
{
	struct xfp_artifact artifact = { 0 };
	enum xfp_status status = read_choice(job, choice, err);
	char key[33];

	packed->mode = choice->candidate.mode;
	packed->k = packed->mode == XFP_MODE_FP8 ? 0 : choice->candidate.k;
	if (status || (packed->mode != XFP_MODE_KEEP && packed->mode != XFP_MODE_FP8))
		return status;
	memcpy(key, choice->fit, sizeof key);
	if (packed->mode == XFP_MODE_FP8)
		status = xfp_chosen_outliers(job, choice, key, err);
	if (!status)
		status = xfp_job_open_key(job, XFP_STAMP_OUTLIERS, key, &artifact, err);
	if (!status)
		status = copy_digests(&artifact, packed, err);
	xfp_artifact_close(&artifact);
	return status;
}

static enum xfp_status run(struct xfp_job *job, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = job->unit;
	struct xfp_packed packed = { .matrices = unit->experts, .rows = unit->rows, .cols = unit->cols };
	struct xfp_key_source source = { 0 };
	struct xfp_choice choice = { 0 };
	struct xfp_key key = { 0 };
	enum xfp_status status;

	packed.matrix = calloc(packed.matrices, sizeof *packed.matrix);
	if (!packed.matrix)
		return xfp_no_memory(err);
	status = unit->plan == XFP_PLAN_FIT ? follow_choice(job, &choice, &packed, err)
					    : decide_direct(job, &packed, err);
	if (!status)
		status = source_of(unit, &packed, &source, err);
	if (!status)
		status = unit->plan == XFP_PLAN_FIT ? xfp_key_packed(&choice, &source, &job->parameters, &key, err)
						    : xfp_key_direct(unit->plan, &source, &job->parameters, &key, err);
	if (!status)
		status = xfp_job_make(job, XFP_STAMP_PACKED, &key, fill, &(struct pack_making){ job, &choice, &packed },
				      err);
	if (!status)
		status = xfp_job_stamp(job, XFP_STAMP_PACKED, key.hex, err);
	xfp_key_free(&key);
	free((void *)source.source);
	xfp_packed_free(&packed);
	return status;
}

int main(int argc, char **argv)
{
	static const struct xfp_stage stage = {
		.step = XFP_STAMP_PACKED,
		.summary = "Writes a unit's parts, byte for byte as the bundle will hold them.",
		.run = run,
	};

	return xfp_stage_main(argc, argv, &stage);
}
