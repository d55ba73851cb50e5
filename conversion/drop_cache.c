/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/drop_cache.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache/drop.h"
#include "cache/lock.h"
#include "conversion/launch/jobs.h"
#include "conversion/state/layers.h"
#include "conversion/state/prepare_unit.h"
#include "conversion/state/present.h"
#include "conversion/state/receipts.h"
#include "stages/work/fits.h"
#include "stages/work/moving.h"
#include "stages/work/receipts.h"

struct xfp_dropping {
	struct xfp_key_list needed; /* keys that runs into other outputs used */
	int64_t version;            /* version of the manifest at that time */
	bool known;                 /* the manifest could be read */
	uint32_t moved;             /* units [0, moved) are in the bundle */
	uint64_t freed;
};

static struct xfp_dropping *dropping_of(struct xfp_conversion *c)
{
	if (!c->drop.dropping && (c->drop.dropping = calloc(1, sizeof *c->drop.dropping)))
		c->drop.dropping->version = -1;
	return c->drop.dropping;
}

uint64_t xfp_dropped_bytes(const struct xfp_conversion *c)
{
	return c->drop.dropping ? c->drop.dropping->freed : 0;
}

void xfp_drop_units_end(struct xfp_conversion *c)
{
	if (c->drop.dropping)
		xfp_key_list_free(&c->drop.dropping->needed);
	free(c->drop.dropping);
	c->drop.dropping = NULL;
}

/* ---- artifacts that others need ------------------------------------------------------------------ */

/* An incomplete list is unusable: every artifact may then be needed. */
static bool load_needed(struct xfp_conversion *c, struct xfp_dropping *d)
{
	int64_t version = xfp_manifest_version(c->place.manifest);

	if (d->known && version == d->version)
		return true;
	xfp_key_list_free(&d->needed);
	d->version = version;
	d->known = !xfp_manifest_output_keys(c->place.manifest, c->request->out, true, &d->needed, NULL);
	xfp_key_list_sort(&d->needed);
	return d->known;
}

/* The store of a dry run is always read-only. */
static bool can_drop(const struct xfp_conversion *c)
{
	return c->request->dry_run ? access(c->request->cache, F_OK) || !access(c->request->cache, W_OK)
				   : !c->place.store.read_only;
}

/* A launched step runs as many units at a time as it has processors. */
static unsigned units_in_flight(const struct xfp_conversion *c)
{
	uint64_t units = (uint64_t)xfp_jobs(c->request) * (c->request->launcher ? xfp_step_processors_expected() : 1);

	return (unsigned)(units < c->units.ledger->unit_count ? units : c->units.ledger->unit_count);
}

uint32_t xfp_drop_predict(struct xfp_conversion *c)
{
	struct xfp_dropping *d = c->request->drop_cache && c->place.manifest ? dropping_of(c) : NULL;
	uint32_t stay = 0;

	c->drop.units = c->request->drop_cache && !c->request->goal.kind && can_drop(c) ? units_in_flight(c) : 0;
	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++) {
		struct xfp_unit_state *state = &c->units.state[i];

		state->stays = c->request->drop_cache &&
			       (!c->drop.units ||
				(d && load_needed(c, d) && xfp_key_list_has(&d->needed, state->key[XFP_STAMP_PACKED])));
		stay += state->stays;
	}
	return stay;
}

/* Whether two units may have artifacts in common: their weights are the same, or may be. */
static bool are_alike(const struct xfp_conversion *c, uint32_t a, uint32_t b)
{
	const struct xfp_ledger_unit *x = &c->units.ledger->units[a], *y = &c->units.ledger->units[b];
	const struct xfp_unit_state *s = &c->units.state[a], *t = &c->units.state[b];

	if (x->experts != y->experts || x->rows != y->rows || x->cols != y->cols || x->dtype != y->dtype)
		return false;
	return s->known && t->known && !memcmp(s->source, t->source, x->experts * sizeof *s->source);
}

