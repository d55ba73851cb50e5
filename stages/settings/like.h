/* SPDX-License-Identifier: Apache-2.0 */
/*
 * like.h - xfp convert --like: the settings of a bundle are used again, and its bytes must come of it.
 *
 * What can be told without reading weights is told before any work; the bytes are compared in the end. Whatever
 * stands in the way of the same bytes is XFP_UNMET and names the first member that differs, and how.
 */
#ifndef XFP_LIKE_H
#define XFP_LIKE_H

#include "base/xfp_error.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"

/* What the bundle was made with. `*family` is allocated; one that is given, by name or file, must be the bundle's
 * (XFP_USAGE). XFP_UNMET: by algorithms of other versions than this xfp has. */
enum xfp_status xfp_like_settings(const char *like, struct xfp_parameters *parameters, char **family,
				  struct xfp_error *err);

/* Whether the checkpoint has the tensors, the units and the small files of the bundle. */
enum xfp_status xfp_like_check(const char *like, const struct xfp_ledger *ledger, struct xfp_error *err);

#endif
