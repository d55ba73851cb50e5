/* SPDX-License-Identifier: Apache-2.0 */
/*
 * like_compare.h - compares two bundles that should be identical and reports the first difference.
 *
 * The index contains a digest of everything, so it differs whenever anything does. The message names the first
 * differing member other than the index, with the reason if the index reveals it.
 */
#ifndef XFP_LIKE_COMPARE_H
#define XFP_LIKE_COMPARE_H

#include "base/xfp_error.h"

/* Whether two bundles have the same bytes. */
enum xfp_status xfp_like_compare(const char *like, const char *out, struct xfp_error *err);

#endif
