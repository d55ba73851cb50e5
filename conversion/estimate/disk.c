/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk.c - estimates the bytes that a conversion writes: bundle, artifacts, manifest, work folder.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "conversion/estimate/footprint.h"
#include "conversion/estimate/groups.h"
#include "schemas/bundle.h"
#include "schemas/layout/bundle_layout.h"
#include "schemas/recipe/recipe.h"
#include "stages/quantize/candidates.h"
#include "stages/quantize/target.h"

/* Overhead of files, and sizes of small files, in bytes. */
#define BLOCK 4096u            /* of the file system: the size of a folder or a small file */
#define STORE_FOLDERS 256.0    /* artifacts/00 ... artifacts/ff */
#define OUTLIERS_FIXED 8700u   /* envelope, attributes, tables and HDF5 superblock; positions are extra */
#define OUTLIERS_CHUNK 8192u   /* of positions; the last chunk is partly empty */
#define OUTLIERS_MATRIX 42u    /* digest, exponent, mean, sigma and first index per matrix */
#define FIT_FIXED 7000u        /* envelope, attributes, tables and the table of candidates */
#define FIT_ROW_CANDIDATE 8u   /* one cosine; a codebook is extra */
#define FIT_LIBRARY 700u       /* extra tables of a candidate with a library */
#define FIT_BYTES 600u         /* extra tables of a candidate of v2c */
#define FIT_CODES 600u         /* those of a candidate with codes */
#define CHOICE_FIXED 2600u     /* attributes only */
#define SCALES_FIXED 2200u     /* attributes only */
#define PACKED_FIXED 5700u     /* attributes and digests */
#define PACKED_MATRIX 80u      /* struct xfp_packed_matrix */
#define MANIFEST_FIXED 98304u  /* schema, first pages */
#define MANIFEST_UNIT 3600u    /* database rows of its artifacts, candidates and run, with indexes */
#define MANIFEST_MATRIX 170u   /* region and digest, with the indexes of both */
#define JOURNAL_UNIT 24576u    /* journal pages per unit ... */
#define JOURNAL_MAX (5u << 20) /* ... up to SQLite's checkpoint: 1000 pages and one transaction */
#define RECEIPT_FIXED 12000u   /* a receipt in the work folder */
#define LEDGER_FIXED 8192u
#define WORK_FIXED 32768u /* lock, parameters, lists, the bundle's stamp, the log's first lines */
#define WORK_UNIT 640u    /* lines in events, log and lists, and directory entries of stamps */

/* Size on disk. */
static uint64_t file(uint64_t bytes)
{
	return xfp_align(bytes, BLOCK);
}

/* ---- bundle ------------------------------------------------------------------------------------ */

/* Size of a data member with its header. */
static uint64_t member(uint64_t bytes)
{
	return bytes ? xfp_align(bytes + XFP_TAR_BLOCK, XFP_DATA_ALIGN) : 0;
}

static uint64_t unit_members(const struct xfp_estimate_input *all, uint32_t number, const struct xfp_estimate *e)
{
	const struct xfp_ledger_unit *unit = &all->ledger->units[number];
	uint64_t bytes[XFP_PARTS], sum = 0;

	xfp_estimate_parts(unit, all->parameters, e, bytes);
	for (int p = 0; p < XFP_PARTS; p++)
		sum += member(bytes[p]);
	return sum;
}

/* Total of the small files that the bundle carries, each with `more` bytes and rounded up to `block`. Missing files are
 * skipped. */
static uint64_t files(const struct xfp_ledger *ledger, uint64_t block, uint64_t more)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < ledger->extra_count; i++) {
		char *path = xfp_ledger_extra_path(ledger, i);
		struct stat st;

		if (path && !stat(path, &st))
			bytes += xfp_align((uint64_t)st.st_size, block) + more;
		free(path);
	}
	return bytes;
}

static uint64_t file_members(const struct xfp_ledger *ledger)
{
	return files(ledger, XFP_TAR_BLOCK, 3 * XFP_TAR_BLOCK);
}

uint64_t xfp_footprint_files(const struct xfp_ledger *ledger)
{
	return files(ledger, 1, 0);
}

