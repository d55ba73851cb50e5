/* SPDX-License-Identifier: Apache-2.0 */
/*
 * info_device.h - `xfp info --device`: what a bundle becomes on a GPU, whether there is one or not.
 */
#ifndef XFP_INFO_DEVICE_H
#define XFP_INFO_DEVICE_H

#include <jansson.h>

#include "runtime/cuda/devices.h"
#include "runtime/xfp.h"

/* The device of that name; XFP_USAGE lists those that there are. */
enum xfp_status xfp_info_device(const char *name, const struct xfp_cuda_device **device, struct xfp_error *err);

/* A line for the device, one for every unit and kept matrix, and one for all of them. */
enum xfp_status xfp_info_device_print(const struct xfp_bundle *bundle, const struct xfp_cuda_device *device,
				      struct xfp_error *err);

/* The device as an object, and what a unit is on it. */
json_t *xfp_info_device_json(const struct xfp_bundle *bundle, const struct xfp_cuda_device *device);
json_t *xfp_info_device_unit_json(const struct xfp_bundle *bundle, uint32_t unit);

#endif
