/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - the bytes of a device image, from its first to its last, as they are uploaded: indices are in the bundle's
 * order.
 */
#ifndef XFP_CUDA_IMAGE_H
#define XFP_CUDA_IMAGE_H

#include "runtime/cuda/plan.h"

/* Where they go: `left` bytes at `at`, and when these are written, where `next` says, which gives more or fails. */
struct xfp_cuda_sink {
	uint8_t *at;
	size_t left;
	uint64_t done; /* bytes of the image before `at` */
	enum xfp_status (*next)(struct xfp_cuda_sink *sink, struct xfp_error *err);
};

/* The image of a plan, plan->bytes of it, that will be at `base`. XFP_BAD_INPUT when outliers are outside the matrix or
 * out of order, or when a group names a codebook that is not there; XFP_FAILED without memory. */
enum xfp_status xfp_cuda_image_write(const struct xfp_cuda_plan *plan, uint64_t base, struct xfp_cuda_sink *sink,
				     struct xfp_error *err);

#endif
