/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_stamp.h - WORK/bundle: the state of OUT after it was written, so that a run that changes nothing need not
 * write it again.
 *
 * One line: "KEY SHA256 INDEX SIZE DEVICE INODE MTIME CTIME SELF". KEY is a digest of everything that determines the
 * bundle's bytes, INDEX the XXH3-128 of its xfp.sum, which covers the digests of all members
 * (schemas/layout/bundle_layout.h), and SELF that of the line up to there: a stamp is valid only as long as neither it
 * nor the bundle has changed.
 */
#ifndef XFP_BUNDLE_STAMP_H
#define XFP_BUNDLE_STAMP_H

#include "base/system/file.h"

struct xfp_bundle_stamp {
	char key[33], sha256[65], index[33];
	struct xfp_identity identity;
};

enum xfp_status xfp_bundle_stamp_write(const char *work, const struct xfp_bundle_stamp *stamp, struct xfp_error *err);
/* Read the stamp; *sound is false if it is missing or invalid. An unreadable stamp is a failure: without it, a bundle
 * whose artifacts were dropped would be made from scratch. */
enum xfp_status xfp_bundle_stamp_read(const char *work, struct xfp_bundle_stamp *stamp, bool *sound,
				      struct xfp_error *err);

#endif
