/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drop_cache.h - removes artifacts that the conversion no longer needs: inputs of layers, and with
 * --drop-cache all artifacts.
 *
 * A layer's inputs are removed once its units are packed and those of the next layer exist, so that two are on disk.
 * With a goal they stay until the bundle is complete, because its rounds fit units again; a survey removes none. Inputs
 * stay while another conversion shares the cache, and while the latest run into another output, calibrated with the
 * same tokens, has not succeeded: it is running, or resumes with them. A run that succeeds removes at its end those
 * that stayed, even if its bundle was up to date; of conversions that end together, the last one does.
 *
 * With --drop-cache, a unit's outliers and fits are removed once it is packed, and its packed artifact once its
 * parts are durable in the pending bundle (stages/work/moving.h). The unit's receipt then replaces them. Surveys and
 * choices are small and stay until the end: they save most of the work when floors change. Artifacts that runs into
 * other outputs used, or that another unit of this run may need, are kept, and nothing is removed while another
 * conversion shares the cache.
 *
 * The remaining artifacts are removed once the bundle is complete, if possible.
 */
#ifndef XFP_DROP_CACHE_H
#define XFP_DROP_CACHE_H

#include "conversion/state/conversion.h"

/* Remove the artifacts of this output's runs that no run into another output used, their stamps, and the cache that
 * convert created next to OUT if it is empty afterwards. *freed counts bytes. The bundle must be durable and its stamp
 * independent of artifacts (xfp_bundle_make_standalone): after a kill, a rerun then finds the bundle up to date and
 * removes the rest. Returns XFP_FAILED, with nothing removed, while others use the cache. */
enum xfp_status xfp_drop_cache(struct xfp_conversion *c, uint64_t *freed, struct xfp_error *err);

/* Whether the run removes artifacts before its end. A run for a goal does not: each round solves the goal again from
 * the measurements of every unit. */
static inline bool xfp_drops_units(const struct xfp_conversion *c)
{
	return c->request->drop_cache && !c->request->goal.kind && !c->request->dry_run && !c->place.store.read_only &&
	       c->place.manifest;
}

/* Remove the fits and outliers of `unit` if it is packed; of all packed units. Errors are ignored: what cannot be
 * removed stays. */
void xfp_drop_fits_of(struct xfp_conversion *c, uint32_t unit);
void xfp_drop_fits(struct xfp_conversion *c); /* and unneeded inputs of layers */
/* Remove the inputs of layers whose units are done, once no later layer is computed from them; after `unit` was
 * packed, those of its layer. */
void xfp_drop_layers(struct xfp_conversion *c);
void xfp_drop_layer_of(struct xfp_conversion *c, uint32_t unit);
/* Remove the inputs of all layers after the run was recorded as successful. Releases the cache lock, or keeps it
 * exclusively: no stage may run afterwards. */
void xfp_drop_layers_end(struct xfp_conversion *c);
/* Call begin before xfp-bundle starts, and xfp_drop_moved repeatedly while it runs: removes the packed artifacts of
 * units that the pending bundle already holds. */
enum xfp_status xfp_drop_moved_begin(struct xfp_conversion *c, struct xfp_error *err);
void xfp_drop_moved(struct xfp_conversion *c);

/* Bytes that the run has freed so far. */
uint64_t xfp_dropped_bytes(const struct xfp_conversion *c);
void xfp_drop_units_end(struct xfp_conversion *c);

/* Predict what --drop-cache will remove, for estimates: sets c->drop.units and marks the units that stay. Requires
 * prepared units. Returns the number of units that stay; all of them if the cache is read-only. */
uint32_t xfp_drop_predict(struct xfp_conversion *c);

#endif
