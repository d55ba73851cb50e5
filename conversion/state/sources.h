/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources.h - the digest of a unit's matrices: the root of all its keys.
 *
 * A stage that reads the matrices stores the digest in its artifact. The manifest stores it as well, valid as long as
 * the file's identity is unchanged. Both are verified by their own digests before use.
 */
#ifndef XFP_SOURCES_H
#define XFP_SOURCES_H

#include "conversion/state/conversion.h"

/* Fill in `known` and `source` of a unit's state, from this run or from the manifest if its files have not changed.
 * With --rehash, the manifest is not used. */
enum xfp_status xfp_sources_find(struct xfp_conversion *c, uint32_t number, struct xfp_error *err);

/* Read the digest of the unit's weights from its first artifact, of that kind and key, and store it for this run and
 * later ones. An artifact of another unit's weights is rejected, and nothing is stored if the files have changed since
 * inspect: the unit's weights are then unknown. A notice is sent if this run used other digests before. Returns
 * XFP_DAMAGED if the artifact is damaged; other errors may concern only the manifest. */
enum xfp_status xfp_sources_record(struct xfp_conversion *c, uint32_t number, const char *kind, uint32_t version,
				   const char *key, struct xfp_error *err);

/* Mark the stored digests as wrong: the weights differ from those that were digested. */
void xfp_sources_invalidate(struct xfp_conversion *c, uint32_t number);

/* Whether the files of these tensors, including those of all components of packed weights, are unchanged since
 * inspect. */
bool xfp_tensors_unchanged(const struct xfp_ledger *ledger, const uint32_t *tensors, uint32_t count);

/* Digest of the locations of the unit's matrices and of the identities of their files at inspection. */
enum xfp_status xfp_sources_files(const struct xfp_conversion *c, uint32_t number, char hex[33], struct xfp_error *err);

#endif
