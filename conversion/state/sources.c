/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/state/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/system/filesystem.h"
#include "cache/key.h"
#include "cache/seal.h"
#include "conversion/state/layers.h"
#include "schemas/digest.h"
#include "schemas/outliers.h"
#include "schemas/packed.h"
#include "schemas/recipe/recipe.h"
#include "stages/quantize/rows.h"

static const struct xfp_source_file *file_of(const struct xfp_ledger *ledger, uint32_t matrix)
{
	return &ledger->files[ledger->tensors[ledger->matrices[matrix].tensor].file];
}

/* Identify a matrix for the manifest: its file and its region in the file. */
static const struct xfp_source_file *place_of(const struct xfp_ledger *ledger, uint32_t matrix, char region[160])
{
	struct xfp_matrix_source at = xfp_ledger_source(ledger, matrix);

	xfp_region_format(&at, region);
	return file_of(ledger, matrix);
}

/* ---- stored digests ---------------------------------------------------------------------------- */

enum xfp_status xfp_sources_find(struct xfp_conversion *c, uint32_t number, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = &c->units.ledger->units[number];
	struct xfp_unit_state *state = &c->units.state[number];
	uint32_t m = 0;

	if (state->known || c->request->rehash || !c->place.manifest)
		return XFP_OK;
	if (!state->source && !(state->source = calloc(unit->experts, sizeof *state->source)))
		return xfp_no_memory(err);
	for (; m < unit->experts; m++) {
		char region[160];
		const struct xfp_source_file *file = place_of(c->units.ledger, unit->first_matrix + m, region);

		if (!xfp_manifest_get_source(c->place.manifest, file->path, &file->identity, region, state->source[m]))
			break;
	}
	state->known = m == unit->experts;
	return XFP_OK;
}

enum xfp_status xfp_sources_files(const struct xfp_conversion *c, uint32_t number, char hex[33], struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = &c->units.ledger->units[number];
	struct xfp_digest *digest = xfp_digest_new();
	uint8_t nothing[16] = { 0 }, seal[16];

	if (!digest)
		return xfp_no_memory(err);
	for (uint32_t m = 0; m < unit->experts; m++) {
		char region[160];
		const struct xfp_source_file *file = place_of(c->units.ledger, unit->first_matrix + m, region);

		xfp_seal_source(file->path, &file->identity, region, nothing, seal);
		xfp_digest_update(digest, seal, sizeof seal);
	}
	xfp_digest_final(digest, seal);
	xfp_hex(seal, sizeof seal, hex);
	return XFP_OK;
}

/* ---- digests in artifacts ---------------------------------------------------------------------- */

/* Check that an artifact was made by a first stage from this unit's weights, given their digest `source`. */
static enum xfp_status check_origin(struct xfp_artifact *artifact, const char *key, const struct xfp_ledger_unit *unit,
				    uint8_t (*source)[16], struct xfp_error *err)
{
	const struct xfp_key_source of = xfp_key_source_of(unit, source);
	struct xfp_artifact_label label;
	enum xfp_status status = xfp_artifact_get_label(artifact, &label, err);
	bool is = false;
	char hex[33];

	if (status)
		return status;
	xfp_key_of_text(label.key_text, hex);
	status = xfp_key_is_of(label.key_text, &of, &is, err);
	if (!status && (strcmp(hex, key) || !is))
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: does not match the weights of %s", artifact->path,
				  xfp_printable(unit->name).text);
	xfp_artifact_label_free(&label);
	return status;
}

/* Read the digests from the artifact of the unit's first stage: the survey or the outliers (same tables) for fitted
 * units, the packed artifact for units packed as fp8 or kept. */
static enum xfp_status read_sources(const struct xfp_conversion *c, const struct xfp_ledger_unit *unit,
				    const char *kind, uint32_t version, const char *key, uint8_t (*source)[16],
				    struct xfp_error *err)
{
	char *path = xfp_store_path(&c->place.store, key);
	struct xfp_artifact artifact = { 0 };
	struct xfp_outliers outliers = { 0 };
	struct xfp_packed packed = { 0 };
	enum xfp_status status =
		path ? xfp_artifact_open(path, kind, version, key, &artifact, err) : xfp_no_memory(err);
	uint32_t count = 0;

