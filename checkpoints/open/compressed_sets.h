/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compressed_sets.h - parse config_groups of compressed-tensors. Private to checkpoints/open/.
 */
#ifndef XFP_COMPRESSED_SETS_H
#define XFP_COMPRESSED_SETS_H

#include "checkpoints/open/scaling.h"

/* Forms of weights, independent of the method's name in the config. */
enum xfp_compressed_form {
	XFP_COMPRESSED_ANY,   /* not specified */
	XFP_COMPRESSED_NONE,  /* not compressed */
	XFP_COMPRESSED_BYTES, /* float-quantized, int-quantized, naive-quantized, mxfp8-quantized */
	XFP_COMPRESSED_WORDS, /* pack-quantized */
	XFP_COMPRESSED_NVFP4,
	XFP_COMPRESSED_MXFP4,
};

/* The weight settings of a group. */
struct xfp_compressed_set {
	enum xfp_compressed_form form;
	bool floats, symmetric;
	uint64_t bits;
	struct xfp_scale_blocks scaling;
};

/* Read all groups with weight settings, at least one. The caller frees *sets, also after a failure. */
enum xfp_status xfp_compressed_sets(const struct xfp_fold *fold, struct xfp_compressed_set **sets, uint32_t *count);

#endif
