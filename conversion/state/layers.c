/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/state/layers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache/drop.h"
#include "cache/key.h"
#include "conversion/state/present.h"
#include "conversion/state/sources.h"
#include "schemas/fit.h"
#include "schemas/inputs.h"
#include "stages/work/work.h"

/* ---- tensors ----------------------------------------------------------------------------------- */

static enum xfp_status list_sources(const struct xfp_conversion *c, uint32_t layer, struct xfp_layer_sources *sources,
				    struct xfp_error *err)
{
	return xfp_layer_sources_list(sources, &c->layers.calibration, c->units.ledger, layer, err);
}

/* Identify a whole tensor for the manifest, which stores digests of matrices as well: its file, and its elements as one
 * row. */
static const struct xfp_source_file *place_of(const struct xfp_ledger *ledger, uint32_t number, char region[168])
{
	const struct xfp_ledger_tensor *tensor = &ledger->tensors[number];
	struct xfp_matrix_source all = { .dtype = tensor->dtype,
					 .offset = tensor->offset,
					 .view = { .rows = 1, .cols = 1, .col_stride = 1 },
					 .recipe = tensor->recipe,
					 .files = ledger->files };

	for (uint32_t i = 0; i < tensor->rank; i++)
		all.view.cols *= tensor->shape[i];
	memcpy(region, "TENSOR ", 7);
	xfp_region_format(&all, region + 7);
	return &ledger->files[tensor->file];
}

enum digest_use { GET_DIGESTS, PUT_DIGESTS, REMOVE_DIGESTS };

/* Get, store or remove the digests of tensors in the manifest. XFP_FAILED without a message: one is missing. */
static enum xfp_status use_digests(struct xfp_conversion *c, struct xfp_layer_sources *sources, enum digest_use use,
				   struct xfp_error *err)
{
	struct xfp_manifest *manifest = c->place.manifest;
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < sources->count; i++) {
		char region[168];
		const struct xfp_source_file *file = place_of(c->units.ledger, sources->tensor[i], region);
		uint8_t *digest = sources->source[i].digest;

		if (use == REMOVE_DIGESTS)
			xfp_manifest_remove_source(manifest, file->path, region, NULL);
		else if (use == PUT_DIGESTS)
			status = xfp_manifest_put_source(manifest, file->path, &file->identity, region, digest, err);
		else if (!xfp_manifest_get_source(manifest, file->path, &file->identity, region, digest))
			status = XFP_FAILED;
	}
	return status;
}

/* ---- digests ----------------------------------------------------------------------------------- */

static enum xfp_status find_digest(struct xfp_conversion *c, uint32_t layer, struct xfp_error *err)
{
	struct xfp_layer_state *state = &c->layers.state[layer];
	struct xfp_layer_sources sources;
	enum xfp_status status;

	if (state->known || c->request->rehash || !c->place.manifest)
		return XFP_OK;
	if ((status = list_sources(c, layer, &sources, err)))
		return status;
	if (!use_digests(c, &sources, GET_DIGESTS, NULL) &&
	    !(status = xfp_inputs_digest(sources.source, sources.count, state->digest, err)))
		state->known = true;
	xfp_layer_sources_free(&sources);
	return status;
}

/* Find the key of a layer, if that of the layer before and the digest are known. */
static enum xfp_status find_key(struct xfp_conversion *c, uint32_t layer, struct xfp_error *err)
{
	const struct xfp_calibration *calibration = &c->layers.calibration;
	struct xfp_layer_state *state = &c->layers.state[layer];
	const struct xfp_key_layer all = { .previous = layer ? state[-1].key : NULL,
					   .tokens = calibration->sha256,
					   .description = calibration->description,
					   .layer = layer,
					   .digest = state->digest };
	struct xfp_key key = { 0 };
	enum xfp_status status = find_digest(c, layer, err);

	state->key[0] = '\0';
	if (status || !state->known || (layer && !*all.previous))
		return status;
	if (!(status = xfp_key_inputs(&all, &key, err)))
		memcpy(state->key, key.hex, sizeof state->key);
	xfp_key_free(&key);
	return status;
}

