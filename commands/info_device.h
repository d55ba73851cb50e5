/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info_device.h - `xfp info --device`: memory and kernels of a bundle on a GPU, which need not be present.
 */
#ifndef XFP_INFO_DEVICE_H
#define XFP_INFO_DEVICE_H

#include <jansson.h>

#include "runtime/cuda/devices.h"
#include "runtime/xfp.h"

/* Find a device by name. XFP_USAGE, with a list of the known devices, if there is no such name. */
enum xfp_status xfp_info_device(const char *name, const struct xfp_cuda_device **device, struct xfp_error *err);

/* Print a line for the device, one for every unit and kept matrix, and one with the totals. */
enum xfp_status xfp_info_device_print(const struct xfp_bundle *bundle, const struct xfp_cuda_device *device,
				      struct xfp_error *err);

/* The device as a JSON object, with each unit's memory and kernel. */
json_t *xfp_info_device_json(const struct xfp_bundle *bundle, const struct xfp_cuda_device *device);
json_t *xfp_info_device_unit_json(const struct xfp_bundle *bundle, uint32_t unit);

#endif
