/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/run_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/clock.h"
#include "base/system/file.h"
#include "base/system/processors.h"
#include "conversion/launch/jobs.h"
#include "conversion/launch/launch.h"
#include "conversion/make_log.h"
#include "conversion/place.h"
#include "conversion/todo.h"

#define LAYER_THREADS 1024 /* limit of xfp-calibrate --threads */

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

/* Keep only the jobserver from the flags of a parent make; its variables do not apply here. */
static void inherit_jobserver(void)
{
	char flags[XFP_JOBSERVER];
	bool reaches = xfp_parent_jobs(flags);

	unsetenv("MAKEFILES");
	unsetenv("GNUMAKEFLAGS");
	if (!reaches || setenv("MAKEFLAGS", flags, 1))
		unsetenv("MAKEFLAGS");
}

/* A layer's stage runs on all jobs' threads: it is the only one of its kind at a time, and units wait for it. They run
 * at a lower priority while layers are left (pipelines/graph.mk), so that they get only what it leaves. With a
 * launcher, units run elsewhere. */
static void set_threads(const char *launcher, unsigned jobs, uint32_t units)
{
	char threads[16];

	jobs = launcher ? xfp_processors() : jobs;
	snprintf(threads, sizeof threads, "%u", jobs > LAYER_THREADS ? LAYER_THREADS : jobs);
	setenv("XFP_LAYER_THREADS", threads, 1);
	if (launcher)
		return;
	snprintf(threads, sizeof threads, "%u", xfp_stage_threads(jobs, units));
	setenv("OMP_NUM_THREADS", threads, 0);
}

/* xfp-launch runs the launcher in our current folder: its command line may have relative paths. */
static enum xfp_status export_launcher(const struct xfp_request *request, struct xfp_error *err)
{
	char *folder = request->launcher ? getcwd(NULL, 0) : NULL;
	bool done = !request->launcher || (!setenv("XFP_LAUNCHER", request->launcher, 1) &&
					   (!folder || !setenv("XFP_LAUNCH_FOLDER", folder, 1)));

	free(folder);
	return done ? XFP_OK : xfp_no_memory(err);
}

/* ---- launchers --------------------------------------------------------------------------------- */

struct launching {
	struct xfp_conversion *c;
	void (*tick)(void *context); /* NULL: none */
	void *context;
	double begun; /* of a command without a step file; 0: steps */
	struct xfp_launch_wait wait;
};

/* Report once that the launcher may hang, or waits for resources. */
static void watch_launcher(void *context)
{
	struct launching *launching = context;
	struct xfp_conversion *c = launching->c;
	char text[512];
	double now;

	if (launching->tick)
		launching->tick(launching->context);
	if (!c->request->launcher || c->place.waiting_reported)
		return;
	now = xfp_now();
	if (launching->begun > 0 ? now < launching->begun + XFP_LAUNCH_PATIENCE_S
				 : !xfp_launch_waits(c->request->work, now, &launching->wait))
		return;
	snprintf(text, sizeof text, "launcher '%.300s': has not started its command on a node for %d s; still waiting",
		 c->request->launcher, XFP_LAUNCH_PATIENCE_S);
	xfp_escape_message(text, sizeof text);
	dprintf(c->place.log, "xfp: %s\n", text);
	XFP_NOTIFY(c, .kind = XFP_NOTICE_LAUNCHER_WAITS, .text = text);
	c->place.waiting_reported = true;
}

int xfp_run_make(struct xfp_conversion *c, void (*tick)(void *context), void *context, struct xfp_error *err)
{
	struct launching launching = { .c = c, .tick = tick, .context = context };
	const char *pipelines = getenv("XFP_PIPELINES"); /* set by xfp_run_environment */
	char *rules = pipelines ? xfp_path(pipelines, "graph.mk") : NULL, parallel[16];
	const char *argv[8] = { "make", "--no-print-directory", "-f", rules };
	unsigned jobs = xfp_jobs(c->request), count = 4;
	int status;

	if (!rules)
		return (int)xfp_no_memory(err);
	if (c->request->jobs)
		xfp_leave_make();
	else
		inherit_jobserver();
	if (!getenv("MAKEFLAGS")) {
		snprintf(parallel, sizeof parallel, "-j%u", jobs);
		argv[count++] = parallel;
	}
	if (c->request->keep_going)
		argv[count++] = "-k";
	set_threads(c->request->launcher, jobs, xfp_todo_width(c));
	if (!(status = (int)export_launcher(c->request, err)))
		status = xfp_run(&c->place, c->signals, argv, c->request->work, watch_launcher, &launching, err);
	free(rules);
	return status;
}

/* ---- hosts ------------------------------------------------------------------------------------- */

enum xfp_status xfp_check_hosts(struct xfp_conversion *c, struct xfp_error *err)
{
	const char *argv[] = { XFP_LAUNCH_PROGRAM, "--check", NULL };
	struct launching launching = { .c = c, .begun = xfp_now() };
	off_t before = xfp_log_size(&c->place);
	enum xfp_status status;
	char message[XFP_LAUNCH_MESSAGE];

	if (!c->request->launcher || c->place.hosts_checked || c->place.store.read_only)
		return XFP_OK;
	if (c->place.cache_lock < 0)
		return xfp_fail(err, XFP_FAILED,
				"--launcher: %s: its file system has no locks, which stages on other hosts need; "
				"choose another --cache",
				c->request->cache);
	if ((status = export_launcher(c->request, err)))
		return status;
	c->place.hosts_checked = !xfp_run(&c->place, c->signals, argv, NULL, watch_launcher, &launching, err);
	if (c->place.hosts_checked)
		return XFP_OK;
	if (xfp_make_log_launched(c, before, message))
		xfp_fail(err, XFP_FAILED, "%s", message);
	return XFP_FAILED;
}
