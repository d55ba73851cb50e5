/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/drop_cache.h"

#include <stdlib.h>
#include <string.h>

#include "cache/drop.h"
#include "cache/lock.h"

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
	for (uint32_t i = 0; i < c->ledger->unit_count; i++)
		xfp_stamp_remove(c->options.work, i, XFP_STAMP_OUTLIERS);
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
