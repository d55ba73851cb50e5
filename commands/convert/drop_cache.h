/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drop_cache.h - convert --drop-cache: once the bundle stands, what it was made from goes.
 */
#ifndef XFP_DROP_CACHE_H
#define XFP_DROP_CACHE_H

#include "commands/convert/conversion.h"

/* Remove the artifacts of this output's runs that no run into another output used, their stamps, and a
 * cache that convert made beside OUT by itself once nothing is left in it. What *freed counts is bytes.
 * The bundle must be durable, and its stamp one that needs no artifacts (xfp_bundle_stand_alone): killed
 * half-way, a rerun finds the bundle up to date and drops the rest. XFP_FAILED, with nothing removed, while
 * others use the cache. */
enum xfp_status xfp_drop_cache(struct xfp_conversion *c, uint64_t *freed, struct xfp_error *err);

#endif