static uint64_t index_bytes(const struct xfp_ledger *ledger)
{
	uint64_t bytes = sizeof(struct xfp_idx_header) + ledger->matrix_count * sizeof(struct xfp_idx_matrix) +
			 ledger->unit_count * (sizeof(struct xfp_idx_unit) + XFP_PARTS * sizeof(struct xfp_idx_part)) +
			 ledger->tensor_count * (sizeof(struct xfp_idx_tensor) + sizeof(struct xfp_idx_part));

	for (uint32_t i = 0; i < ledger->tensor_count; i++)
		bytes += strlen(ledger->tensors[i].name) + strlen(ledger->tensors[i].reason) + 2;
	for (uint32_t i = 0; i < ledger->unit_count; i++)
		bytes += strlen(ledger->units[i].name) + strlen(ledger->units[i].role) + 2;
	return bytes;
}

uint64_t xfp_footprint_bundle(const struct xfp_estimate_input *all, enum xfp_bound bound)
{
	uint64_t bytes = index_bytes(all->ledger) + file_members(all->ledger) + 2 * XFP_DATA_ALIGN;

	for (uint32_t i = 0; i < all->ledger->unit_count; i++) {
		struct xfp_estimate estimate = xfp_estimate(all, i, bound);

		bytes += unit_members(all, i, &estimate);
	}
	for (uint32_t i = 0; i < all->ledger->tensor_count; i++)
		if (all->ledger->tensors[i].fate == XFP_FATE_KEPT)
			bytes += member(all->ledger->tensors[i].bytes);
	return bytes;
}

/* ---- artifacts --------------------------------------------------------------------------------- */

static uint64_t outliers_artifact(const struct xfp_ledger_unit *unit, uint64_t outliers)
{
	return file(OUTLIERS_FIXED + OUTLIERS_CHUNK + unit->experts * OUTLIERS_MATRIX + unit->cols +
		    outliers * sizeof(uint64_t));
}

static uint64_t survey_artifact(const struct xfp_ledger_unit *unit, const struct xfp_parameters *measured)
{
	struct xfp_candidate list[XFP_MAX_CANDIDATES];
	uint32_t count = xfp_candidates_with(false, measured, measured->bits, list);

	count += xfp_candidates_with(true, measured, measured->bits, list);
	return file(OUTLIERS_FIXED + OUTLIERS_CHUNK + unit->experts * OUTLIERS_MATRIX + unit->cols +
		    xfp_target_thresholds.count * count * sizeof *list);
}

/* Libraries that are fitted with error feedback are `coded`: their codes are stored. */
static uint64_t fit_artifact(const struct xfp_ledger_unit *unit, const struct xfp_parameters *measured,
			     enum xfp_fit_kind kind, uint64_t outliers, bool coded)
{
	struct xfp_candidate list[XFP_MAX_CANDIDATES];
	uint32_t count = xfp_candidates_of(kind, measured, list);
	uint64_t row = 0, fixed = FIT_FIXED;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t code = 2 * xfp_candidate_code(&list[i]);

		row += FIT_ROW_CANDIDATE + (list[i].mode == XFP_MODE_V2 ? code : 0);
		if (list[i].group)
			fixed += FIT_LIBRARY + code + 4 * xfp_candidate_hints(&list[i]);
		if (list[i].mode == XFP_MODE_V2C) {
			fixed += FIT_BYTES;
			row += 1;
		}
		if (list[i].group && coded) {
			fixed += FIT_CODES + outliers * sizeof(uint16_t);
			row += xfp_index_row_bytes(unit->cols, list[i].k);
		}
	}
	row += coded ? xfp_fit_group_bytes(list, count, unit->cols)
		     : xfp_groups_bytes(list, count, unit->cols, xfp_step_wanted(measured, XFP_STAMP_SURVEY, false));
	return file(fixed + unit->experts * unit->rows * row);
}

/* Bytes of artifacts: of one unit that is not done, or the sum over all. */
struct artifact_bytes {
	uint64_t small;  /* survey, scales and choice, which are kept */
	uint64_t fits;   /* --drop-cache removes these once the unit is packed */
	uint64_t packed; /* --drop-cache removes this once it is in the bundle */
	uint64_t inputs; /* inputs of layers: what they add to the peak (inputs_above) */
	uint32_t files;
};

/* Bytes of the unit's missing artifacts. */
static struct artifact_bytes unit_artifacts(const struct xfp_estimate_input *all, uint32_t number, enum xfp_bound bound)
{
	const struct xfp_ledger_unit *unit = &all->ledger->units[number];
	const struct xfp_policy policy = xfp_policy_of_unit(all->parameters, unit);
	const struct xfp_parameters measured = xfp_policy_parameters(all->parameters, &policy);
	struct xfp_estimate estimate = xfp_estimate(all, number, bound);
	uint64_t bytes[XFP_STAMPS] = { 0 };
	struct artifact_bytes sum = { 0 };
	const bool coded = xfp_estimate_feedback(all, number);

