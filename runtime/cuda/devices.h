/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices.h - devices that plans are made for where there is none.
 */
#ifndef XFP_CUDA_DEVICES_H
#define XFP_CUDA_DEVICES_H

#include <stddef.h>
#include <stdint.h>

struct xfp_cuda_device {
	const char *name;      /* "rtx-pro-6000" */
	unsigned capability;   /* times ten */
	unsigned processors;   /* streaming multiprocessors */
	uint32_t shared_bytes; /* the most that a block can have */
};

/* In the order of their names. */
extern const struct xfp_cuda_device xfp_cuda_devices[];
extern const size_t xfp_cuda_device_count;

/* By name, whatever stands between words and however it is written: "RTX 4090" is rtx-4090. NULL: there is none. */
const struct xfp_cuda_device *xfp_cuda_device(const char *name);

#endif