/* Whether an unfinished unit needs this unit's fits. A unit whose weights are not read yet makes them again. */
static bool needed_by_unit(const struct xfp_conversion *c, uint32_t number)
{
	for (uint32_t other = 0; other < c->units.ledger->unit_count; other++)
		if (other != number && !c->units.state[other].done && are_alike(c, number, other))
			return true;
	return false;
}

/* Whether a unit that is not yet moved needs this packed artifact. */
static bool needed_later(const struct xfp_conversion *c, uint32_t number, uint32_t moved)
{
	for (uint32_t other = moved; other < c->units.ledger->unit_count; other++)
		if (!strcmp(c->units.state[other].key[XFP_STAMP_PACKED], c->units.state[number].key[XFP_STAMP_PACKED]))
			return true;
	return false;
}

/* ---- during the conversion ------------------------------------------------------------------------------- */

static void drop_key(struct xfp_conversion *c, struct xfp_dropping *d, const char *key)
{
	if (*key && !xfp_key_list_has(&d->needed, key))
		xfp_store_drop_one(&c->place.store, c->place.manifest, key, &d->freed, NULL);
}

static bool lock(struct xfp_conversion *c)
{
	return xfp_lock_try_upgrade(&c->place.store, c->place.cache_lock, &c->place.cache_guard);
}

static void unlock(struct xfp_conversion *c)
{
	struct xfp_error err = { 0 };

	if (xfp_lock_downgrade(&c->place.store, c->place.cache_lock, c->place.cache_guard, &err))
		XFP_NOTIFY(c, .kind = XFP_NOTICE_LOCK_FAILED, .text = err.text);
}

/* Lock the cache exclusively, and find the artifacts that others need. */
static struct xfp_dropping *begin(struct xfp_conversion *c)
{
	struct xfp_dropping *d = dropping_of(c);

	/* Lock first: processes that shared the cache have then recorded what they need. */
	if (!d || !lock(c))
		return NULL;
	if (load_needed(c, d))
		return d;
	unlock(c);
	return NULL;
}

static bool has_fits(const struct xfp_unit_state *state)
{
	for (int s = XFP_STAMP_OUTLIERS; s < XFP_STAMP_CHOICE; s++)
		if (state->in_store >> s & 1)
			return true;
	return false;
}

static enum xfp_status make_receipt(struct xfp_conversion *c, uint32_t number)
{
	struct xfp_policy policy;
	const struct xfp_parameters parameters = xfp_prepare_parameters(c, number, &policy);

	return xfp_receipt_make(c, number, &parameters, &policy, NULL);
}

/* Preparing the unit before and after keeps its stamps equal to the existing artifacts. */
void xfp_drop_fits_of(struct xfp_conversion *c, uint32_t number)
{
	struct xfp_unit_state *state = &c->units.state[number];
	struct xfp_dropping *d;

	if (!xfp_drops_units(c) || c->events.leftovers || xfp_prepare_unit(c, number, false, NULL) || !state->done ||
	    make_receipt(c, number) || !state->receipt || !has_fits(state) || needed_by_unit(c, number) ||
	    !(d = begin(c)))
		return;
	for (int s = XFP_STAMP_OUTLIERS; s < XFP_STAMP_CHOICE; s++)
		drop_key(c, d, state->key[s]);
	unlock(c);
	xfp_prepare_unit(c, number, false, NULL);
}

void xfp_drop_fits(struct xfp_conversion *c)
{
	for (uint32_t i = 0; xfp_drops_units(c) && i < c->units.ledger->unit_count; i++)
		if (c->units.state[i].done && (!c->units.state[i].receipt || has_fits(&c->units.state[i])))
			xfp_drop_fits_of(c, i);
	xfp_drop_layers(c);
}

/* ---- inputs of layers ---------------------------------------------------------------------------- */

/* Whether the run may remove inputs at all. */
static bool drops_layers(const struct xfp_conversion *c)
{
	return c->layers.count && !c->request->dry_run && !c->place.store.read_only && c->place.manifest &&
	       !c->events.leftovers;
}

