/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_make.h - starts the child processes of xfp: make, inspect and the bundle writer.
 *
 * A child runs in its own process group, writes to the log and reads nothing. The group ends with xfp, however xfp
 * ends: a guard process in the group holds a pipe to xfp, and terminates the group when the pipe closes, by exit or by
 * kill -9.
 */
#ifndef XFP_RUN_MAKE_H
#define XFP_RUN_MAKE_H

#include "base/system/signals.h"
#include "conversion/state/conversion.h"

/* Set the environment of child processes: the paths of tools, rules, work folder and cache, and the C locale. */
enum xfp_status xfp_run_environment(const char *work, const char *cache, struct xfp_error *err);

/* Run argv[0], searched on PATH, in `folder` (NULL: current folder), and wait for it. `tick` (NULL: none) is called
 * about twice a second, or at the interval place->tick_ms. Returns the child's exit status, or XFP_FAILED if it was
 * killed or could not be started. */
int xfp_run(const struct xfp_conversion_place *place, struct xfp_signals *signals, const char *const *argv,
	    const char *folder, void (*tick)(void *context), void *context, struct xfp_error *err);

/* Convert a child's exit status to an xfp_status. Unknown statuses and XFP_USAGE, which means that xfp passed wrong
 * arguments, become XFP_FAILED. */
static inline enum xfp_status xfp_child_status(int status)
{
	return status == XFP_USAGE || status > XFP_UNMET ? XFP_FAILED : (enum xfp_status)status;
}

/* Run a program whose options come from the user, such as xfp-inspect; show its messages. XFP_USAGE is kept. */
int xfp_run_program(struct xfp_conversion *c, const char *const *argv, struct xfp_error *err);

/* Run make for the units of todo.mk. */
int xfp_run_make(const struct xfp_conversion *c, void (*tick)(void *context), void *context, struct xfp_error *err);

#endif
