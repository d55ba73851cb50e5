/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle.c - xfp-bundle: from all units' packed artifacts, kept tensors and small files to the bundle.
 *
 * An executable of its own, so that the unit stages, which start thousands of times, do not load
 * libarchive. Fates and reasons become final here: a tensor whose units all stayed at source precision counts as
 * kept, whatever the ledger planned.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "schemas/bundle.h"
#include "schemas/packed.h"
#include "schemas/surveyed.h"
#include "stages/stage.h"
#include "stages/work/assigned.h"
#include "stages/work/decided.h"
#include "stages/work/describe.h"

struct assembly {
	const char *work;
	struct xfp_store store;
	struct xfp_parameters parameters;
	struct xfp_ledger *ledger;
	struct xfp_packed *packed;      /* [units] */
	struct xfp_bundle_unit *units;  /* [units] */
	char (*choice)[33], (*key)[33]; /* [units] of the artifacts that it is made from; choice "": none */
	char **path;                    /* [units] of the packed artifacts */
	char *json;
	struct xfp_identity *files; /* [extras] */
};

static void assembly_free(struct assembly *a)
{
	for (uint32_t u = 0; a->ledger && u < a->ledger->unit_count; u++) {
		if (a->packed)
			xfp_packed_free(&a->packed[u]);
		if (a->path)
			free(a->path[u]);
	}
	free(a->packed);
	free(a->units);
	free(a->choice);
	free(a->key);
	free(a->path);
	free(a->json);
	free(a->files);
	xfp_ledger_free(a->ledger);
	xfp_parameters_free(&a->parameters);
	xfp_store_close(&a->store);
}

static enum xfp_status fail_changed(const struct assembly *a, struct xfp_error *err)
{
	return xfp_fail(err, XFP_DAMAGED,
			"%s: %s or a unit's stamp is not what xfp wrote there, or a small file of the checkpoint "
			"changed; no bundle is made of that",
			a->work, XFP_PARAMETERS_FILE);
}

static enum xfp_status load_work(struct assembly *a, const char *cache, const char *expected, struct xfp_error *err)
{
	char *path = xfp_path(a->work, XFP_LEDGER_FILE);
	enum xfp_status status = path ? xfp_work_parameters(a->work, &a->parameters, err) : xfp_no_memory(err);

	/* What is not even in form is no more what xfp wrote. */
	if (status == XFP_DAMAGED && expected)
		status = fail_changed(a, err);
	if (!status)
		status = xfp_ledger_read(path, &a->ledger, err);
	if (!status)
		status = xfp_assigned_read_all(a->work, a->ledger->unit_count, &a->parameters, err);
	if (!status)
		status = xfp_store_open(cache, &a->store, err);
	free(path);
	if (status)
		return status;
	a->packed = calloc(a->ledger->unit_count + 1, sizeof *a->packed);
	a->units = calloc(a->ledger->unit_count + 1, sizeof *a->units);
	a->choice = calloc(a->ledger->unit_count + 1, sizeof *a->choice);
	a->key = calloc(a->ledger->unit_count + 1, sizeof *a->key);
	a->path = calloc(a->ledger->unit_count + 1, sizeof *a->path);
	return a->packed && a->units && a->choice && a->key && a->path ? XFP_OK : xfp_no_memory(err);
}

/* The keys that the units' stamps name, and whether they and the parameters are what xfp left there. */
static enum xfp_status read_stamps(struct assembly *a, const char *expected, struct xfp_error *err)
{
	struct xfp_digest *decided = xfp_decided_begin(&a->parameters);
	enum xfp_status status = XFP_OK;
	char found[33] = "";

	if (!decided || !(a->files = xfp_decided_files(a->ledger)))
		status = xfp_no_memory(err);
	for (uint32_t f = 0; !status && f < a->ledger->extra_count; f++)
		xfp_decided_file(decided, a->ledger->extras[f], &a->files[f]);
	for (uint32_t u = 0; !status && u < a->ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &a->ledger->units[u];

		status = xfp_stamp_find(a->work, u, XFP_STAMP_PACKED, a->key[u], err);
		if (!status && unit->plan == XFP_PLAN_FIT)
			status = xfp_stamp_find(a->work, u, XFP_STAMP_CHOICE, a->choice[u], err);
		if (!status && (!*a->key[u] || (unit->plan == XFP_PLAN_FIT && !*a->choice[u])))
			status = xfp_fail(err, XFP_DAMAGED, "unit %s is not finished: run the conversion again",
					  xfp_printable(unit->name).text);
		if (!status)
			xfp_decided_unit(decided, a->choice[u], a->key[u]);
	}
	if (decided)
		xfp_decided_end(decided, found);
	return !status && expected && strcmp(found, expected) ? fail_changed(a, err) : status;
}

