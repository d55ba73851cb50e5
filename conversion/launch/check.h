/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - checks that a node that the launcher chooses has the same version of xfp, sees the same work folder and
 * cache, and the locks on them (stages/work/host_check.h).
 */
#ifndef XFP_LAUNCH_CHECK_H
#define XFP_LAUNCH_CHECK_H

#include "conversion/launch/launch.h"

/* The targets of `launch` are not used. XFP_FAILED: the launcher failed, or the node does not share something. What the
 * node itself notices is in its own message, which comes first. */
enum xfp_status xfp_launch_check(const struct xfp_launch *launch, struct xfp_signals *signals, struct xfp_error *err);

#endif
