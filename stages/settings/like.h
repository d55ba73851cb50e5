/* SPDX-License-Identifier: Apache-2.0 */
/*
 * like.h - xfp convert --like: reuse the settings of a bundle and reproduce its bytes.
 *
 * Everything that can be checked without reading weights is checked before any work; the bytes are compared at the end.
 * XFP_UNMET: the bytes will differ or do; the message names the first member that differs, and how.
 */
#ifndef XFP_LIKE_H
#define XFP_LIKE_H

#include "base/xfp_error.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"

/* The settings recorded in the bundle. `*family` is allocated; if it is given, as a name or a file, it must be the
 * bundle's (XFP_USAGE). XFP_UNMET: the bundle was made by other versions of algorithms than this xfp has. */
enum xfp_status xfp_like_settings(const char *like, struct xfp_parameters *parameters, char **family,
				  struct xfp_error *err);

/* Check that the checkpoint has the tensors, the units and the small files of the bundle. */
enum xfp_status xfp_like_check(const char *like, const struct xfp_ledger *ledger, struct xfp_error *err);

#endif
