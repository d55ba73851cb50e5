/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/signals.h"

#include <time.h>

#include "base/system/output.h"

void xfp_signals_block(struct xfp_signals *signals)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action;

	sigemptyset(&signals->waited);
	sigaddset(&signals->waited, SIGCHLD);
	signal(SIGCHLD, SIG_DFL);
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		if (!sigaction(ends[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(&signals->waited, ends[i]);
	sigprocmask(SIG_BLOCK, &signals->waited, &signals->before);
	signals->interrupted = 0;
}

void xfp_signals_release(struct xfp_signals *signals)
{
	sigprocmask(SIG_SETMASK, &signals->before, NULL);
	if (signals->interrupted) {
		xfp_output_flush(); /* a process killed by a signal does not flush its output */
		signal(signals->interrupted, SIG_DFL);
		raise(signals->interrupted);
	}
}

bool xfp_signals_arrived(struct xfp_signals *signals)
{
	const struct timespec none = { 0 };
	sigset_t set = signals->waited;
	int arrived;

	sigdelset(&set, SIGCHLD);
	if ((arrived = sigtimedwait(&set, NULL, &none)) > 0)
		signals->interrupted = arrived;
	return signals->interrupted;
}

int xfp_signals_wait(struct xfp_signals *signals, unsigned milliseconds)
{
	const struct timespec pause = { milliseconds / 1000, milliseconds % 1000 * 1000000L };
	int arrived = sigtimedwait(&signals->waited, NULL, &pause);

	if (arrived <= 0 || arrived == SIGCHLD)
		return 0;
	signals->interrupted = arrived;
	return arrived;
}
