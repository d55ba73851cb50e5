/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/avx512.h"

#define XFP_FEEDBACK_SET xfp_feedback_avx512
#include "kernels/feedback/feedback_lanes.h"
