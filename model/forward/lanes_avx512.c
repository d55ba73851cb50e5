/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx512.h"

#define XFP_LANE_SET xfp_lane_set_avx512
#include "model/forward/lane_loops.h"