/* Copy the digests from an artifact of the same tensors; false if they are others. */
static bool match(const struct xfp_inputs *inputs, uint32_t layer, struct xfp_layer_sources *sources)
{
	bool same = inputs->layer == layer && inputs->source_count == sources->count;

	for (uint32_t i = 0; same && i < sources->count; i++) {
		same = !strcmp(inputs->sources[i].name, sources->source[i].name);
		memcpy(sources->source[i].digest, inputs->sources[i].digest, sizeof inputs->sources[i].digest);
	}
	return same;
}

static enum xfp_status read_digests(const struct xfp_conversion *c, uint32_t layer, const char *key,
				    struct xfp_layer_sources *sources, bool *same, struct xfp_error *err)
{
	char *path = xfp_store_path(&c->place.store, key);
	struct xfp_artifact artifact = { 0 };
	struct xfp_inputs inputs = { 0 };
	enum xfp_status status =
		path ? xfp_artifact_open(path, XFP_INPUTS_KIND, XFP_INPUTS_VERSION, key, &artifact, err)
		     : xfp_no_memory(err);

	if (!status)
		status = xfp_inputs_read(&artifact, &inputs, err);
	*same = !status && match(&inputs, layer, sources);
	xfp_inputs_free(&inputs);
	xfp_artifact_close(&artifact);
	free(path);
	return status;
}

enum xfp_status xfp_layers_record(struct xfp_conversion *c, uint32_t layer, const char *key, struct xfp_error *err)
{
	struct xfp_layer_state *state = &c->layers.state[layer];
	struct xfp_layer_sources sources;
	enum xfp_status status = list_sources(c, layer, &sources, err);
	bool same;

	if (status)
		return status;
	status = read_digests(c, layer, key, &sources, &same, err);
	if (!status && same && xfp_tensors_unchanged(c->units.ledger, sources.tensor, sources.count)) {
		status = xfp_inputs_digest(sources.source, sources.count, state->digest, err);
		state->known = state->in_store = !status;
		if (!status)
			status = use_digests(c, &sources, PUT_DIGESTS, err);
	}
	xfp_layer_sources_free(&sources);
	/* Units of the layer may be prepared before the next round. The manifest is only an index. */
	if (state->known && find_key(c, layer, status ? NULL : err) && !status)
		return XFP_FAILED;
	return status;
}

void xfp_layers_invalidate(struct xfp_conversion *c, uint32_t layer)
{
	struct xfp_layer_sources sources;

	c->layers.state[layer].known = false;
	if (list_sources(c, layer, &sources, NULL))
		return;
	use_digests(c, &sources, REMOVE_DIGESTS, NULL);
	xfp_layer_sources_free(&sources);
}

void xfp_layers_invalidate_all(struct xfp_conversion *c)
{
	for (uint32_t i = 0; i < c->layers.count; i++)
		xfp_layers_invalidate(c, i);
}

/* ---- units and their layers -------------------------------------------------------------------- */

enum xfp_status xfp_layers_begin(struct xfp_conversion *c, const char *work, struct xfp_error *err)
{
	struct xfp_conversion_layers *layers = &c->layers;
	const struct xfp_ledger *ledger = c->units.ledger;
	bool found;
	enum xfp_status status = xfp_calibration_read(work, &layers->calibration, &found, err);

	if (status || !found)
		return status ? status : xfp_fail(err, XFP_FAILED, "%s/%s is missing", work, XFP_CALIBRATION_FILE);
	layers->state = calloc(layers->calibration.layers + (size_t)1, sizeof *layers->state);
	layers->inputs = calloc(layers->calibration.layers + (size_t)1, sizeof *layers->inputs);
	layers->of_unit = calloc(ledger->unit_count + (size_t)1, sizeof *layers->of_unit);
	if (!layers->state || !layers->inputs || !layers->of_unit) {
		xfp_layers_free(c);
		return xfp_no_memory(err);
	}
	layers->count = layers->calibration.layers + 1;
	for (uint32_t u = 0; u < ledger->unit_count; u++)
		if (ledger->units[u].plan != XFP_PLAN_FIT ||
		    !xfp_calibration_unit(&layers->calibration, ledger, u, &layers->of_unit[u]))
			layers->of_unit[u] = XFP_NO_LAYER;
	return XFP_OK;
}

