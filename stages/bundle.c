/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle.c - xfp-bundle: from all units' packed artifacts, kept tensors and small files to the bundle.
 *
 * An executable of its own, so that the unit stages, which start thousands of times, do not load
 * libarchive. Fates and reasons become final here: a tensor whose units all stayed at source precision counts as
 * kept, whatever the ledger planned.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "schemas/bundle.h"
#include "schemas/packed.h"
#include "schemas/surveyed.h"
#include "stages/stage.h"
#include "stages/work/decided.h"

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

/* Why a unit is stored at source precision; allocated. */
static char *why_kept(const struct assembly *a, const struct xfp_ledger_unit *unit)
{
	struct xfp_policy policy = xfp_policy_of_unit(&a->parameters, unit);
	const char *class = xfp_class_name(unit->class_),
		   *or_nonfinite = a->parameters.on_nonfinite == XFP_NONFINITE_KEEP
					   ? " (or it has weights that are no numbers)"
					   : "";
	char floor[24], *by, *reason;

	switch (unit->plan) {
	case XFP_PLAN_FP8:
		return xfp_formatted("%s: kept at source precision, which fp8 would not hold or not undercut", class);
	case XFP_PLAN_KEEP:
		by = xfp_policy_format_by(&a->parameters, &policy);
		if (!by && (policy.format_by >= 0 || policy.format_by == XFP_BY_CLASS))
			return NULL;
		if (!by)
			return xfp_formatted("%s: kept as asked for", class);
		reason = xfp_formatted("%s: kept as asked for by %s", class, by);
		free(by);
		return reason;
	default:
		if (policy.fixed)
			return xfp_formatted("%s: kept at source precision, %s bits would take no less%s", class,
					     xfp_bits_format(policy.format.bits, floor), or_nonfinite);
		return xfp_formatted("%s: kept at source precision, no smaller candidate meets the floor %s%s", class,
				     xfp_decimal_format(policy.floor, XFP_NANO, floor), or_nonfinite);
	}
}

/* One tensor's fate, seen from one of its units. */
static enum xfp_status settle(struct assembly *a, uint32_t u, struct xfp_ledger_tensor *tensor, struct xfp_error *err)
{
	const struct xfp_packed *packed = &a->packed[u];
	const struct xfp_ledger_unit *unit = &a->ledger->units[u];
	char *reason;

	if (packed->mode == XFP_MODE_KEEP && tensor->fate == XFP_FATE_QUANTIZED)
		return XFP_OK; /* another unit of it is quantized */
	if (packed->mode == XFP_MODE_KEEP)
		reason = why_kept(a, unit);
	else if (packed->mode == XFP_MODE_FP8)
		reason = xfp_formatted("%s: fp8, one scale a row", xfp_class_name(unit->class_));
	else
		reason = xfp_formatted("%s: %s, %" PRIu32 " bits", xfp_class_name(unit->class_),
				       xfp_mode_name((enum xfp_mode)packed->mode), packed->k);
	if (!reason)
		return xfp_no_memory(err);
	free(tensor->reason);
	tensor->reason = reason;
	tensor->fate = packed->mode == XFP_MODE_KEEP ? XFP_FATE_KEPT : XFP_FATE_QUANTIZED;
	return XFP_OK;
}

static enum xfp_status settle_fates(struct assembly *a, struct xfp_error *err)
{
	struct xfp_ledger *ledger = a->ledger;
	enum xfp_status status = XFP_OK;

	for (uint32_t t = 0; t < ledger->tensor_count; t++)
		if (ledger->tensors[t].fate == XFP_FATE_QUANTIZED)
			ledger->tensors[t].fate = XFP_FATE_KEPT; /* until a unit says otherwise */
	for (uint32_t u = 0; u < ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &ledger->units[u];

		for (uint32_t m = 0; !status && m < unit->experts; m++)
			status = settle(a, u, &ledger->tensors[ledger->matrices[unit->first_matrix + m].tensor], err);
	}
	return status;
}

/* xfp.json: what it takes to make the same bundle again, and nothing else. */
static enum xfp_status describe(struct assembly *a, struct xfp_error *err)
{
	char *parameters = xfp_parameters_to_json(&a->parameters);
	json_t *algorithms = json_object(), *values = parameters ? json_loads(parameters, 0, NULL) : NULL, *root = NULL;
	bool ok = algorithms && values;
	char *text;

	for (int i = 0; ok && i < XFP_ALGORITHMS; i++)
		if (xfp_algorithm_decides(&xfp_algorithms[i], &a->parameters))
			ok = !json_object_set_new(algorithms, xfp_algorithms[i].name,
						  json_integer(xfp_algorithms[i].version));
	if (ok)
		root = json_pack("{s:s, s:i, s:s, s:O, s:O}", "format", "xfp", "version", XFP_BUNDLE_VERSION, "family",
				 a->ledger->family, "algorithms", algorithms, "parameters", values);
	text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;

	a->json = text ? xfp_formatted("%s\n", text) : NULL;
	free(text);
	free(parameters);
	json_decref(algorithms);
	json_decref(values);
	json_decref(root);
	return a->json ? XFP_OK : xfp_no_memory(err);
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
		status = describe(&a, err);
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
