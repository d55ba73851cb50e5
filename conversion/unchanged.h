/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unchanged.h - checks whether OUT is already the bundle that a conversion would write: compares the stamp in the work
 * folder with the inputs of the bundle and with the bundle itself.
 */
#ifndef XFP_UNCHANGED_H
#define XFP_UNCHANGED_H

#include "conversion/state/conversion.h"
#include "stages/work/bundle_stamp.h"

/* Fill in *stamp with the current identity and index of the bundle at `path`. Returns XFP_BAD_INPUT if the bundle does
 * not exist or its index is damaged. */
enum xfp_status xfp_bundle_stamp_fill(const char *path, struct xfp_bundle_stamp *stamp, struct xfp_error *err);

/* Key of the stamp. `standalone`: for a bundle whose artifacts were dropped, computed from sources and settings, which
 * determine everything else. */
enum xfp_status xfp_bundle_stamp_key(const struct xfp_conversion *c, bool standalone, char key[33],
				     struct xfp_error *err);

/* Check whether OUT is the bundle that this conversion would write, according to the stamp in the work folder, which is
 * copied to *stamp. If everything must be read again, OUT is read completely. A damaged bundle does not match and is
 * written again; an unreadable one is an error. */
enum xfp_status xfp_bundle_stamp_matches(const struct xfp_conversion *c, bool standalone,
					 struct xfp_bundle_stamp *stamp, bool *matches, struct xfp_error *err);

#endif
