/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drop_cache.h - convert --drop-cache: what the bundle is made from goes.
 *
 * While the conversion is at work, artifacts go as soon as nothing needs them: a unit's outliers and
 * fits once it is packed, its packed artifact once its parts are durable in the pending bundle
 * (stages/work/moving.h). What stands for them then is the unit's receipt. Surveys and choices are small, and stay to
 * the end: they spare most of the work of another floor. Nothing goes that runs into other outputs used, that another
 * unit of this run may still need, or while another conversion shares the cache.
 *
 * What stays goes when the bundle stands, if it can.
 */
#ifndef XFP_DROP_CACHE_H
#define XFP_DROP_CACHE_H

#include "conversion/state/conversion.h"

/* Remove the artifacts of this output's runs that no run into another output used, their stamps, and a
 * cache that convert made beside OUT by itself once nothing is left in it. What *freed counts is bytes.
 * The bundle must be durable, and its stamp one that needs no artifacts (xfp_bundle_stand_alone): killed
 * half-way, a rerun finds the bundle up to date and drops the rest. XFP_FAILED, with nothing removed, while
 * others use the cache. */
enum xfp_status xfp_drop_cache(struct xfp_conversion *c, uint64_t *freed, struct xfp_error *err);

/* Whether such a run drops anything before its end. One for a goal does not: each time round the goal is solved anew,
 * by what was measured of every unit on the way. */
static inline bool xfp_drops_units(const struct xfp_conversion *c)
{
	return c->request->drop_cache && !c->request->goal.kind && !c->request->dry_run && !c->place.store.read_only &&
	       c->place.manifest;
}

/* Of a unit that may have been packed just now; and of all that are. What cannot be removed stays, and what goes wrong
 * is no failure of the conversion. */
void xfp_drop_fits_of(struct xfp_conversion *c, uint32_t unit);
void xfp_drop_fits(struct xfp_conversion *c);
/* Before xfp-bundle is started; and while it is at work: the packed artifacts of units that the pending bundle holds by
 * now. */
enum xfp_status xfp_drop_moved_begin(struct xfp_conversion *c, struct xfp_error *err);
void xfp_drop_moved(struct xfp_conversion *c);

/* What the run has freed so far, in bytes; and the end of it. */
uint64_t xfp_dropped_bytes(const struct xfp_conversion *c);
void xfp_drop_units_end(struct xfp_conversion *c);

/* What --drop-cache will remove, for estimates, once the units are prepared: c->drop.units, and which units stay.
 * Returns how many stay; all of them where the cache is read-only. */
uint32_t xfp_drop_outlook(struct xfp_conversion *c);

#endif