void xfp_layers_free(struct xfp_conversion *c)
{
	xfp_calibration_free(&c->layers.calibration);
	free(c->layers.files);
	free(c->layers.state);
	free(c->layers.inputs);
	free(c->layers.of_unit);
	c->layers = (struct xfp_conversion_layers){ .count = 0 };
}

enum xfp_status xfp_layers_prepare(struct xfp_conversion *c, bool check, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < c->layers.count; i++) {
		struct xfp_layer_state *state = &c->layers.state[i];

		status = find_key(c, i, err);
		state->in_store = !status && xfp_is_present(c, state->key, check);
		state->needed = false;
	}
	return status;
}

const char *xfp_layers_key(const struct xfp_conversion *c, uint32_t unit, const struct xfp_parameters *parameters)
{
	uint32_t layer = xfp_layers_of(c, unit);

	return layer != XFP_NO_LAYER && xfp_fit_wanted(parameters, XFP_FIT_LIBRARY) ? c->layers.state[layer].key : NULL;
}

void xfp_layers_need(struct xfp_conversion *c, uint32_t unit)
{
	c->layers.state[c->layers.of_unit[unit]].needed = true;
}

bool xfp_layers_needed_elsewhere(const struct xfp_conversion *c)
{
	return c->layers.count &&
	       xfp_manifest_has_unfinished(c->place.manifest, c->request->out, c->layers.calibration.sha256);
}

static enum xfp_status stamp(const struct xfp_conversion *c, uint32_t layer, struct xfp_error *err)
{
	const struct xfp_layer_state *state = &c->layers.state[layer];
	const char *work = c->request->work;
	char present[33] = "";

	xfp_stamp_read(work, XFP_LAYER | layer, XFP_STAMP_INPUTS, present);
	if (state->in_store && strcmp(present, state->key))
		return xfp_stamp_write(work, XFP_LAYER | layer, XFP_STAMP_INPUTS, state->key, err);
	if (!state->in_store)
		xfp_stamp_remove(work, XFP_LAYER | layer, XFP_STAMP_INPUTS);
	return XFP_OK;
}

/* The size of a layer's artifact: the residual stream as f32, the inputs as bf16 and the experts of each token. */
static uint64_t bytes_of(const struct xfp_conversion *c, uint32_t layer)
{
	const struct xfp_calibration *calibration = &c->layers.calibration;
	const uint64_t hidden = calibration->hidden, experts = calibration->experts_per_token;
	uint64_t token = layer < calibration->layers ? (4 + 2 + 2) * hidden : 2 * hidden;
	bool routed = false;

	for (uint32_t u = 0; u < c->units.ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &c->units.ledger->units[u];
		bool own = !strcmp(unit->role, "o") || !strcmp(unit->role, "out_proj") || !strcmp(unit->role, "down");
		bool stack = unit->experts > 1;
		uint32_t of;

		if (!own || !xfp_calibration_unit(calibration, c->units.ledger, u, &of) || of != layer)
			continue;
		token += 2 * unit->cols * (stack ? experts : 1);
		routed |= stack;
	}
	token += routed ? sizeof(uint32_t) * experts : 0;
	return token * calibration->windows * calibration->length;
}

/* The inputs of two layers exist at a time (drop_cache.h), or of all: with a goal, in a survey, if others need them. */
static void find_bytes(const struct xfp_conversion *c, struct xfp_conversion_layers *layers)
{
	uint64_t sum = 0, before = 0;

	for (uint32_t i = 0; i < layers->count; i++) {
		uint64_t bytes = layers->inputs[i] = xfp_layer_is_missing(&layers->state[i]) ? bytes_of(c, i) : 0;

		sum = layers->stay ? sum + bytes : before + bytes > sum ? before + bytes : sum;
		before = bytes;
	}
	layers->bytes = sum;
}

enum xfp_status xfp_layers_settle(struct xfp_conversion *c, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = c->layers.count; i-- > 1;)
		if (xfp_layer_is_missing(&c->layers.state[i]))
			c->layers.state[i - 1].needed = true;
	c->layers.stay =
		c->request->goal.kind || c->request->survey || (c->place.manifest && xfp_layers_needed_elsewhere(c));
	find_bytes(c, &c->layers);
	for (uint32_t i = 0; !status && !c->request->dry_run && i < c->layers.count; i++)
		status = stamp(c, i, err);
	return status;
}
