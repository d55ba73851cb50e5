/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compressed_sets.h - what config_groups of compressed-tensors say. Private to checkpoints/open/.
 */
#ifndef XFP_COMPRESSED_SETS_H
#define XFP_COMPRESSED_SETS_H

#include "checkpoints/open/scaling.h"

/* Forms of weights, whatever the method that a config calls them by. */
enum xfp_compressed_form {
	XFP_COMPRESSED_ANY,   /* none is named */
	XFP_COMPRESSED_NONE,  /* they are as they are */
	XFP_COMPRESSED_BYTES, /* float-quantized, int-quantized, naive-quantized, mxfp8-quantized */
	XFP_COMPRESSED_WORDS, /* pack-quantized */
	XFP_COMPRESSED_NVFP4,
	XFP_COMPRESSED_MXFP4,
};

/* What a group says of its weights. */
struct xfp_compressed_set {
	enum xfp_compressed_form form;
	bool floats, symmetric;
	uint64_t bits;
	struct xfp_scale_blocks scaling;
};

/* All groups that are about weights, at least one. The caller frees *sets, also after a failure. */
enum xfp_status xfp_compressed_sets(const struct xfp_fold *fold, struct xfp_compressed_set **sets, uint32_t *count);

#endif
