/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/plain.h"

#define XFP_LANE_SET xfp_lane_set_plain
#include "model/forward/lane_loops.h"
