/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/drop_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/processors.h"
#include "cache/drop.h"
#include "cache/lock.h"
#include "commands/convert/prepare_unit.h"
#include "stages/work/fits.h"
#include "stages/work/moving.h"
#include "stages/work/receipts.h"

struct xfp_dropping {
	struct xfp_key_list needed; /* by runs into other outputs, */
	int64_t version;            /* when the manifest was this one */
	bool known;                 /* whether that could be asked */
	uint32_t moved;             /* units [0, moved) have been seen to */
	uint64_t freed;
};

static struct xfp_dropping *dropping_of(struct xfp_conversion *c)
{
	if (!c->dropping && (c->dropping = calloc(1, sizeof *c->dropping)))
		c->dropping->version = -1;
	return c->dropping;
}

uint64_t xfp_dropped_bytes(const struct xfp_conversion *c)
{
	return c->dropping ? c->dropping->freed : 0;
}

void xfp_drop_units_end(struct xfp_conversion *c)
{
	if (c->dropping)
		xfp_key_list_free(&c->dropping->needed);
	free(c->dropping);
	c->dropping = NULL;
}

/* ---- who else needs it --------------------------------------------------------------------------- */

/* Half of what others need is no list: then all of it may be. */
static bool know_needed(struct xfp_conversion *c, struct xfp_dropping *d)
{
	int64_t version = xfp_manifest_version(c->manifest);

	if (d->known && version == d->version)
		return true;
	xfp_key_list_free(&d->needed);
	d->version = version;
	d->known = !xfp_manifest_output_keys(c->manifest, c->options.out, true, &d->needed, NULL);
	xfp_key_list_sort(&d->needed);
	return d->known;
}

/* A dry run's store is always a read-only one. */
static bool can_drop(const struct xfp_conversion *c)
{
	return c->options.dry_run ? access(c->options.cache, F_OK) || !access(c->options.cache, W_OK)
				  : !c->store.read_only;
}

uint32_t xfp_drop_outlook(struct xfp_conversion *c)
{
	struct xfp_dropping *d = c->options.drop_cache && c->manifest ? dropping_of(c) : NULL;
	uint32_t stay = 0;

	c->drops = c->options.drop_cache && !c->options.goal.kind && can_drop(c)
			   ? (c->options.jobs ? c->options.jobs : xfp_processors())
			   : 0;
	for (uint32_t i = 0; i < c->ledger->unit_count; i++) {
		struct xfp_unit_state *state = &c->units[i];

		state->stays = c->options.drop_cache &&
			       (!c->drops ||
				(d && know_needed(c, d) && xfp_key_list_has(&d->needed, state->key[XFP_STAMP_PACKED])));
		stay += state->stays;
	}
	return stay;
}

/* Whether two units may have artifacts in common: their weights are the same, or may be. */
static bool are_alike(const struct xfp_conversion *c, uint32_t a, uint32_t b)
{
	const struct xfp_ledger_unit *x = &c->ledger->units[a], *y = &c->ledger->units[b];
	const struct xfp_unit_state *s = &c->units[a], *t = &c->units[b];

	if (x->experts != y->experts || x->rows != y->rows || x->cols != y->cols || x->dtype != y->dtype)
		return false;
	return s->known && t->known && !memcmp(s->source, t->source, x->experts * sizeof *s->source);
}

/* Of units that are not done yet. One whose weights have not been read by now finds nothing, and makes it again. */
static bool needed_by_unit(const struct xfp_conversion *c, uint32_t number)
{
	for (uint32_t other = 0; other < c->ledger->unit_count; other++)
		if (other != number && !c->units[other].done && are_alike(c, number, other))
			return true;
	return false;
}

/* Of the packed artifact: by one whose turn has not come. */
static bool needed_later(const struct xfp_conversion *c, uint32_t number, uint32_t moved)
{
	for (uint32_t other = moved; other < c->ledger->unit_count; other++)
		if (!strcmp(c->units[other].key[XFP_STAMP_PACKED], c->units[number].key[XFP_STAMP_PACKED]))
			return true;
	return false;
}

/* ---- while it is at work --------------------------------------------------------------------------------- */

static void drop_key(struct xfp_conversion *c, struct xfp_dropping *d, const char *key)
{
	if (*key && !xfp_key_list_has(&d->needed, key))
		xfp_store_drop_one(&c->store, c->manifest, key, &d->freed, NULL);
}

/* Have the cache alone, and know what others need of it. */
static struct xfp_dropping *begin(struct xfp_conversion *c)
{
	struct xfp_dropping *d = dropping_of(c);
	struct xfp_error err = { 0 };

	if (!d)
		return NULL;
	/* In this order: whoever shared it until now has then said what it needs. */
	if (xfp_lock_have_alone(c->cache_lock) && know_needed(c, d))
		return d;
	if (xfp_lock_share_again(&c->store, c->cache_lock, &err))
		fprintf(stderr, "xfp: %s\n", err.text);
	return NULL;
}

static void end(struct xfp_conversion *c)
{
	struct xfp_error err = { 0 };

	if (xfp_lock_share_again(&c->store, c->cache_lock, &err))
		fprintf(stderr, "xfp: %s\n", err.text);
}

