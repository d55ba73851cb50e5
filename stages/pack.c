/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.c - xfp-pack: a unit's parts as the bundle will hold them.
 *
 * input    the checkpoint's rows, the unit's choice, the fit and the outliers it was chosen from
 * output   a packed artifact (schemas/packed.h)
 * key      the chosen candidate and the key of the fit that measured it; for fp8 units, which have
 *          no earlier stage, dtype, shape and digests
 */
#include "pack.h"

#include <stdlib.h>
#include <string.h>

#include "outliers.h"
#include "rows.h"

typedef enum xfp_status pack_function(struct xfp_job *job, const struct xfp_choice *choice,
				      struct xfp_artifact *artifact, struct xfp_packed *packed, struct xfp_error *err);

/* Digests of the unit's matrices, by reading them: the first stage of an fp8 unit. */
static enum xfp_status digest_unit(struct xfp_job *job, struct xfp_packed *packed, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t m = 0; !status && m < packed->matrices; m++) {
		struct xfp_matrix_source source = xfp_ledger_source(job->ledger, m);
		struct xfp_digest *digest = xfp_digest_new();
		struct xfp_rows rows = { 0 };

		status = digest ? xfp_rows_open(&source, &rows, err) : xfp_fail(err, XFP_FAILED, "out of memory");
		while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count)
			xfp_digest_update(digest, rows.raw, rows.count * rows.cols * rows.element);
		xfp_rows_close(&rows);
		if (digest)
			xfp_digest_final(digest, packed->matrix[m].source);
	}
	return status;
}

/* The same out of the outliers artifact. */
static enum xfp_status copy_digests(struct xfp_job *job, struct xfp_packed *packed, struct xfp_error *err)
{
	struct xfp_artifact artifact = { 0 };
	struct xfp_outliers known = { 0 };
	char key[33];
	enum xfp_status status =
		xfp_job_open(job, XFP_STAMP_OUTLIERS, XFP_OUTLIERS_KIND, XFP_OUTLIERS_VERSION, &artifact, key, err);

	if (!status)
		status = xfp_outliers_read(&artifact, &known, err);
	for (uint32_t m = 0; !status && m < packed->matrices; m++)
		memcpy(packed->matrix[m].source, known.source[m], sizeof packed->matrix[m].source);
	xfp_outliers_free(&known);
	xfp_artifact_close(&artifact);
	return status;
}

static enum xfp_status fp8(struct xfp_job *job, const struct xfp_choice *choice, struct xfp_artifact *artifact,
			   struct xfp_packed *packed, struct xfp_error *err)
{
	(void)choice;
	return xfp_pack_fp8(job, artifact, packed, err);
}

static enum xfp_status keep(struct xfp_job *job, const struct xfp_choice *choice, struct xfp_artifact *artifact,
			    struct xfp_packed *packed, struct xfp_error *err)
{
	enum xfp_status status = copy_digests(job, packed, err);

	(void)choice;
	return status ? status : xfp_pack_keep(job, artifact, packed, err);
}

static enum xfp_status produce(struct xfp_job *job, pack_function *pack, const struct xfp_choice *choice,
			       struct xfp_packed *packed, const struct xfp_key *key, struct xfp_error *err)
{
	struct xfp_artifact artifact = { 0 };
	struct xfp_pending pending = { 0 };
	enum xfp_status status = xfp_job_create(job, key, &pending, &artifact, err);

	for (uint32_t m = 0; m < packed->matrices; m++) {
		packed->matrix[m].mode = packed->mode;
		packed->matrix[m].k = packed->k;
	}
	if (!status)
		status = pack(job, choice, &artifact, packed, err);
	if (!status)
		status = xfp_packed_end(&artifact, packed, err);
	if (!status)
		status = xfp_job_publish(job, key, XFP_PACKED_KIND, XFP_PACKED_VERSION, &pending, &artifact, err);
	xfp_artifact_close(&artifact);
	xfp_pending_discard(&pending);
	return status;
}

static enum xfp_status read_choice(struct xfp_job *job, struct xfp_choice *choice, struct xfp_error *err)
{
	struct xfp_artifact artifact = { 0 };
	char key[33];
	enum xfp_status status =
		xfp_job_open(job, XFP_STAMP_CHOICE, XFP_CHOICE_KIND, XFP_CHOICE_VERSION, &artifact, key, err);

	if (!status)
		status = xfp_choice_read(&artifact, choice, err);
	xfp_artifact_close(&artifact);
	return status;
}

/* The key of an fp8 unit follows from its digests, which the packed matrices carry. */
static enum xfp_status fp8_key(const struct xfp_ledger_unit *unit, const struct xfp_packed *packed, struct xfp_key *key,
			       struct xfp_error *err)
{
	uint8_t(*source)[16] = malloc(packed->matrices * sizeof *source);
	enum xfp_status status;

	if (!source)
		return xfp_fail(err, XFP_FAILED, "out of memory");
	for (uint32_t m = 0; m < packed->matrices; m++)
		memcpy(source[m], packed->matrix[m].source, sizeof source[m]);
	status = xfp_key_fp8(&(struct xfp_key_source){ unit->dtype, unit->experts, unit->rows, unit->cols,
						       (const uint8_t(*)[16])source },
			     key, err);
	free(source);
	return status;
}

static enum xfp_status run(struct xfp_job *job, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = job->unit;
	struct xfp_packed packed = {
		.mode = XFP_MODE_FP8, .matrices = unit->experts, .rows = unit->rows, .cols = unit->cols
	};
	struct xfp_choice choice = { 0 };
	struct xfp_key key = { 0 };
	pack_function *pack = fp8;
	enum xfp_status status = XFP_OK;

	packed.matrix = calloc(packed.matrices, sizeof *packed.matrix);
	if (!packed.matrix)
		return xfp_fail(err, XFP_FAILED, "out of memory");
	if (unit->plan == XFP_PLAN_FP8) {
		status = digest_unit(job, &packed, err);
		if (!status)
			status = fp8_key(unit, &packed, &key, err);
	} else {
		status = read_choice(job, &choice, err);
		packed.mode = choice.candidate.mode;
		packed.k = choice.candidate.k;
		pack = packed.mode == XFP_MODE_KEEP ? keep : xfp_pack_v2;
		if (!status)
			status = xfp_key_packed(&choice, &key, err);
	}
	if (!status && !xfp_job_hit(job, XFP_STAMP_PACKED, key.hex, XFP_PACKED_KIND, XFP_PACKED_VERSION))
		status = produce(job, pack, &choice, &packed, &key, err);
	if (!status)
		status = xfp_stamp_write(job->work, job->number, XFP_STAMP_PACKED, key.hex, err);
	xfp_key_free(&key);
	xfp_packed_free(&packed);
	return status;
}

int main(int argc, char **argv)
{
	static const struct xfp_stage stage = {
		.program = "xfp-pack",
		.name = "pack",
		.summary = "Writes a unit's parts, byte for byte as the bundle will hold them.",
		.run = run,
	};

	return xfp_stage_main(argc, argv, &stage);
}
