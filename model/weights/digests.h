/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digests.h - a bundle's bytes are held against their digests before they are first used.
 */
#ifndef XFP_WEIGHTS_DIGESTS_H
#define XFP_WEIGHTS_DIGESTS_H

#include "runtime/xfp.h"

/* Which members have been found sound. */
struct xfp_digests;

/* How bytes are read for it. */
struct xfp_digest_reading {
	bool releases_pages; /* of pages once they were read; and foresees those of the next unit */
	bool (*watch)(void *context, uint64_t numbers); /* told 0 now and then; false ends it. NULL: nobody */
	void *context;
};

enum xfp_status xfp_digests_open(const struct xfp_bundle *bundle, struct xfp_digests **out, struct xfp_error *err);
void xfp_digests_close(struct xfp_digests *digests); /* NULL is fine */

/* All that a unit has, the bytes of a tensor that was kept, or a file. XFP_BAD_INPUT where they are damaged, naming the
 * member and what it is of; XFP_FAILED where they were wrong once and right when they were read again, or where `watch`
 * ended it. What was sound before is not read again. */
enum xfp_status xfp_digests_of_unit(struct xfp_digests *digests, uint32_t unit,
				    const struct xfp_digest_reading *reading, struct xfp_error *err);
enum xfp_status xfp_digests_of_tensor(struct xfp_digests *digests, uint32_t tensor,
				      const struct xfp_digest_reading *reading, struct xfp_error *err);
enum xfp_status xfp_digests_of_file(struct xfp_digests *digests, uint32_t file, struct xfp_error *err);
/* Everything, by all threads of a team, of which the calling one alone asks `watch`. */
enum xfp_status xfp_digests_of_all(struct xfp_digests *digests, struct xfp_team *team,
				   const struct xfp_digest_reading *reading, struct xfp_error *err);

#endif
