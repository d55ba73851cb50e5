/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/state/receipts.h"

#include <stdlib.h>
#include <string.h>

#include "conversion/state/layers.h"
#include "conversion/state/sources.h"
#include "stages/work/receipts.h"

/* Take the source digests from a receipt whose files are unchanged. */
static enum xfp_status adopt_sources(struct xfp_unit_state *state, const struct xfp_receipt *receipt,
				     struct xfp_error *err)
{
	uint32_t count = receipt->packed.matrices;

	if (!state->source && !(state->source = calloc(count, sizeof *state->source)))
		return xfp_no_memory(err);
	for (uint32_t m = 0; m < count; m++)
		memcpy(state->source[m], receipt->packed.matrix[m].source, sizeof state->source[m]);
	state->known = true;
	return XFP_OK;
}

/* Find the unit's source digests; falls back to the receipt if the manifest has lost them. */
static enum xfp_status load_sources(struct xfp_conversion *c, uint32_t number, const struct xfp_receipt *receipt,
				    struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = &c->units.ledger->units[number];
	char files[33];
	enum xfp_status status;

	if (c->units.state[number].known || c->request->rehash || receipt->packed.matrices != unit->experts)
		return XFP_OK;
	status = xfp_sources_files(c, number, files, err);
	return status || strcmp(files, receipt->files) ? status : adopt_sources(&c->units.state[number], receipt, err);
}

/* Receipt key of the unit in its current state. */
static enum xfp_status current_key(const struct xfp_conversion *c, uint32_t number,
				   const struct xfp_parameters *parameters, const struct xfp_policy *policy,
				   struct xfp_key *key, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = &c->units.ledger->units[number];
	const struct xfp_key_source source = xfp_key_source_of(unit, c->units.state[number].source);

	return xfp_key_receipt(&source, unit->plan, xfp_layers_key(c, number, parameters), policy, parameters, key,
			       err);
}

static bool in_cache(const struct xfp_conversion *c, const char *packed)
{
	return c->place.manifest && *packed && xfp_store_has(&c->place.store, packed);
}

/* Discard an outdated receipt, and with it the moved parts if they were all that existed of the unit. */
static void give_up(struct xfp_conversion *c, uint32_t number, bool moved)
{
	c->drop.moved_stale += moved;
	if (!c->request->dry_run)
		xfp_receipt_remove(c->request->work, number);
}

static enum xfp_status judge(struct xfp_conversion *c, uint32_t number, struct xfp_receipt *receipt, const char *key,
			     const struct xfp_parameters *parameters, const struct xfp_policy *policy, bool *taken,
			     struct xfp_error *err)
{
	struct xfp_unit_state *state = &c->units.state[number];
	char keys[XFP_STAMPS][33];
	struct xfp_key now = { 0 };
	enum xfp_status status = current_key(c, number, parameters, policy, &now, err);
	bool sound = xfp_receipt_keys(receipt, keys), there = sound && in_cache(c, keys[XFP_STAMP_PACKED]),
	     moved = c->drop.moved_usable && !there,
	     current = sound && !c->request->goal.kind && !status && !strcmp(now.hex, key) &&
		       receipt->chosen == (c->units.ledger->units[number].plan == XFP_PLAN_FIT);

	xfp_key_free(&now);
	if (status)
		return status;
	if (!current || (!there && !moved)) {
		give_up(c, number, moved);
		return XFP_OK;
	}
	memcpy(state->key, keys, sizeof keys);
	state->choice = receipt->choice;
	state->decided = receipt->chosen;
	state->nonfinite = receipt->nonfinite;
	state->moved = moved;
	*taken = true;
	return XFP_OK;
}

enum xfp_status xfp_receipt_apply(struct xfp_conversion *c, uint32_t number, const struct xfp_parameters *parameters,
				  const struct xfp_policy *policy, bool *taken, struct xfp_error *err)
{
	const char *inputs = xfp_layers_key(c, number, parameters);
	struct xfp_receipt receipt;
	enum xfp_status status;
	char key[33];

	*taken = false;
	if ((status = xfp_receipt_find(c->request->work, number, &receipt, key, NULL)) == XFP_DAMAGED) {
		give_up(c, number, c->drop.moved_usable);
		return XFP_OK;
	}
	/* An unreadable receipt is ignored and kept; its artifacts are made again. */
	if (status || !*key)
		return XFP_OK;
	/* Until the key of the layer is known, the receipt cannot be judged. */
	if (!(status = load_sources(c, number, &receipt, err)) && c->units.state[number].known && (!inputs || *inputs))
		status = judge(c, number, &receipt, key, parameters, policy, taken, err);
	xfp_receipt_free(&receipt);
	return status;
}

/* Read the tables of the packed artifact. */
static enum xfp_status read_packed(const struct xfp_conversion *c, const char *key, struct xfp_packed *packed,
				   struct xfp_error *err)
{
	char *path = xfp_store_path(&c->place.store, key);
	struct xfp_artifact artifact = { 0 };
	enum xfp_status status =
		path ? xfp_artifact_open(path, XFP_PACKED_KIND, XFP_PACKED_VERSION, key, &artifact, err)
		     : xfp_no_memory(err);

	if (!status)
		status = xfp_packed_read(&artifact, packed, err);
	xfp_artifact_close(&artifact);
	free(path);
	return status;
}

enum xfp_status xfp_receipt_make(struct xfp_conversion *c, uint32_t number, const struct xfp_parameters *parameters,
				 const struct xfp_policy *policy, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = &c->units.ledger->units[number];
	struct xfp_unit_state *state = &c->units.state[number];
	struct xfp_receipt receipt = { .choice = state->choice,
				       .chosen = unit->plan == XFP_PLAN_FIT,
				       .nonfinite = state->nonfinite };
	struct xfp_key key = { 0 };
	enum xfp_status status;

	if (!state->done || !state->known || state->receipt)
		return XFP_OK;
	(void)((status = read_packed(c, state->key[XFP_STAMP_PACKED], &receipt.packed, err)) ||
	       (status = xfp_sources_files(c, number, receipt.files, err)) ||
	       (status = current_key(c, number, parameters, policy, &key, err)));
	if (!status && !(receipt.keys = xfp_receipt_keys_text(state->key)))
		status = xfp_no_memory(err);
	if (!status)
		status = xfp_receipt_publish(c->request->work, number, unit->name, &key, &receipt, err);
	state->receipt = !status;
	xfp_key_free(&key);
	xfp_receipt_free(&receipt);
	return status;
}
