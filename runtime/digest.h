/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.h - the digests that identify the contents of an open bundle. For the tools; not exported from libxfp.
 */
#ifndef XFP_BUNDLE_DIGEST_H
#define XFP_BUNDLE_DIGEST_H

#include "runtime/xfp.h"

/* SHA-256 of xfp.idx, in hex, as in xfp.sum. The index has the digest of every other member but xfp.json. */
void xfp_bundle_index_digest(const struct xfp_bundle *bundle, char hex[65]);

/* xfp_bundle_check, and the SHA-256 of the whole file in hex, as printed by sha256sum: the same bytes are checked and
 * hashed, and read once. Statuses are those of xfp_bundle_check. */
enum xfp_status xfp_bundle_check_file(const struct xfp_bundle *bundle, char hex[65], struct xfp_error *err);

#endif