	if (!status && unit->plan != XFP_PLAN_FIT) {
		status = xfp_packed_read(&artifact, &packed, err);
		count = packed.matrices;
	} else if (!status) {
		status = xfp_outliers_read(&artifact, &outliers, err);
		count = outliers.matrices;
	}
	if (!status && count != unit->experts)
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: does not match the shape of %s", path,
				  xfp_printable(unit->name).text);
	for (uint32_t m = 0; !status && m < count; m++)
		memcpy(source[m], outliers.source ? outliers.source[m] : packed.matrix[m].source, sizeof source[m]);
	if (!status)
		status = check_origin(&artifact, key, unit, source, err);
	xfp_artifact_close(&artifact);
	xfp_outliers_free(&outliers);
	xfp_packed_free(&packed);
	free(path);
	return status;
}

static bool is_the_same(const struct xfp_source_file *file)
{
	struct xfp_identity now;
	struct stat st;

	if (stat(file->path, &st))
		return false;
	now = xfp_identity_at(file->path, &st);
	return xfp_identity_equal(&now, &file->identity);
}

static void mark_files(const struct xfp_ledger_tensor *tensor, bool *wanted)
{
	const struct xfp_recipe *recipe = tensor->recipe;

	wanted[tensor->file] = true;
	for (uint32_t p = 0; recipe && p < recipe->part_count; p++)
		for (uint32_t k = 0; k < recipe->parts[p].component_count; k++)
			wanted[recipe->parts[p].components[k].file] = true;
}

bool xfp_tensors_unchanged(const struct xfp_ledger *ledger, const uint32_t *tensors, uint32_t count)
{
	bool *wanted = calloc(ledger->file_count + (size_t)1, sizeof *wanted), same = wanted != NULL;

	for (uint32_t i = 0; wanted && i < count; i++)
		mark_files(&ledger->tensors[tensors[i]], wanted);
	for (uint32_t f = 0; same && f < ledger->file_count; f++)
		same = !wanted[f] || is_the_same(&ledger->files[f]);
	free(wanted);
	return same;
}

static bool unit_unchanged(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit)
{
	uint32_t *tensors = calloc(unit->experts + (size_t)1, sizeof *tensors);
	bool same;

	for (uint32_t m = 0; tensors && m < unit->experts; m++)
		tensors[m] = ledger->matrices[unit->first_matrix + m].tensor;
	same = tensors && xfp_tensors_unchanged(ledger, tensors, unit->experts);
	free(tensors);
	return same;
}

/* Report that stored digests differ from those of the weights: a file changed with unchanged times, or the memory is
 * faulty. Everything derived from them is computed again. */
static void report_corrected(const struct xfp_conversion *c, const struct xfp_ledger_unit *unit, uint8_t (*source)[16],
			     uint8_t (*was)[16])
{
	for (uint32_t m = 0; m < unit->experts; m++) {
		uint32_t index = unit->first_matrix + m;
		const struct xfp_ledger_tensor *tensor =
			&c->units.ledger->tensors[c->units.ledger->matrices[index].tensor];

		if (!memcmp(source[m], was[m], sizeof source[m]))
			continue;
		XFP_NOTIFY(c, .kind = XFP_NOTICE_SOURCE_CORRECTED, .name = file_of(c->units.ledger, index)->path,
			   .text = tensor->name);
		return;
	}
}

enum xfp_status xfp_sources_record(struct xfp_conversion *c, uint32_t number, const char *kind, uint32_t version,
				   const char *key, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = &c->units.ledger->units[number];
	struct xfp_unit_state *state = &c->units.state[number];
	uint8_t(*source)[16] = calloc(unit->experts, sizeof *source);
	enum xfp_status status = source ? read_sources(c, unit, kind, version, key, source, err) : xfp_no_memory(err);

	if (status || !unit_unchanged(c->units.ledger, unit)) {
		free(source);
		return status == XFP_BAD_INPUT ? XFP_OK : status;
	}
	if (state->known && memcmp(source, state->source, unit->experts * sizeof *source)) {
		report_corrected(c, unit, source, state->source);
		xfp_layers_invalidate_all(c);
	}
	free(state->source);
	state->source = source;
	state->known = true;
	for (uint32_t m = 0; !status && m < unit->experts; m++) {
		char region[160];
		const struct xfp_source_file *file = place_of(c->units.ledger, unit->first_matrix + m, region);

		status =
			xfp_manifest_put_source(c->place.manifest, file->path, &file->identity, region, source[m], err);
	}
	return status;
}

void xfp_sources_invalidate(struct xfp_conversion *c, uint32_t number)
{
	const struct xfp_ledger_unit *unit = &c->units.ledger->units[number];

	c->units.state[number].known = false;
	for (uint32_t m = 0; m < unit->experts; m++) {
		char region[160];
		const struct xfp_source_file *file = place_of(c->units.ledger, unit->first_matrix + m, region);

		xfp_manifest_remove_source(c->place.manifest, file->path, region, NULL);
	}
}
