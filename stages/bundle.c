/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle.c - xfp-bundle: write the bundle from all units' packed artifacts, kept tensors and small files.
 *
 * This is a separate executable, so that the unit stages, which start thousands of times, do not load libarchive. Fates
 * and reasons become final here: a tensor whose units all stayed at source precision counts as kept, whatever the
 * ledger planned.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "schemas/bundle.h"
#include "schemas/packed.h"
#include "schemas/surveyed.h"
#include "stages/quantize/rows.h"
#include "stages/stage.h"
#include "stages/work/assigned.h"
#include "stages/work/decided.h"
#include "stages/work/describe.h"
#include "stages/work/moving.h"
#include "stages/work/receipts.h"

#define BLOCK ((size_t)1 << 20)
#define PATIENCE_MS 2000

struct assembly {
	const char *work;
	struct xfp_store store;
	struct xfp_parameters parameters;
	struct xfp_ledger *ledger;
	struct xfp_packed *packed;      /* [units] */
	struct xfp_bundle_unit *units;  /* [units] */
	char (*choice)[33], (*key)[33]; /* [units] keys of the artifacts that it is made from; choice "": none */
	char **path;                    /* [units] of the packed artifacts */
	struct xfp_choice *choices;     /* [units] */
	char *json;
	struct xfp_identity *files; /* [extras] */
	char decided[33];
	bool moves;   /* units are moved: --move was given, or some have moved already */
	bool watched; /* probably started by an xfp that removes moved artifacts */
	struct xfp_stage_progress progress;
	struct xfp_moving moving;
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
	free(a->choices);
	free(a->json);
	free(a->files);
	xfp_ledger_free(a->ledger);
	xfp_parameters_free(&a->parameters);
	xfp_store_close(&a->store);
}

static enum xfp_status fail_changed(const struct assembly *a, struct xfp_error *err)
{
	return xfp_fail(err, XFP_DAMAGED,
			"%s: %s, a unit's stamp, or a small file of the checkpoint was modified; no bundle was written",
			a->work, XFP_PARAMETERS_FILE);
}

static enum xfp_status load_work(struct assembly *a, const char *cache, const char *expected, struct xfp_error *err)
{
	char *path = xfp_path(a->work, XFP_LEDGER_FILE);
	enum xfp_status status = path ? xfp_work_parameters(a->work, &a->parameters, err) : xfp_no_memory(err);

	/* A file with invalid syntax is not as xfp wrote it, either. */
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
	a->choices = calloc(a->ledger->unit_count + 1, sizeof *a->choices);
	return a->packed && a->units && a->choice && a->key && a->path && a->choices ? XFP_OK : xfp_no_memory(err);
}

/* Read the keys from the units' stamps, and check that they and the parameters are as xfp wrote them. */
static enum xfp_status read_stamps(struct assembly *a, const char *expected, struct xfp_error *err)
{
	struct xfp_digest *decided = xfp_decided_begin(&a->parameters);
	enum xfp_status status = XFP_OK;

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
		xfp_decided_end(decided, a->decided);
	return !status && expected && strcmp(a->decided, expected) ? fail_changed(a, err) : status;
}

/* Load a unit's packed artifact. */
static enum xfp_status load_packed(struct assembly *a, uint32_t u, struct xfp_error *err)
{
	struct xfp_bundle_unit *out = &a->units[u];
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
	return status;
}

static enum xfp_status load_choice(struct assembly *a, uint32_t u, struct xfp_choice *choice, struct xfp_error *err)
{
	struct xfp_artifact artifact = { 0 };
	enum xfp_status status =
		xfp_stamped_open(&a->store, a->work, u, XFP_STAMP_CHOICE, a->choice[u], &artifact, err);

	if (!status)
		status = xfp_choice_read(&artifact, choice, err);
	xfp_artifact_close(&artifact);
	return status;
}

/* For a unit whose artifacts are partly or completely gone, find the receipt, if it is for these artifacts. */
static enum xfp_status find_receipt(struct assembly *a, uint32_t u, struct xfp_receipt *receipt, bool *found,
				    struct xfp_error *err)
{
	bool fit = a->ledger->units[u].plan == XFP_PLAN_FIT;
	char basis[33], key[XFP_STAMPS][33];
	enum xfp_status status;

	*found = false;
	if (xfp_store_has(&a->store, a->key[u]) && (!fit || xfp_store_has(&a->store, a->choice[u])))
		return XFP_OK;
	status = xfp_receipt_find(a->work, u, receipt, basis, err);
	*found = !status && *basis && receipt->chosen == fit && xfp_receipt_keys(receipt, key) &&
		 !strcmp(key[XFP_STAMP_PACKED], a->key[u]) && !strcmp(key[XFP_STAMP_CHOICE], a->choice[u]);
	if (status == XFP_DAMAGED)
		xfp_receipt_remove(a->work, u);
	/* Without a receipt, the missing artifacts are the error. */
	return status == XFP_DAMAGED ? XFP_OK : status;
}

