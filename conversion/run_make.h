/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_make.h - the processes that the front end starts: make above all, inspect, the bundle writer.
 *
 * A child runs in a process group of its own, writes to the log and reads nothing. The group ends with
 * the front end, whatever ends that: a guard process in the group holds a pipe to it, and when the
 * pipe closes, by exit or by kill -9, it terminates the group.
 */
#ifndef XFP_RUN_MAKE_H
#define XFP_RUN_MAKE_H

#include "base/system/signals.h"
#include "conversion/state/conversion.h"

/* What every child finds in its environment: where the tools, the rules, the work folder and the
 * cache are, and the C locale. */
enum xfp_status xfp_run_environment(const char *work, const char *cache, struct xfp_error *err);

/* Run argv[0], found on PATH, in `folder` (NULL: here) to its end. `tick` (NULL: none) is called about
 * twice a second, or as place->tick_ms says. The result is the child's exit status; one that was killed or could
 * not be started is XFP_FAILED. */
int xfp_run(const struct xfp_conversion_place *place, struct xfp_signals *signals, const char *const *argv,
	    const char *folder, void (*tick)(void *context), void *context, struct xfp_error *err);

/* The same as a status of ours: what is not one, and a command line that we got wrong, is a failure. */
static inline enum xfp_status xfp_child_status(int status)
{
	return status == XFP_USAGE || status > XFP_UNMET ? XFP_FAILED : (enum xfp_status)status;
}

/* make, over the units of todo.mk. */
int xfp_run_make(const struct xfp_conversion *c, struct xfp_signals *signals, void (*tick)(void *context),
		 void *context, struct xfp_error *err);

#endif
