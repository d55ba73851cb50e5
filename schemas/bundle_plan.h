/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_plan.h - where every byte of a bundle will be, before one is written. Private to schemas/.
 */
#ifndef XFP_BUNDLE_PLAN_H
#define XFP_BUNDLE_PLAN_H

#include "schemas/bundle.h"

struct xfp_bundle_plan {
	/* The index, complete but for the digests that are known once the sources have been read:
	 * `source` of raw tensors, and the SHA-256 of raw tensors and files. */
	uint8_t *index;
	uint64_t index_bytes;
	uint64_t idx_offset, idx_bytes; /* content of the member xfp.idx; zero padding included */

	/* Its tables. */
	struct xfp_idx_header *header;
	struct xfp_idx_unit *units;
	struct xfp_idx_matrix *matrices;
	struct xfp_idx_part *parts;
	struct xfp_idx_tensor *tensors;
	struct xfp_idx_file *files;
	char *strings;
	uint32_t part_count;

	uint64_t *padded; /* content size of each part's member */
};

/* The file system is asked for the sizes of the small files. The caller frees the plan either way. */
enum xfp_status xfp_bundle_plan(const struct xfp_bundle_input *input, struct xfp_bundle_plan *plan,
				struct xfp_error *err);
void xfp_bundle_plan_free(struct xfp_bundle_plan *plan);

#endif