	if (unit->plan == XFP_PLAN_FIT) {
		if (xfp_step_wanted(&measured, XFP_STAMP_SURVEY, false))
			bytes[XFP_STAMP_SURVEY] = survey_artifact(unit, &measured);
		if (bytes[XFP_STAMP_SURVEY] && coded)
			bytes[XFP_STAMP_SCALES] = file(SCALES_FIXED);
		bytes[XFP_STAMP_OUTLIERS] = outliers_artifact(unit, estimate.outliers);
		for (enum xfp_stamp s = XFP_STAMP_SURVEY; s < XFP_STAMPS; s++)
			if (xfp_steps[s].fit && xfp_step_wanted(&measured, s, estimate.extended))
				bytes[s] = fit_artifact(unit, &measured, xfp_step_fit(s), estimate.outliers, coded);
		bytes[XFP_STAMP_CHOICE] = file(CHOICE_FIXED);
	}
	bytes[XFP_STAMP_PACKED] = file(PACKED_FIXED + unit->experts * PACKED_MATRIX + estimate.bytes);
	/* Packing a decided unit does not need its measurements, so missing ones do not count. */
	for (int s = all->units[number].decided ? XFP_STAMP_CHOICE : 0; s < XFP_STAMPS; s++) {
		if (!bytes[s] || all->units[number].in_store >> s & 1)
			continue;
		*(s == XFP_STAMP_PACKED                            ? &sum.packed
		  : s <= XFP_STAMP_SCALES || s == XFP_STAMP_CHOICE ? &sum.small
								   : &sum.fits) += bytes[s];
		sum.files++;
	}
	return sum;
}

/* With --drop-cache, only the fits of units in flight exist at a time: `max` keeps the `count` largest, in descending
 * order. */
static void keep_largest(uint64_t *max, unsigned count, uint64_t bytes)
{
	for (unsigned i = 0; i < count; i++)
		if (bytes > max[i]) {
			uint64_t smaller = max[i];

			max[i] = bytes;
			bytes = smaller;
		}
}

/* Bytes of inputs at the peak, beyond those of all artifacts together: while the last but one of the layers is fitted,
 * the artifacts of units in later layers, `later`, do not exist. */
static uint64_t inputs_above(const struct xfp_estimate_input *all, const uint64_t *of_layer)
{
	uint64_t max = 0, later = 0, sum = 0;

	for (uint32_t i = all->layers; i-- > 0;) {
		uint64_t two = all->inputs[i] + (i ? all->inputs[i - 1] : 0);

		sum += all->inputs[i];
		later += of_layer[i];
		if (two > later && two - later > max)
			max = two - later;
	}
	return all->inputs_stay ? sum : max;
}

static struct artifact_bytes all_artifacts(const struct xfp_estimate_input *all, enum xfp_bound bound)
{
	struct artifact_bytes sum = { .small = MANIFEST_FIXED };
	uint64_t journal = 0, *max = calloc(all->dropping + (size_t)1, sizeof *max), flight = 0;
	uint64_t *of_layer = calloc(all->layers + (size_t)1, sizeof *of_layer);

	for (uint32_t i = 0; i < all->ledger->unit_count; i++) {
		const struct xfp_ledger_unit *unit = &all->ledger->units[i];
		struct artifact_bytes one;

		if (all->units[i].done)
			continue;
		one = unit_artifacts(all, i, bound);
		sum.small += one.small + MANIFEST_UNIT + unit->experts * MANIFEST_MATRIX;
		sum.fits += one.fits;
		sum.packed += one.packed;
		sum.files += one.files;
		journal += JOURNAL_UNIT;
		if (max)
			keep_largest(max, all->dropping, one.fits);
		if (of_layer && xfp_estimate_feedback(all, i))
			of_layer[all->layer_of[i]] += one.packed + (all->dropping ? 0 : one.fits);
	}
	for (unsigned i = 0; max && i < all->dropping; i++)
		flight += max[i];
	if (max && all->dropping)
		sum.fits = flight;
	if (of_layer)
		sum.inputs = inputs_above(all, of_layer);
	free(of_layer);
	free(max);
	sum.small += journal < JOURNAL_MAX ? journal : JOURNAL_MAX;
	/* Expected number of store folders used by this many files, whose names are effectively random. */
	sum.small += (uint64_t)(STORE_FOLDERS * (1 - pow(1 - 1 / STORE_FOLDERS, sum.files)) + 3) * BLOCK;
	return sum;
}

