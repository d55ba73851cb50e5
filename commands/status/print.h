/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - what `xfp status` says of a run, for people and for programs.
 */
#ifndef XFP_STATUS_PRINT_H
#define XFP_STATUS_PRINT_H

#include <stdio.h>

#include "conversion/run_state.h"

/* All of it, in paragraphs; and its gist in a line. */
void xfp_status_text(FILE *out, const struct xfp_run_state *state);
void xfp_status_line(FILE *out, const struct xfp_run_state *state);

/* {"runs": [...]} on standard output; members are described in xfp-status(1). */
enum xfp_status xfp_status_json(const struct xfp_run_state *states, size_t count, bool one_line, struct xfp_error *err);

#endif
