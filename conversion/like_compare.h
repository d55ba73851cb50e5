/* SPDX-License-Identifier: Apache-2.0 */
/*
 * like_compare.h - two bundles that should be the same: whether they are, and where they are not.
 *
 * The index holds a digest of everything, so it differs whenever anything does. What is named is the first member
 * beside it, with the reason as far as the index tells it.
 */
#ifndef XFP_LIKE_COMPARE_H
#define XFP_LIKE_COMPARE_H

#include "base/xfp_error.h"

/* Whether two bundles have the same bytes. */
enum xfp_status xfp_like_compare(const char *like, const char *out, struct xfp_error *err);

#endif
