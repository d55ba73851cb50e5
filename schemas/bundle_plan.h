/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_plan.h - the offset of every byte of a bundle, computed before writing. Private to schemas/.
 */
#ifndef XFP_BUNDLE_PLAN_H
#define XFP_BUNDLE_PLAN_H

#include "schemas/bundle.h"

struct xfp_bundle_plan {
	/* The index, complete except for digests that need the sources to be read: `source` of raw tensors, and the
	 * SHA-256 of raw tensors and files. */
	uint8_t *index;
	uint64_t index_bytes;
	uint64_t idx_offset, idx_bytes; /* content of the member xfp.idx, including zero padding */

	/* Pointers to the tables of the index. */
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

/* Plan a bundle; the sizes of the small files are read with stat. The caller frees the plan even after a failure. */
enum xfp_status xfp_bundle_plan(const struct xfp_bundle_input *input, struct xfp_bundle_plan *plan,
				struct xfp_error *err);
void xfp_bundle_plan_free(struct xfp_bundle_plan *plan);

#endif
