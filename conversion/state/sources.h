/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources.h - what the matrices of a unit digest to: the root of all its keys.
 *
 * A stage that reads them tells it in its artifact; the manifest remembers it for as long as the file is the one that
 * was read. Neither is believed without a digest of its own.
 */
#ifndef XFP_SOURCES_H
#define XFP_SOURCES_H

#include "conversion/state/conversion.h"

/* Fill in `known` and `source` of a unit's state: of this run, or remembered for files that have not changed. With
 * --rehash nothing is remembered. */
enum xfp_status xfp_sources_find(struct xfp_conversion *c, uint32_t number, struct xfp_error *err);

/* What the unit's first artifact, of that kind and key, says of its weights: for this run and for those to come.
 * An artifact of another unit's weights is not believed, and nothing is remembered of files that are not those any
 * more that inspect saw: the unit is then one of which nothing is known. Where this run went by other digests until
 * now, that is said. XFP_DAMAGED when the artifact is; another failure may be the manifest's alone. */
enum xfp_status xfp_sources_remember(struct xfp_conversion *c, uint32_t number, const char *kind, uint32_t version,
				     const char *key, struct xfp_error *err);

/* The weights are not those that were digested. */
void xfp_sources_forget(struct xfp_conversion *c, uint32_t number);

/* Digest of where the unit's matrices are, and of who their files were when they were inspected. */
enum xfp_status xfp_sources_files(const struct xfp_conversion *c, uint32_t number, char hex[33], struct xfp_error *err);

#endif
