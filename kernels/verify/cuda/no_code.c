/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/verify/cuda/device.h"

const unsigned char *const xfp_device_code = NULL;