static enum xfp_status load_unit(struct assembly *a, uint32_t u, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = &a->ledger->units[u];
	struct xfp_bundle_unit *out = &a->units[u];
	struct xfp_choice *choice = &a->choices[u];
	struct xfp_receipt receipt = { 0 };
	bool found;
	enum xfp_status status = find_receipt(a, u, &receipt, &found, err);

	choice->met = 1;
	if (!status && unit->plan == XFP_PLAN_FIT) {
		if (found)
			*choice = receipt.choice;
		else
			status = load_choice(a, u, choice, err);
	}
	if (!status && found && !xfp_store_has(&a->store, a->key[u])) {
		a->packed[u] = receipt.packed;
		receipt.packed = (struct xfp_packed){ 0 };
		a->path[u] = xfp_formatted("%s/u%06" PRIu32 "-receipt", a->work, u);
		out->moved = a->moves = true;
		status = a->path[u] ? XFP_OK : xfp_no_memory(err);
	} else if (!status) {
		status = load_packed(a, u, err);
	}
	xfp_receipt_free(&receipt);
	out->unit = unit;
	out->packed = &a->packed[u];
	out->path = a->path[u];
	out->floor = (double)choice->floor / XFP_NANO;
	out->met = choice->met;
	return status;
}

/* Set the final fate of each tensor, according to the artifacts. */
static enum xfp_status settle_fates(struct assembly *a, struct xfp_error *err)
{
	struct xfp_stored_form *taken = calloc(a->ledger->unit_count + (size_t)1, sizeof *taken);
	enum xfp_status status = taken ? XFP_OK : xfp_no_memory(err);

	for (uint32_t u = 0; !status && u < a->ledger->unit_count; u++)
		taken[u] = (struct xfp_stored_form){ (enum xfp_mode)a->packed[u].mode, a->packed[u].k };
	if (!status)
		status = xfp_fates_settle(a->ledger, &a->parameters, taken, err);
	free(taken);
	return status;
}

static enum xfp_status describe(struct assembly *a, struct xfp_error *err)
{
	const struct xfp_output_measure **outputs = calloc(a->ledger->unit_count + (size_t)1, sizeof *outputs);

	for (uint32_t u = 0; outputs && u < a->ledger->unit_count; u++)
		outputs[u] = a->choices[u].calibrated ? &a->choices[u].output : NULL;
	a->json = outputs ? xfp_describe(a->ledger, &a->parameters, outputs) : NULL;
	free(outputs);
	return a->json ? XFP_OK : xfp_no_memory(err);
}

static enum xfp_status load_units(struct assembly *a, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	/* Check all units: another run then makes all damaged ones again at once. */
	for (uint32_t u = 0; (!status || status == XFP_DAMAGED) && u < a->ledger->unit_count; u++) {
		enum xfp_status one = load_unit(a, u, err);

		if (!status || (one && one != XFP_DAMAGED))
			status = one;
	}
	return status;
}

/* ---- units moved into the bundle ----------------------------------------------------------------- */

/* A moved unit is lost: it is made again. */
static void mark_lost(void *own, uint32_t u)
{
	const struct assembly *a = own;

	xfp_receipt_remove(a->work, u);
	xfp_stamp_remove(a->work, u, XFP_STAMP_PACKED);
}

static enum xfp_status begin(void *own, const char layout[33], bool *fresh, struct xfp_error *err)
{
	struct assembly *a = own;
	uint32_t lost = 0;

	*fresh = strcmp(a->moving.layout, layout);
	memcpy(a->moving.decided, a->decided, sizeof a->moving.decided);
	/* A pending file that was complete but not renamed is checked like any other. */
	if (*fresh || *a->moving.sha256)
		a->moving.units = 0;
	*a->moving.sha256 = 0;
	if (!*fresh)
		return XFP_OK;
	memcpy(a->moving.layout, layout, sizeof a->moving.layout);
	for (uint32_t u = 0; u < a->ledger->unit_count; u++)
		if (a->units[u].moved) {
			mark_lost(a, u);
			lost++;
		}
	return lost ? xfp_fail(err, XFP_DAMAGED,
			       "the pending bundle has different units: %" PRIu32
			       " moved units are made again, and the file is restarted",
			       lost)
		    : XFP_OK;
}

/* Wait until xfp has removed moved artifacts, so that the disk need not hold both copies. */
static void wait_for_room(struct assembly *a)
{
	for (int tries = PATIENCE_MS; a->watched && !xfp_moving_acknowledged(a->work, a->moving.units); tries--) {
		a->watched = tries;
		usleep(1000);
	}
}

/* Sync receipts first: once the record lists the units, their artifacts are removed. */
static enum xfp_status synced(void *own, uint32_t units, struct xfp_error *err)
{
	struct assembly *a = own;
	enum xfp_status status;

	if (units <= a->moving.units)
		return XFP_OK;
	status = xfp_receipts_sync(a->work, a->moving.units, units, err);
	a->moving.units = units;
	if (!status)
		status = xfp_moving_write(a->work, &a->moving, err);
	if (!status)
		wait_for_room(a);
	return status;
}

