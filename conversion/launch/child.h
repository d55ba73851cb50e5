/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child.h - runs child processes.
 *
 * A child runs in its own process group and reads nothing. The group ends with this process, however it ends: a guard
 * process in the group holds a socket to this process, and terminates the group when the socket closes, by exit or by
 * kill -9.
 */
#ifndef XFP_CHILD_H
#define XFP_CHILD_H

#include "base/system/signals.h"
#include "conversion/state/conversion.h"

/* Set the environment of child processes: the paths of tools, rules, work folder and cache, and the C locale. */
enum xfp_status xfp_run_environment(const char *work, const char *cache, struct xfp_error *err);

/* Run argv[0], searched on PATH, in `folder` (NULL: current folder), and wait for it. Its output goes to place->log
 * (-1: to ours). `tick` (NULL: none) is called about twice a second, or at the interval place->tick_ms; it may set
 * signals->interrupted to end the child. Returns the child's exit status. XFP_FAILED: it was killed or could not be
 * started. */
int xfp_run(const struct xfp_conversion_place *place, struct xfp_signals *signals, const char *const *argv,
	    const char *folder, void (*tick)(void *context), void *context, struct xfp_error *err);

/* Run a command that is not xfp's; `log` and `tick` are as for xfp_run. It inherits only the standard descriptors. A
 * signal to us ends its group with SIGTERM, since some launchers ignore SIGINT, and ten seconds later with SIGKILL.
 * *ended is as waitpid(2) has it. XFP_FAILED: not started. */
enum xfp_status xfp_run_launcher(int log, struct xfp_signals *signals, const char *const *argv,
				 void (*tick)(void *context), void *context, int *ended, struct xfp_error *err);

/* Remove the flags and the jobserver of a parent make from the environment. */
void xfp_leave_make(void);

/* Convert a child's exit status to an xfp_status. Unknown statuses and XFP_USAGE, which means that xfp passed wrong
 * arguments, become XFP_FAILED. */
static inline enum xfp_status xfp_child_status(int status)
{
	return status == XFP_USAGE || status > XFP_UNMET ? XFP_FAILED : (enum xfp_status)status;
}

/* Advice for a program that was killed by `signal`. */
const char *xfp_signal_remedy(int signal);

#endif
