/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.h - the digest that identifies the contents of an open bundle. For the tools; not exported from libxfp.
 */
#ifndef XFP_BUNDLE_DIGEST_H
#define XFP_BUNDLE_DIGEST_H

#include "runtime/xfp.h"

/* SHA-256 of xfp.idx, in hex, as in xfp.sum. The index has the digest of every other member but xfp.json. */
void xfp_bundle_index_digest(const struct xfp_bundle *bundle, char hex[65]);

#endif
