/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/launch/child.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/file.h"
#include "stages/settings/data.h"
#include "stages/work/crash.h"
#include "stages/work/hosts.h"

#define REAP_PATIENCE_S 10
#define INSIST_PATIENCE_S .2
#define LAUNCHER_PATIENCE_S 10
#define TICK_MS 500
#define MAX_DESCRIPTORS 1024 /* more than xfp has */

/* ---- environment ------------------------------------------------------------------------------- */

/* Find the folder of the tools, which is that of this program. */
static char *tool_path(void)
{
	const char *path = getenv("PATH");
	char *tools = xfp_tool_folder(), *result;

	if (!path)
		path = "/usr/local/bin:/usr/bin:/bin";
	result = tools ? xfp_formatted("%s:%s", tools, path) : strdup(path);
	free(tools);
	return result;
}

enum xfp_status xfp_run_environment(const char *work, const char *cache, struct xfp_error *err)
{
	char *path = NULL, *pipelines = NULL, host[XFP_HOST_TAG];
	enum xfp_status status = xfp_data_folder(XFP_PIPELINES, &pipelines, err);

	xfp_host_tag(host);
	if (!status && (!(path = tool_path()) || setenv("PATH", path, 1) || setenv("XFP_PIPELINES", pipelines, 1) ||
			setenv("XFP_WORK", work, 1) || setenv("XFP_CACHE", cache, 1) || setenv("LC_ALL", "C", 1) ||
			setenv(XFP_RUN_HOST, host, 1) || setenv(XFP_RUN_VERSION, PACKAGE_VERSION, 1)))
		status = xfp_no_memory(err);
	setenv("OMP_WAIT_POLICY", "passive", 0); /* other processes need the CPU */
	free(path);
	free(pipelines);
	return status;
}

/* ---- children ---------------------------------------------------------------------------------- */

struct child {
	pid_t pid, guard; /* the guard is the group leader */
	int leash;        /* closing it terminates the group */
	bool launcher;    /* not a program of xfp: it may ignore signals */
};

static void close_from(int fd)
{
	for (; fd < MAX_DESCRIPTORS; fd++)
		close(fd);
}

/* Kill what is left of the group of a launcher whose parent was killed. */
static void kill_group_later(void)
{
	close_from(0); /* locks, and the other ends of pipes */
	sleep(LAUNCHER_PATIENCE_S);
	kill(0, SIGKILL);
}

/* A byte from the parent says that it is about to close its end; without one, it was killed. */
static void guard(const int leash[2], bool launcher)
{
	char byte;
	ssize_t got;

	xfp_crash_unwatch();
	setpgid(0, 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	/* Close until the descriptor is gone: an open write end here would hide the end of xfp. */
	while (!close(leash[1]) || errno != EBADF)
		;
	while ((got = read(leash[0], &byte, 1)) < 0 && errno == EINTR)
		;
	kill(0, SIGTERM);
	if (launcher && !got)
		kill_group_later();
	_exit(0);
}

static void exec_child(int log, const struct xfp_signals *signals, const struct child *child, const char *const *argv,
		       const char *folder)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setpgid(0, child->guard);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	if (log >= 0) {
		dup2(log, STDOUT_FILENO);
		dup2(log, STDERR_FILENO);
	}
	if (child->launcher)
		close_from(STDERR_FILENO + 1); /* a daemon that it leaves must not hold our locks */
	sigprocmask(SIG_SETMASK, &signals->before, NULL);
	if (folder && chdir(folder))
		dprintf(STDERR_FILENO, "xfp: %s: %s\n", folder, strerror(errno));
	else if (execvp(argv[0], (char *const *)argv))
		dprintf(STDERR_FILENO, "xfp: cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* Let the guard end the group. */
static void release(int leash)
{
	send(leash, "", 1, MSG_NOSIGNAL); /* the guard may have been killed */
	close(leash);
}

static enum xfp_status start(int log, const struct xfp_signals *signals, const char *const *argv, const char *folder,
			     struct child *child, struct xfp_error *err)
{
	int leash[2];

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, leash))
		return xfp_fail_errno(err, errno, "socketpair");
	fflush(NULL);
	child->leash = leash[1];
	child->guard = fork();
	if (!child->guard)
		guard(leash, child->launcher);
	close(leash[0]);
	if (child->guard > 0) {
		setpgid(child->guard, child->guard);
		child->pid = fork();
		if (!child->pid)
			exec_child(log, signals, child, argv, folder);
		if (child->pid > 0) {
			setpgid(child->pid, child->guard); /* the child does the same; either may be first */
			return XFP_OK;
		}
	}
	xfp_fail_errno(err, errno, "%s: cannot be started", argv[0]);
	release(child->leash);
	if (child->guard > 0)
		waitpid(child->guard, NULL, 0);
	return XFP_FAILED;
}

