/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lanes/plain.h"

#define XFP_FEEDBACK_SET xfp_feedback_plain
#include "kernels/feedback/feedback_lanes.h"
