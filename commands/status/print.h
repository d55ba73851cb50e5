/* SPDX-License-Identifier: Apache-2.0 */
/*
 * print.h - prints the state of a run for `xfp status`, as text or JSON.
 */
#ifndef XFP_STATUS_PRINT_H
#define XFP_STATUS_PRINT_H

#include <stdio.h>

#include "conversion/run_state.h"

/* Print the complete state, or a one-line summary. */
void xfp_status_text(FILE *out, const struct xfp_run_state *state);
void xfp_status_line(FILE *out, const struct xfp_run_state *state);

/* Print {"runs": [...]} to stdout; xfp-status(1) documents the members. */
enum xfp_status xfp_status_json(const struct xfp_run_state *states, size_t count, bool one_line, struct xfp_error *err);

#endif