static enum xfp_status complete(void *own, const char sha256[65], struct xfp_error *err)
{
	struct assembly *a = own;

	memcpy(a->moving.sha256, sha256, sizeof a->moving.sha256);
	return xfp_moving_write(a->work, &a->moving, err);
}

/* The SHA-256 of a file in hexadecimal; "" if the file does not exist. */
static enum xfp_status digest_file(const char *path, char hex[65], struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	uint8_t *block = malloc(BLOCK), sha256[32];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct xfp_sha256 state;
	struct stat st;

	*hex = 0;
	xfp_sha256_init(&state);
	if (!block)
		status = xfp_no_memory(err);
	else if (fd < 0 ? errno != ENOENT : fstat(fd, &st))
		status = xfp_fail_errno(err, errno, "%s", path);
	for (uint64_t at = 0; !status && fd >= 0 && at < (uint64_t)st.st_size; at += BLOCK) {
		uint64_t left = (uint64_t)st.st_size - at;
		size_t size = left < BLOCK ? (size_t)left : BLOCK;

		if (!(status = xfp_pread(fd, block, size, at, path, err)))
			xfp_sha256_update(&state, block, size);
	}
	xfp_sha256_final(&state, sha256);
	if (!status && fd >= 0)
		xfp_hex(sha256, sizeof sha256, hex);
	if (fd >= 0)
		close(fd);
	free(block);
	return status;
}

/* If an earlier run ended after renaming the bundle but before recording that, only the record is missing. */
static enum xfp_status find_complete(struct assembly *a, const char *path, char sha256[65], struct xfp_error *err)
{
	char *pending = xfp_pending_kept_path(path), found[65];
	bool named = pending && access(pending, F_OK) && errno == ENOENT;
	enum xfp_status status = pending ? XFP_OK : xfp_no_memory(err);

	free(pending);
	*sha256 = 0;
	if (status || !named || !*a->moving.sha256 || strcmp(a->moving.decided, a->decided) ||
	    (status = digest_file(path, found, err)) || strcmp(found, a->moving.sha256))
		return status;
	memcpy(sha256, found, sizeof found);
	return XFP_OK;
}

/* ---- tensors that are packed, and kept ------------------------------------------------------------ */

static enum xfp_status open_elements(void *own, uint32_t tensor, void **reader, struct xfp_error *err)
{
	const struct assembly *a = own;
	const struct xfp_matrix_source source = xfp_ledger_tensor_source(a->ledger, tensor);
	struct xfp_element_reader *opened = NULL;
	enum xfp_status status = xfp_elements_open(&source, &opened, err);

	*reader = opened;
	return status;
}

static enum xfp_status read_elements(void *reader, uint64_t offset, size_t size, void *buf, struct xfp_error *err)
{
	return xfp_elements_read(reader, offset, size, buf, err);
}

static void close_elements(void *reader)
{
	xfp_elements_close(reader);
}

static enum xfp_status write_bundle(struct assembly *a, const struct xfp_all_units_job *whole, char sha256[65],
				    struct xfp_error *err)
{
	const struct xfp_bundle_moving moving = { a, begin, synced, mark_lost, complete };
	const struct xfp_bundle_elements elements = { a, open_elements, read_elements, close_elements };
	const struct xfp_bundle_input input = {
		.json = a->json,
		.ledger = a->ledger,
		.units = a->units,
		.files = a->files,
		.moving = a->moves ? &moving : NULL,
		.elements = &elements,
	};
	enum xfp_status status;
	bool moved;

	xfp_stage_progress_begin(&a->progress, whole->work, a->ledger->unit_count, XFP_BUNDLE_STAGE, 0);
	a->ledger->watcher = &a->progress.watcher;
	status = xfp_bundle_write(whole->path, &input, sha256, err);
	moved = a->moving.units;
	for (uint32_t u = 0; u < a->ledger->unit_count; u++)
		moved |= a->units[u].moved;
	/* If nothing exists only in the pending file, it can be removed. */
	if (status && a->moves && !moved)
		xfp_moving_discard(whole->work, whole->path);
	return status;
}

static enum xfp_status run(const struct xfp_all_units_job *whole, char sha256[65], struct xfp_error *err)
{
	struct assembly a = { .work = whole->work, .moves = whole->move, .watched = whole->move };
	enum xfp_status status = load_work(&a, whole->cache, whole->expected, err);
	bool recorded;

	if (!status)
		status = read_stamps(&a, whole->expected, err);
	if (!status)
		status = xfp_moving_read(whole->work, &a.moving, &recorded, err);
	if (!status)
		status = find_complete(&a, whole->path, sha256, err);
	if (!status && !*sha256) {
		(void)((status = load_units(&a, err)) || (status = settle_fates(&a, err)) ||
		       (status = describe(&a, err)) || (status = write_bundle(&a, whole, sha256, err)));
	}
	if (!status)
		printf("%s  %s\n", sha256, whole->path);
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