static enum xfp_status load_unit(struct assembly *a, uint32_t u, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = &a->ledger->units[u];
	struct xfp_bundle_unit *out = &a->units[u];
	struct xfp_choice choice = { .met = 1 };
	struct xfp_artifact artifact = { 0 };
	enum xfp_status status;

	if (!(a->path[u] = xfp_store_path(&a->store, a->key[u])))
		return xfp_no_memory(err);
	status = xfp_stamped_open(&a->store, a->work, u, XFP_STAMP_PACKED, a->key[u], &artifact, err);
	if (!status)
		status = xfp_packed_read(&artifact, &a->packed[u], err);
	for (int part = 0; !status && part < XFP_PARTS; part++) {
		uint64_t bytes = 0;

		if (a->packed[u].bytes[part])
			status = xfp_packed_extent(&artifact, (enum xfp_part)part, &out->offset[part], &bytes, err);
	}
	xfp_artifact_close(&artifact);
	if (!status && unit->plan == XFP_PLAN_FIT) {
		status = xfp_stamped_open(&a->store, a->work, u, XFP_STAMP_CHOICE, a->choice[u], &artifact, err);
		if (!status)
			status = xfp_choice_read(&artifact, &choice, err);
		xfp_artifact_close(&artifact);
	}
	out->unit = unit;
	out->packed = &a->packed[u];
	out->path = a->path[u];
	out->floor = (double)choice.floor / XFP_NANO;
	out->met = choice.met;
	return status;
}

/* What became of each tensor, as the artifacts say. */
static enum xfp_status settle_fates(struct assembly *a, struct xfp_error *err)
{
	struct xfp_form_taken *taken = calloc(a->ledger->unit_count + (size_t)1, sizeof *taken);
	enum xfp_status status = taken ? XFP_OK : xfp_no_memory(err);

	for (uint32_t u = 0; !status && u < a->ledger->unit_count; u++)
		taken[u] = (struct xfp_form_taken){ (enum xfp_mode)a->packed[u].mode, a->packed[u].k };
	if (!status)
		status = xfp_fates_settle(a->ledger, &a->parameters, taken, err);
	free(taken);
	return status;
}

static enum xfp_status load_units(struct assembly *a, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	/* All of them even so: another run then makes everything that is damaged at once. */
	for (uint32_t u = 0; (!status || status == XFP_DAMAGED) && u < a->ledger->unit_count; u++) {
		enum xfp_status one = load_unit(a, u, err);

		if (!status || (one && one != XFP_DAMAGED))
			status = one;
	}
	return status;
}

static enum xfp_status run(const char *work, const char *cache, const char *expected, const char *path, char sha256[65],
			   struct xfp_error *err)
{
	struct assembly a = { .work = work };
	enum xfp_status status = load_work(&a, cache, expected, err);

	if (!status)
		status = read_stamps(&a, expected, err);
	if (!status)
		status = load_units(&a, err);
	if (!status)
		status = settle_fates(&a, err);
	if (!status)
		status = (a.json = xfp_describe(a.ledger, &a.parameters)) ? XFP_OK : xfp_no_memory(err);
	if (!status)
		status = xfp_bundle_write(path, &(struct xfp_bundle_input){ a.json, a.ledger, a.units, a.files },
					  sha256, err);
	if (!status)
		printf("%s  %s\n", sha256, path);
	assembly_free(&a);
	return status;
}

int main(int argc, char **argv)
{
	static const struct xfp_stage stage = {
		.summary = "Writes the bundle of all units, which must be packed, and prints its SHA-256.",
		.run_all = run,
	};

	return xfp_stage_main(argc, argv, &stage);
}
