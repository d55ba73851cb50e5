/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_log.h - explains why make failed if no stage could report it: a process was killed or the disk is full.
 */
#ifndef XFP_MAKE_LOG_H
#define XFP_MAKE_LOG_H

#include "conversion/launch/launch.h"
#include "conversion/state/conversion.h"

/* Find the first message of xfp-launch in the log after `offset`. */
bool xfp_make_log_launched(const struct xfp_conversion *c, off_t offset, char message[XFP_LAUNCH_MESSAGE]);

/* Explain the failure from make's log output after `offset` and from the free disk space. Always returns XFP_FAILED. */
enum xfp_status xfp_make_log_explain(const struct xfp_conversion *c, off_t offset, struct xfp_error *err);

/* Report a failure of the launcher in addition to one that a stage has reported. */
void xfp_make_log_show_launcher(const struct xfp_conversion *c, off_t offset);

#endif
