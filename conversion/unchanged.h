/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unchanged.h - whether OUT is already the bundle that a conversion would write: its stamp in the work folder, held
 * against what decides the bundle, and against the bundle itself.
 */
#ifndef XFP_UNCHANGED_H
#define XFP_UNCHANGED_H

#include "conversion/state/conversion.h"
#include "stages/work/bundle_stamp.h"

/* Identity and index of the bundle at `path` as it is now; XFP_BAD_INPUT when there is none, or its index is
 * damaged. */
enum xfp_status xfp_bundle_stamp_take(const char *path, struct xfp_bundle_stamp *stamp, struct xfp_error *err);

/* Its key. `alone`: of a bundle whose artifacts were dropped, judged by sources and settings, from which all else
 * follows. */
enum xfp_status xfp_bundle_stamp_key(const struct xfp_conversion *c, bool alone, char key[33], struct xfp_error *err);

/* Whether OUT is the bundle that this conversion would write, as the stamp in its work folder says: *stamp is then
 * that. Where everything is to be read again, so is OUT, as a whole. A bundle that turns out to be damaged is one to
 * be written again; that it cannot be read is a failure. */
enum xfp_status xfp_bundle_stamp_matches(const struct xfp_conversion *c, bool alone, struct xfp_bundle_stamp *stamp,
					 bool *matches, struct xfp_error *err);

#endif