static bool has_fits(const struct xfp_unit_state *state)
{
	for (int s = XFP_STAMP_OUTLIERS; s < XFP_STAMP_CHOICE; s++)
		if (state->there >> s & 1)
			return true;
	return false;
}

/* Stamps of what goes are not there either, and those of what stays are. */
void xfp_drop_fits_of(struct xfp_conversion *c, uint32_t number)
{
	struct xfp_unit_state *state = &c->units[number];
	struct xfp_dropping *d;

	if (!xfp_drops_units(c) || c->leftovers || xfp_prepare_unit(c, number, false, NULL) || !state->done ||
	    xfp_receipt_make(c, number, NULL) || !state->receipt || !has_fits(state) || needed_by_unit(c, number) ||
	    !(d = begin(c)))
		return;
	for (int s = XFP_STAMP_OUTLIERS; s < XFP_STAMP_CHOICE; s++)
		drop_key(c, d, state->key[s]);
	end(c);
	xfp_prepare_unit(c, number, false, NULL);
}

void xfp_drop_fits(struct xfp_conversion *c)
{
	for (uint32_t i = 0; xfp_drops_units(c) && i < c->ledger->unit_count; i++)
		if (c->units[i].done && (!c->units[i].receipt || has_fits(&c->units[i])))
			xfp_drop_fits_of(c, i);
}

enum xfp_status xfp_drop_moved_begin(struct xfp_conversion *c, struct xfp_error *err)
{
	struct xfp_dropping *d = dropping_of(c);

	if (!d)
		return xfp_no_memory(err);
	d->moved = 0;
	return xfp_moving_restart(c->options.work, err);
}

void xfp_drop_moved(struct xfp_conversion *c)
{
	struct xfp_dropping *d = xfp_drops_units(c) ? dropping_of(c) : NULL;
	struct xfp_moving moving;
	bool found;

	if (!d || xfp_moving_read(c->options.work, &moving, &found, NULL) || !found || moving.units <= d->moved ||
	    *moving.sha256 || moving.units > c->ledger->unit_count)
		return;
	if (begin(c)) {
		for (uint32_t i = d->moved; i < moving.units; i++)
			if (c->units[i].receipt && !needed_later(c, i, moving.units))
				drop_key(c, d, c->units[i].key[XFP_STAMP_PACKED]);
		d->moved = moving.units;
		end(c);
	}
	xfp_moving_see(c->options.work, moving.units);
}

/* ---- once the bundle stands ----------------------------------------------------------------------- */

/* What this run used itself is known even where the manifest could not be written. */
static enum xfp_status add_own(const struct xfp_conversion *c, struct xfp_key_list *keys, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; i < c->ledger->unit_count; i++)
		for (int s = 0; !status && s < XFP_STAMPS; s++)
			if (*c->units[i].key[s])
				status = xfp_key_list_add(keys, c->units[i].key[s], err);
	return status;
}

/* In place: those that are not in `needed`, each once. */
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
	for (uint32_t i = 0; i < c->ledger->unit_count; i++) {
		xfp_stamp_remove(c->options.work, i, XFP_STAMP_SURVEY);
		xfp_fits_remove(c->options.work, i);
		xfp_receipt_remove(c->options.work, i);
	}
	xfp_moving_remove(c->options.work);
}

/* We shared it until now. Others that work here may count on what they saw. */
static enum xfp_status lock_alone(struct xfp_conversion *c, struct xfp_error *err)
{
	char *what = xfp_formatted("xfp convert --drop-cache -o %s", c->options.out);
	enum xfp_status status;

	xfp_lock_release(c->cache_lock);
	c->cache_lock = -1;
	status = what ? xfp_lock_alone(&c->store, what, &c->cache_lock, err) : xfp_no_memory(err);
	free(what);
	return status;
}

enum xfp_status xfp_drop_cache(struct xfp_conversion *c, uint64_t *freed, struct xfp_error *err)
{
	struct xfp_key_list keys = { 0 }, needed = { 0 };
	enum xfp_status status;
	bool alone;

	*freed = 0;
	if ((status = lock_alone(c, err)))
		return status;
	if ((status = add_own(c, &keys, err)) ||
	    (status = xfp_manifest_output_keys(c->manifest, c->options.out, false, &keys, err)) ||
	    (status = xfp_manifest_output_keys(c->manifest, c->options.out, true, &needed, err)))
		goto done;
	xfp_key_list_sort(&keys);
	xfp_key_list_sort(&needed);
	subtract(&keys, &needed);
	if ((status = xfp_store_drop(&c->store, c->manifest, c->options.out, &keys, freed, err)))
		goto done;
	remove_stamps(c);
	alone = c->options.own_cache && !xfp_manifest_has_open_runs(c->manifest, c->options.out);
	if (alone) {
		xfp_manifest_close(c->manifest);
		c->manifest = NULL;
		xfp_store_dismantle(&c->store);
	}
done:
	xfp_key_list_free(&keys);
	xfp_key_list_free(&needed);
	return status;
}
