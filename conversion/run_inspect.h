/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_inspect.h - xfp-inspect as the front end runs it: with what of the options decides the ledger.
 */
#ifndef XFP_RUN_INSPECT_H
#define XFP_RUN_INSPECT_H

#include "conversion/run_make.h"

/* Writes the ledger into `work`; its messages are shown. */
int xfp_run_inspect(struct xfp_conversion *c, struct xfp_signals *signals, const char *work, struct xfp_error *err);

#endif
