/* SPDX-License-Identifier: Apache-2.0 */
/*
 * present.h - which artifacts exist in the store, and reading them.
 */
#ifndef XFP_PRESENT_H
#define XFP_PRESENT_H

#include "conversion/state/conversion.h"
#include "schemas/artifact.h"

/* Open an artifact and call `read` (NULL: only its label is read); `kind` NULL: any. A damaged artifact is removed from
 * the store. */
enum xfp_status xfp_present_read(const struct xfp_conversion *c, const char *kind, uint32_t version, const char *key,
				 enum xfp_status (*read)(void *own, struct xfp_artifact *artifact), void *own);

/* Whether the artifact of a key exists; false for "". Missing ones are removed from the manifest. With `check`, the
 * artifact is read and compared with its digest, and removed if it is damaged. */
bool xfp_is_present(const struct xfp_conversion *c, const char *key, bool check);

#endif
