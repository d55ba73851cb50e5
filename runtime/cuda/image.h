/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - writes the device image of a linear, byte by byte in upload order. Indices are in the order of the bundle.
 */
#ifndef XFP_CUDA_IMAGE_H
#define XFP_CUDA_IMAGE_H

#include "runtime/cuda/plan.h"

/* Receives the bytes: `left` bytes at `at`; when they are full, `next` provides more space or fails. */
struct xfp_cuda_sink {
	uint8_t *at;
	size_t left;
	uint64_t done; /* bytes written before `at` */
	enum xfp_status (*next)(struct xfp_cuda_sink *sink, struct xfp_error *err);
};

/* Write the image of a plan, plan->bytes bytes, for device address `base`. XFP_BAD_INPUT if outliers are out of order
 * or outside the matrix, or a group has an invalid codebook number; XFP_FAILED if memory ran out. */
enum xfp_status xfp_cuda_image_write(const struct xfp_cuda_plan *plan, uint64_t base, struct xfp_cuda_sink *sink,
				     struct xfp_error *err);

#endif
