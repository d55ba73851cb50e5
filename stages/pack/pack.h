/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h - the functions of xfp-pack: one source file a storage mode.
 */
#ifndef XFP_PACK_H
#define XFP_PACK_H

#include "base/sha256.h"
#include "cache/key.h"
#include "schemas/choice.h"
#include "schemas/packed.h"
#include "stages/stage.h"

/* One part being written: its bytes in order, and their running digests. */
struct xfp_part_writer {
	struct xfp_artifact *artifact;
	enum xfp_part part;
	uint64_t offset;
	struct xfp_sha256 sha256;
	struct xfp_digest *xxh3;
};
void xfp_part_begin(struct xfp_part_writer *writer, struct xfp_artifact *artifact, enum xfp_part part);
enum xfp_status xfp_part_append(struct xfp_part_writer *writer, const void *data, uint64_t bytes,
				struct xfp_error *err);
/* Finish a part and store its digests in packed->digest. Must be called even after a failure. */
void xfp_part_end(struct xfp_part_writer *writer, struct xfp_packed *packed);

/* Fill in `packed` and write the parts of an artifact that was just created. */
enum xfp_status xfp_pack_v2(struct xfp_job *job, const struct xfp_choice *choice, struct xfp_artifact *artifact,
			    struct xfp_packed *packed, struct xfp_error *err);
enum xfp_status xfp_pack_groups(struct xfp_job *job, const struct xfp_choice *choice, struct xfp_artifact *artifact,
				struct xfp_packed *packed, struct xfp_error *err);
enum xfp_status xfp_pack_keep(struct xfp_job *job, struct xfp_artifact *artifact, struct xfp_packed *packed,
			      struct xfp_error *err);
enum xfp_status xfp_pack_fp8(struct xfp_job *job, struct xfp_artifact *artifact, struct xfp_packed *packed,
			     struct xfp_error *err);

#endif
