/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_inspect.h - runs xfp-inspect with the options that determine the ledger.
 */
#ifndef XFP_RUN_INSPECT_H
#define XFP_RUN_INSPECT_H

#include "conversion/run_make.h"

/* Write the ledger into `work`; messages of xfp-inspect are shown. */
int xfp_run_inspect(struct xfp_conversion *c, const char *work, struct xfp_error *err);

#endif