/* Whether the run removes inputs before its end. A goal fits the units of every layer again in each round, and a survey
 * precedes the fits. */
static bool drops_layers_early(const struct xfp_conversion *c)
{
	return drops_layers(c) && !c->request->goal.kind && !c->request->survey;
}

/* Whether a unit or a later layer still needs the inputs of a layer. The next layer is computed from its artifact. */
static bool layer_needed(const struct xfp_conversion *c, uint32_t layer)
{
	if (layer + 1 < c->layers.count && xfp_layer_is_missing(&c->layers.state[layer + 1]))
		return true;
	for (uint32_t u = 0; u < c->units.ledger->unit_count; u++)
		if (c->layers.of_unit[u] == layer && !c->units.state[u].done)
			return true;
	return false;
}

/* Remove the inputs of these layers, unless others need them. Requires the exclusive lock. */
static void drop_layers(struct xfp_conversion *c, const bool *unneeded)
{
	struct xfp_dropping *d = dropping_of(c);

	if (!d || xfp_layers_needed_elsewhere(c))
		return;
	for (uint32_t i = 0; i < c->layers.count; i++) {
		struct xfp_layer_state *state = &c->layers.state[i];

		if (!unneeded[i] || xfp_store_drop_one(&c->place.store, c->place.manifest, state->key, &d->freed, NULL))
			continue;
		state->in_store = state->needed = false;
		xfp_stamp_remove(c->request->work, XFP_LAYER | i, XFP_STAMP_INPUTS);
	}
}

void xfp_drop_layers(struct xfp_conversion *c)
{
	bool *unneeded = drops_layers_early(c) ? calloc(c->layers.count, sizeof *unneeded) : NULL, any = false;

	for (uint32_t i = 0; unneeded && i < c->layers.count; i++)
		any |= unneeded[i] = c->layers.state[i].in_store && !layer_needed(c, i);
	if (any && lock(c)) {
		drop_layers(c, unneeded);
		unlock(c);
	}
	free(unneeded);
}

void xfp_drop_layer_of(struct xfp_conversion *c, uint32_t unit)
{
	if (!drops_layers_early(c) || xfp_layers_of(c, unit) == XFP_NO_LAYER)
		return;
	if (!c->units.state[unit].done)
		xfp_prepare_unit(c, unit, false, NULL);
	xfp_drop_layers(c);
}

enum xfp_status xfp_drop_moved_begin(struct xfp_conversion *c, struct xfp_error *err)
{
	struct xfp_dropping *d = dropping_of(c);

	if (!d)
		return xfp_no_memory(err);
	d->moved = 0;
	return xfp_moving_restart(c->request->work, err);
}

void xfp_drop_moved(struct xfp_conversion *c)
{
	struct xfp_dropping *d = xfp_drops_units(c) ? dropping_of(c) : NULL;
	struct xfp_moving moving;
	bool found;

	if (!d || xfp_moving_read(c->request->work, &moving, &found, NULL) || !found || moving.units <= d->moved ||
	    *moving.sha256 || moving.units > c->units.ledger->unit_count)
		return;
	if (begin(c)) {
		for (uint32_t i = d->moved; i < moving.units; i++)
			if (c->units.state[i].receipt && !needed_later(c, i, moving.units))
				drop_key(c, d, c->units.state[i].key[XFP_STAMP_PACKED]);
		d->moved = moving.units;
		unlock(c);
	}
	xfp_moving_acknowledge(c->request->work, moving.units);
}

/* ---- after the bundle is complete ----------------------------------------------------------------- */

/* Exchange the shared lock for an exclusive one. Must wait: other processes that share the cache rely on existing
 * artifacts. */
static enum xfp_status lock_exclusive(struct xfp_conversion *c, struct xfp_error *err)
{
	char *what =
		xfp_formatted("xfp convert%s -o %s", c->request->drop_cache ? " --drop-cache" : "", c->request->out);
	enum xfp_status status;

