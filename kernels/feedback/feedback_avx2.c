/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx2.h"

#define XFP_FEEDBACK_SET xfp_feedback_avx2
#include "kernels/feedback/feedback_lanes.h"
