/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_log.h - why make failed where no stage could say it: one was killed, or the disk is full to the last byte.
 */
#ifndef XFP_MAKE_LOG_H
#define XFP_MAKE_LOG_H

#include "conversion/state/conversion.h"

/* What to do about a program that a signal ended. */
const char *xfp_signal_remedy(int signal);

/* From what make wrote into the log from `offset` on, and from the disk space that is left; XFP_FAILED. */
enum xfp_status xfp_make_log_explain(const struct xfp_conversion *c, off_t offset, struct xfp_error *err);

#endif