	xfp_lock_release(c->place.cache_lock);
	c->place.cache_lock = -1;
	status = what ? xfp_lock_exclusive(&c->place.store, what, &c->place.cache_lock, err) : xfp_no_memory(err);
	free(what);
	return status;
}

void xfp_drop_layers_end(struct xfp_conversion *c)
{
	bool *unneeded = drops_layers(c) ? calloc(c->layers.count, sizeof *unneeded) : NULL, any = false;

	for (uint32_t i = 0; unneeded && i < c->layers.count; i++)
		any |= unneeded[i] = *c->layers.state[i].key && xfp_store_has(&c->place.store, c->layers.state[i].key);
	/* Conversions that end at the same time must not all keep the lock shared. */
	if (any && !lock_exclusive(c, NULL) && c->place.cache_lock >= 0)
		drop_layers(c, unneeded);
	free(unneeded);
}

/* Add this run's own keys, which are known even if the manifest could not be written. */
static enum xfp_status add_own(const struct xfp_conversion *c, struct xfp_key_list *keys, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++)
		for (int s = 0; !status && s < XFP_STAMPS; s++)
			if (*c->units.state[i].key[s])
				status = xfp_key_list_add(keys, c->units.state[i].key[s], err);
	return status;
}

static enum xfp_status add_layers(const struct xfp_conversion *c, struct xfp_key_list *keys, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < c->layers.count; i++)
		if (*c->layers.state[i].key)
			status = xfp_key_list_add(keys, c->layers.state[i].key, err);
	return status;
}

/* Remove `needed` and duplicates from `keys`, in place. */
static void subtract(struct xfp_key_list *keys, const struct xfp_key_list *needed)
{
	size_t kept = 0;

	for (size_t i = 0; i < keys->count; i++)
		if (!xfp_key_list_has(needed, keys->key[i]) && (!kept || strcmp(keys->key[kept - 1], keys->key[i])))
			memmove(keys->key[kept++], keys->key[i], sizeof *keys->key);
	keys->count = kept;
}

static void remove_stamps(const struct xfp_conversion *c)
{
	for (uint32_t i = 0; i < c->units.ledger->unit_count; i++) {
		xfp_stamp_remove(c->request->work, i, XFP_STAMP_SURVEY);
		xfp_fits_remove(c->request->work, i);
		xfp_receipt_remove(c->request->work, i);
	}
	for (uint32_t i = 0; i < c->layers.count; i++)
		xfp_stamp_remove(c->request->work, XFP_LAYER | i, XFP_STAMP_INPUTS);
	xfp_moving_remove(c->request->work);
}

enum xfp_status xfp_drop_cache(struct xfp_conversion *c, uint64_t *freed, struct xfp_error *err)
{
	struct xfp_key_list keys = { 0 }, needed = { 0 };
	enum xfp_status status;
	bool alone;

	*freed = 0;
	if ((status = lock_exclusive(c, err)))
		return status;
	if ((status = add_own(c, &keys, err)) || (status = add_layers(c, &keys, err)) ||
	    (xfp_layers_needed_elsewhere(c) && (status = add_layers(c, &needed, err))) ||
	    (status = xfp_manifest_output_keys(c->place.manifest, c->request->out, false, &keys, err)) ||
	    (status = xfp_manifest_output_keys(c->place.manifest, c->request->out, true, &needed, err)))
		goto done;
	xfp_key_list_sort(&keys);
	xfp_key_list_sort(&needed);
	subtract(&keys, &needed);
	if ((status = xfp_store_drop(&c->place.store, c->place.manifest, c->request->out, &keys, freed, err)))
		goto done;
	remove_stamps(c);
	alone = c->request->own_cache && !xfp_manifest_has_open_runs(c->place.manifest, c->request->out);
	if (alone) {
		xfp_manifest_close(c->place.manifest);
		c->place.manifest = NULL;
		xfp_store_dismantle(&c->place.store);
	}
done:
	xfp_key_list_free(&keys);
	xfp_key_list_free(&needed);
	return status;
}
