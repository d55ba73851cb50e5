/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_stamp.h - WORK/bundle: what OUT was when it was written, so that a run that changes nothing need not write
 * it again.
 *
 * One line: "KEY SHA256 INDEX SIZE DEVICE INODE MTIME CTIME SELF". KEY is of everything that decides the bundle's
 * bytes, INDEX the XXH3-128 of its xfp.sum, on which the digests of all members hang
 * (schemas/layout/bundle_layout.h), and SELF that of the line up to there: a stamp vouches for the bundle only while
 * nothing of either has changed.
 */
#ifndef XFP_BUNDLE_STAMP_H
#define XFP_BUNDLE_STAMP_H

#include "base/system/file.h"

struct xfp_bundle_stamp {
	char key[33], sha256[65], index[33];
	struct xfp_identity identity;
};

enum xfp_status xfp_bundle_stamp_write(const char *work, const struct xfp_bundle_stamp *stamp, struct xfp_error *err);
/* *sound is false when there is none, or one that is not as it was written. That it cannot be read is a failure: for
 * want of it, a bundle whose artifacts were dropped would be made from nothing. */
enum xfp_status xfp_bundle_stamp_read(const char *work, struct xfp_bundle_stamp *stamp, bool *sound,
				      struct xfp_error *err);

#endif
