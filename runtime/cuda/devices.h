/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices.h - known devices, for plans on a machine without a GPU.
 */
#ifndef XFP_CUDA_DEVICES_H
#define XFP_CUDA_DEVICES_H

#include <stddef.h>
#include <stdint.h>

struct xfp_cuda_device {
	const char *name;      /* "rtx-pro-6000" */
	unsigned capability;   /* compute capability, times ten */
	unsigned processors;   /* streaming multiprocessors */
	uint32_t shared_bytes; /* maximum per block */
};

/* Sorted by name. */
extern const struct xfp_cuda_device xfp_cuda_devices[];
extern const size_t xfp_cuda_device_count;

/* Find a device by name, ignoring case and separators: "RTX 4090" finds rtx-4090. Returns NULL if it is unknown. */
const struct xfp_cuda_device *xfp_cuda_device(const char *name);

#endif
