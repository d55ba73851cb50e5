/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/neon.h"

#define XFP_FEEDBACK_SET xfp_feedback_neon
#include "kernels/feedback/feedback_lanes.h"
