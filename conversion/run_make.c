/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/run_make.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/processors.h"
#include "conversion/make_log.h"
#include "conversion/place.h"
#include "conversion/todo.h"
#include "stages/settings/data.h"
#include "stages/work/crash.h"
#include "stages/work/hosts.h"

#define REAP_PATIENCE_S 10
#define INSIST_PATIENCE_S .2
#define TICK_MS 500
#define LAYER_THREADS 1024 /* limit of xfp-calibrate --threads */

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
};

static void guard(const int leash[2])
{
	char nothing;

	xfp_crash_unwatch();
	setpgid(0, 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	/* Close until the descriptor is gone: an open write end here would hide the end of xfp. */
	while (!close(leash[1]) || errno != EBADF)
		;
	while (read(leash[0], &nothing, 1) < 0 && errno == EINTR)
		;
	kill(0, SIGTERM);
	_exit(0);
}

static void exec_child(int log, const struct xfp_signals *signals, pid_t group, const char *const *argv,
		       const char *folder)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setpgid(0, group);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	if (log >= 0) {
		dup2(log, STDOUT_FILENO);
		dup2(log, STDERR_FILENO);
	}
	sigprocmask(SIG_SETMASK, &signals->before, NULL);
	if (folder && chdir(folder))
		dprintf(STDERR_FILENO, "xfp: %s: %s\n", folder, strerror(errno));
	else if (execvp(argv[0], (char *const *)argv))
		dprintf(STDERR_FILENO, "xfp: cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static enum xfp_status start(int log, const struct xfp_signals *signals, const char *const *argv, const char *folder,
			     struct child *child, struct xfp_error *err)
{
	int leash[2];

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (pipe2(leash, O_CLOEXEC))
		return xfp_fail_errno(err, errno, "pipe");
	fflush(NULL);
	child->leash = leash[1];
	child->guard = fork();
	if (!child->guard)
		guard(leash);
	close(leash[0]);
	if (child->guard > 0) {
		setpgid(child->guard, child->guard);
		child->pid = fork();
		if (!child->pid)
			exec_child(log, signals, child->guard, argv, folder);
		if (child->pid > 0) {
			setpgid(child->pid, child->guard); /* the child does the same; either may be first */
			return XFP_OK;
		}
	}
	xfp_fail_errno(err, errno, "%s: cannot be started", argv[0]);
	close(child->leash);
	if (child->guard > 0)
		waitpid(child->guard, NULL, 0);
	return XFP_FAILED;
}

/* Wait for the processes of the group, which the guard terminates and whose orphans we inherit: on return, none of them
 * writes any more. Give up on a process that does not exit, immediately if the user interrupts again. */
static void reap_group(pid_t group, struct xfp_signals *signals)
{
	double deadline = xfp_now() + REAP_PATIENCE_S;
	bool before = signals->interrupted;
	pid_t got;

	while ((got = waitpid(-group, NULL, WNOHANG)) >= 0 && xfp_now() < deadline) {
		if (got || !xfp_signals_wait(signals, 1))
			continue;
		if (before) {
			kill(-group, SIGKILL);
			deadline = xfp_now() + INSIST_PATIENCE_S;
		}
		before = true;
	}
}

static int finish(struct child *child, const char *name, int status, struct xfp_signals *signals, struct xfp_error *err)
{
	close(child->leash);
	reap_group(child->guard, signals);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return (int)xfp_fail(err, XFP_FAILED, "%s could not be run; is the installation complete?", name);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return (int)xfp_fail(err, XFP_FAILED, "%s was killed by a signal (%s): %s", name, strsignal(WTERMSIG(status)),
			     xfp_signal_remedy(WTERMSIG(status)));
}

int xfp_run(const struct xfp_conversion_place *place, struct xfp_signals *signals, const char *const *argv,
	    const char *folder, void (*tick)(void *context), void *context, struct xfp_error *err)
{
	struct child child = { 0 };
	bool asked = false;
	int status = 0;

	if (start(place->log, signals, argv, folder, &child, err))
		return XFP_FAILED;
	for (;;) {
		int arrived = xfp_signals_wait(signals, place->tick_ms ? place->tick_ms : TICK_MS);

		/* The first signal requests an end, a second one forces it. `tick` may have consumed the first. */
		if (arrived && asked)
			kill(-child.guard, SIGKILL);
		else if (signals->interrupted && !asked)
			asked = !kill(-child.guard, signals->interrupted);
		else if (place->deadline > 0 && xfp_now() > place->deadline)
			kill(-child.guard, SIGKILL);
		if (waitpid(child.pid, &status, WNOHANG) == child.pid)
			break;
		if (tick)
			tick(context);
	}
	return finish(&child, argv[0], status, signals, err);
}

int xfp_run_program(struct xfp_conversion *c, const char *const *argv, struct xfp_error *err)
{
	off_t before = xfp_log_size(&c->place);
	int status = xfp_run(&c->place, c->signals, argv, NULL, NULL, NULL, err);

	if (status || !c->request->quiet)
		xfp_log_show(c, before);
	if (status)
		xfp_log_keep(&c->place, before);
	return status == XFP_USAGE ? XFP_USAGE : (int)xfp_child_status(status);
}

/* ---- make -------------------------------------------------------------------------------------- */

/* Whether the jobserver named in MAKEFLAGS is reachable: make closes it for recipes without +. */
static bool jobserver_reaches(const char *word)
{
	const char *value = strchr(word, '=');
	int in, out;

	if (!value)
		return false;
	if (!strncmp(value, "=fifo:", 6))
		return !access(value + 6, R_OK | W_OK);
	return sscanf(value, "=%d,%d", &in, &out) == 2 && fcntl(in, F_GETFD) >= 0 && fcntl(out, F_GETFD) >= 0;
}

/* Keep only the jobserver from the flags of a parent make; its variables do not apply here. Returns the number of jobs
 * that it allows, 0 without a jobserver. */
static unsigned inherit_jobserver(void)
{
	const char *flags = getenv("MAKEFLAGS");
	char *copy = strdup(flags ? flags : ""), *rest = copy, *word, kept[512] = "";
	unsigned jobs = 0;
	bool reaches = false;

	while (copy && (word = strsep(&rest, " ")) && strcmp(word, "--")) {
		if (!strncmp(word, "-j", 2))
			jobs = (unsigned)strtoul(word + 2, NULL, 10);
		if (!strncmp(word, "--jobserver", 11) && strlen(word) < 400 && jobserver_reaches(word)) {
			snprintf(kept, sizeof kept, " -j%.0u %s", jobs, word);
			reaches = true;
		}
	}
	free(copy);
	unsetenv("MAKEFILES");
	unsetenv("GNUMAKEFLAGS");
	if (!reaches || setenv("MAKEFLAGS", kept, 1)) {
		unsetenv("MAKEFLAGS");
		return 0;
	}
	return jobs ? jobs : xfp_processors();
}

/* A layer's stage runs on all jobs' threads: it is the only one of its kind at a time, and units wait for it. They run
 * at a lower priority while layers are left (pipelines/graph.mk), so that they get only what it leaves. */
static void set_threads(unsigned jobs, uint32_t units)
{
	char threads[16];

	snprintf(threads, sizeof threads, "%u", jobs > LAYER_THREADS ? LAYER_THREADS : jobs);
	setenv("XFP_LAYER_THREADS", threads, 1);
	snprintf(threads, sizeof threads, "%u", xfp_stage_threads(jobs, units));
	setenv("OMP_NUM_THREADS", threads, 0);
}

int xfp_run_make(const struct xfp_conversion *c, void (*tick)(void *context), void *context, struct xfp_error *err)
{
	const char *pipelines = getenv("XFP_PIPELINES"); /* set by xfp_run_environment */
	char *rules = pipelines ? xfp_path(pipelines, "graph.mk") : NULL, parallel[16];
	const char *argv[8] = { "make", "--no-print-directory", "-f", rules };
	unsigned jobs = c->request->jobs, count = 4;
	int status;

	if (!rules)
		return (int)xfp_no_memory(err);
	if (jobs) {
		unsetenv("MAKEFLAGS");
		unsetenv("MAKEFILES");
		unsetenv("GNUMAKEFLAGS");
	} else if (!(jobs = inherit_jobserver())) {
		jobs = xfp_processors();
	}
	if (!getenv("MAKEFLAGS")) {
		snprintf(parallel, sizeof parallel, "-j%u", jobs);
		argv[count++] = parallel;
	}
	if (c->request->keep_going)
		argv[count++] = "-k";
	set_threads(jobs, xfp_todo_width(c));
	status = xfp_run(&c->place, c->signals, argv, c->request->work, tick, context, err);
	free(rules);
	return status;
}