/* Wait for the processes of the group, which the guard terminates and whose orphans we inherit: on return, none of them
 * writes any more. Give up on a process that does not exit, immediately if the user interrupts again; a launcher's are
 * killed. */
static void reap_group(const struct child *child, struct xfp_signals *signals)
{
	double deadline = xfp_now() + REAP_PATIENCE_S;
	bool before = signals->interrupted, killed = false;
	pid_t got;

	while ((got = waitpid(-child->guard, NULL, WNOHANG)) >= 0) {
		if (!got && ((xfp_signals_wait(signals, 1) && before) || (xfp_now() >= deadline && child->launcher))) {
			kill(-child->guard, SIGKILL);
			deadline = killed ? deadline : xfp_now() + INSIST_PATIENCE_S;
			killed = true;
		}
		before |= signals->interrupted != 0;
		if (xfp_now() >= deadline)
			break;
	}
}

/* Run the child until it ends; `ended` is its wait status. */
static enum xfp_status run(const struct xfp_conversion_place *place, struct xfp_signals *signals,
			   const char *const *argv, const char *folder, bool launcher, void (*tick)(void *context),
			   void *context, int *ended, struct xfp_error *err)
{
	struct child child = { .launcher = launcher };
	double deadline = place->deadline > 0 ? place->deadline : INFINITY;
	bool asked = false;

	if (start(place->log, signals, argv, folder, &child, err))
		return XFP_FAILED;
	for (;;) {
		int arrived = xfp_signals_wait(signals, place->tick_ms ? place->tick_ms : TICK_MS);

		/* The first signal requests an end, a second one forces it; launchers have time to end their nodes'
		 * processes. `tick` may have consumed the first. */
		if (arrived && asked && !launcher)
			kill(-child.guard, SIGKILL);
		else if (signals->interrupted && !asked) {
			asked = !kill(-child.guard, launcher ? SIGTERM : signals->interrupted);
			deadline = launcher ? xfp_now() + LAUNCHER_PATIENCE_S : deadline;
		} else if (xfp_now() > deadline)
			kill(-child.guard, SIGKILL);
		if (waitpid(child.pid, ended, WNOHANG) == child.pid)
			break;
		if (tick)
			tick(context);
	}
	release(child.leash);
	reap_group(&child, signals);
	return XFP_OK;
}

int xfp_run(const struct xfp_conversion_place *place, struct xfp_signals *signals, const char *const *argv,
	    const char *folder, void (*tick)(void *context), void *context, struct xfp_error *err)
{
	int ended = 0;

	if (run(place, signals, argv, folder, false, tick, context, &ended, err))
		return XFP_FAILED;
	if (WIFEXITED(ended) && WEXITSTATUS(ended) == 127)
		return (int)xfp_fail(err, XFP_FAILED, "%s could not be run; is the installation complete?", argv[0]);
	if (WIFEXITED(ended))
		return WEXITSTATUS(ended);
	return (int)xfp_fail(err, XFP_FAILED, "%s was killed by a signal (%s): %s", argv[0], strsignal(WTERMSIG(ended)),
			     xfp_signal_remedy(WTERMSIG(ended)));
}

enum xfp_status xfp_run_launcher(int log, struct xfp_signals *signals, const char *const *argv,
				 void (*tick)(void *context), void *context, int *ended, struct xfp_error *err)
{
	const struct xfp_conversion_place place = { .log = log };

	return run(&place, signals, argv, NULL, true, tick, context, ended, err);
}

void xfp_leave_make(void)
{
	static const char *const names[] = { "MAKEFLAGS", "MFLAGS", "MAKEFILES", "GNUMAKEFLAGS", "MAKELEVEL" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		unsetenv(names[i]);
}

const char *xfp_signal_remedy(int signal)
{
	return signal == SIGKILL ? "if memory ran out, use fewer --jobs"
				 : "run again; if it happens again, xfp or this machine is faulty";
}
