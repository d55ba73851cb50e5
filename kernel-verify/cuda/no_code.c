/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel-verify/cuda/device.h"

const unsigned char *const xfp_device_code = NULL;
