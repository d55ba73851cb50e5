/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digests.h - check a bundle's bytes against their digests before they are first used.
 */
#ifndef XFP_WEIGHTS_DIGESTS_H
#define XFP_WEIGHTS_DIGESTS_H

#include "runtime/xfp.h"

/* The members whose digests matched. */
struct xfp_digests;

/* How the bytes are read. */
struct xfp_digest_reading {
	bool releases_pages; /* release pages after reading, and prefetch those of the next unit */
	bool (*watch)(void *context, uint64_t numbers); /* called with 0 now and then; false ends it. May be NULL */
	void *context;
};

enum xfp_status xfp_digests_open(const struct xfp_bundle *bundle, struct xfp_digests **out, struct xfp_error *err);
void xfp_digests_close(struct xfp_digests *digests); /* no-op if NULL */

/* Check all members of a unit, the bytes of a kept tensor, or a file; members that matched before are not read again.
 * XFP_BAD_INPUT if they are damaged: the message names the member and its unit, tensor or file. XFP_FAILED if they were
 * wrong once and right when read again, or if `watch` ended it. */
enum xfp_status xfp_digests_check_unit(struct xfp_digests *digests, uint32_t unit,
				       const struct xfp_digest_reading *reading, struct xfp_error *err);
enum xfp_status xfp_digests_check_tensor(struct xfp_digests *digests, uint32_t tensor,
					 const struct xfp_digest_reading *reading, struct xfp_error *err);
enum xfp_status xfp_digests_check_file(struct xfp_digests *digests, uint32_t file, struct xfp_error *err);
/* Check everything, with all threads of a team; only the calling thread asks `watch`. */
enum xfp_status xfp_digests_check_all(struct xfp_digests *digests, struct xfp_team *team,
				      const struct xfp_digest_reading *reading, struct xfp_error *err);

#endif
