/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.h - SIGINT, SIGTERM and SIGHUP are held back while there is something to tidy up.
 *
 * They are blocked, and polled where the work can stop: no handler, no process-wide state. A signal that whoever
 * started us wants ignored (nohup) stays ignored.
 */
#ifndef XFP_SIGNALS_H
#define XFP_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct xfp_signals {
	sigset_t waited, before; /* waited: SIGCHLD too, for those who wait for children */
	int interrupted;         /* the signal that came, 0: none */
};

void xfp_signals_hold(struct xfp_signals *signals);
/* Restore what was blocked before, then end by the signal that came, if one did. */
void xfp_signals_release(struct xfp_signals *signals);

/* Whether a signal has come, now or before. */
bool xfp_signals_came(struct xfp_signals *signals);
/* The same for one that comes within `milliseconds`, but not of those before; a child's end ends the
 * wait too. Returns the signal, 0: none. */
int xfp_signals_wait(struct xfp_signals *signals, unsigned milliseconds);

#endif
