/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.h - block SIGINT, SIGTERM and SIGHUP while there is something to clean up.
 *
 * The signals are blocked, and polled at points where the work can stop, without a handler or process-wide state. A
 * signal that the parent ignores (nohup) stays ignored.
 */
#ifndef XFP_SIGNALS_H
#define XFP_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct xfp_signals {
	sigset_t waited, before; /* waited: also SIGCHLD, for callers that wait for children */
	int interrupted;         /* the signal that arrived; 0: none */
};

void xfp_signals_block(struct xfp_signals *signals);
/* Restore the previous signal mask, then end by the signal that arrived, if any. */
void xfp_signals_release(struct xfp_signals *signals);

/* Whether a signal has arrived, now or earlier. */
bool xfp_signals_arrived(struct xfp_signals *signals);
/* Wait up to `milliseconds` for a new signal; the end of a child ends the wait as well. Returns the signal; 0: none. */
int xfp_signals_wait(struct xfp_signals *signals, unsigned milliseconds);

#endif
