/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of an interrupted evaluation: what is saved, and the command that resumes it.
 */
#include "commands/eval/interrupted.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/text/shell.h"

static const int ends[] = { SIGINT, SIGTERM, SIGHUP };

/* Calls only async-signal-safe functions. SA_RESETHAND: the second signal ends the process. */
static void end_early(int number)
{
	static const char text[] = "\nxfp eval: interrupted before the evaluation began; nothing new was saved\n";

	if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
		_exit(128 + number);
	raise(number);
}

void xfp_eval_opening(bool opening)
{
	const struct sigaction action = { .sa_handler = opening ? end_early : SIG_DFL, .sa_flags = SA_RESETHAND };
	struct sigaction before;

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (!sigaction(ends[i], NULL, &before) && before.sa_handler != SIG_IGN)
			sigaction(ends[i], &action, NULL);
}

static void print_command(char *const *argv)
{
	fprintf(stderr, " To resume:\n  %s", *argv);
	while (*++argv) {
		fputc(' ', stderr);
		xfp_shell_quote(stderr, *argv);
	}
	fputc('\n', stderr);
}

void xfp_eval_print_interrupted(const struct xfp_evaluation *e, char *const *argv)
{
	bool unread = e->state.path && !e->state.examined && !access(e->state.path, F_OK);

	fputs("\nxfp eval: interrupted; ", stderr);
	if (e->state.layers)
		fprintf(stderr, "%u of %u layers are saved in %s.", (unsigned)e->state.layers,
			(unsigned)e->evaluated.model.description->layers, xfp_printable(e->state.path).text);
	else if (unread)
		fprintf(stderr, "%s stays unchanged.", xfp_printable(e->state.path).text);
	else if (xfp_evaluation_is_encoder(e))
		fputs("nothing was saved\n", stderr);
	else if (!e->state.path)
		fputs("nothing was saved; --state FILE saves finished layers\n", stderr);
	else
		fputs("nothing was saved yet\n", stderr);
	if (e->state.layers || unread)
		print_command(argv);
}
