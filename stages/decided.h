/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decided.h - what xfp decided on, in one digest.
 *
 * Parameters and stamps in a work folder are small files without a digest of their own, and xfp-bundle goes by them.
 * So xfp names the digest of what it put there (--expect), and xfp-bundle that of what it found: the parameters as
 * JSON, then each unit's choice and packed artifact, by their keys, in the order of the units.
 */
#ifndef XFP_DECIDED_H
#define XFP_DECIDED_H

#include "key.h"
#include "parameters.h"

struct xfp_digest *xfp_decided_begin(const struct xfp_parameters *parameters); /* NULL when out of memory */
/* The next unit; `choice` is "" of one that has none. */
void xfp_decided_unit(struct xfp_digest *decided, const char *choice, const char *packed);
/* Its 32 hex digits; frees it. */
void xfp_decided_end(struct xfp_digest *decided, char hex[33]);

#endif