/* ---- work folder ------------------------------------------------------------------------------- */

static uint64_t ledger_file(const struct xfp_ledger *ledger)
{
	/* Approximates the file size by the size in memory: records on disk are slightly smaller, and text is extra. */
	uint64_t bytes = LEDGER_FIXED + ledger->tensor_count * sizeof *ledger->tensors +
			 ledger->unit_count * sizeof *ledger->units + ledger->matrix_count * sizeof *ledger->matrices;

	for (uint32_t i = 0; i < ledger->tensor_count; i++) {
		const struct xfp_recipe *recipe = ledger->tensors[i].recipe;

		bytes += strlen(ledger->tensors[i].name) + strlen(ledger->tensors[i].reason);
		bytes += recipe ? sizeof *recipe : 0;
		for (uint32_t p = 0; recipe && p < recipe->part_count; p++)
			bytes += sizeof *recipe->parts +
				 recipe->parts[p].component_count * sizeof *recipe->parts->components;
	}
	return file(bytes);
}

static uint64_t work_bytes(const struct xfp_estimate_input *all, enum xfp_bound bound)
{
	uint64_t bytes = ledger_file(all->ledger) + WORK_FIXED;

	for (uint32_t i = 0; i < all->ledger->unit_count; i++) {
		struct xfp_estimate estimate = xfp_estimate(all, i, bound);
		unsigned stamps = 0;

		for (enum xfp_stamp s = XFP_STAMP_SURVEY; s < XFP_STAMPS; s++)
			stamps += xfp_step_wanted(all->parameters, s, estimate.extended);
		bytes += (all->ledger->units[i].plan == XFP_PLAN_FIT ? stamps : 1) * BLOCK + WORK_UNIT;
		if (all->dropping)
			bytes += file(RECEIPT_FIXED + all->ledger->units[i].experts * PACKED_MATRIX);
	}
	return bytes;
}

/* ---- together ---------------------------------------------------------------------------------- */

uint64_t xfp_footprint_portion(uint64_t bundle)
{
	uint64_t share = bundle / XFP_MOVE_SHARE;

	return share < XFP_MOVE_MAX ? share : XFP_MOVE_MAX;
}

/* Sum over units that are already packed: bytes that leave the cache as the bundle grows, and bytes already moved into
 * it. */
static void sum_moving(const struct xfp_estimate_input *all, enum xfp_bound bound, uint64_t *goes, uint64_t *moved,
		       uint64_t *largest, uint64_t *stays)
{
	for (uint32_t i = 0; i < all->ledger->unit_count; i++) {
		const struct xfp_unit_state *state = &all->units[i];
		struct xfp_estimate estimate = xfp_estimate(all, i, bound);

		if (state->moved)
			*moved += unit_members(all, i, &estimate);
		else if (state->done && !state->stays)
			*goes += estimate.bytes;
		else if (!state->done && state->stays)
			*stays += estimate.bytes;
		*largest = estimate.bytes > *largest ? estimate.bytes : *largest;
	}
}

struct xfp_disk xfp_footprint_disk(const struct xfp_estimate_input *all, enum xfp_bound bound)
{
	const struct artifact_bytes artifacts = all_artifacts(all, bound);
	uint64_t goes = 0, moved = 0, largest = 0, stays = 0, packing, moving;
	struct xfp_disk disk = {
		.bundle = xfp_footprint_bundle(all, bound),
		.artifacts = artifacts.small + artifacts.fits + artifacts.packed + artifacts.inputs,
		.work = work_bytes(all, bound),
	};

	sum_moving(all, bound, &goes, &moved, &largest, &stays);
	disk.bundle -= moved < disk.bundle ? moved : disk.bundle;
	/* Peak is the larger of two moments: all units packed but none in the bundle, and the complete bundle with the
	 * artifacts that have not left the cache yet. */
	packing = disk.artifacts + disk.work;
	moving = disk.bundle + packing - (all->inputs_stay ? 0 : artifacts.inputs);
	disk.together = packing > moving ? packing : moving;
	if (!all->dropping)
		return disk;
	moving = disk.bundle + artifacts.small + disk.work + stays + largest + xfp_footprint_portion(disk.bundle);
	moving -= goes < moving ? goes : moving;
	disk.together = packing > moving ? packing : moving;
	return disk;
}
