/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/launch/step.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/system/path.h"
#include "conversion/launch/batches.h"
#include "conversion/launch/child.h"
#include "conversion/launch/jobs.h"
#include "stages/work/hosts.h"

#define MAX_REPORT 4096

/* ---- reports ----------------------------------------------------------------------------------- */

/* Each line is written and closed at once, so that other hosts see it. */
static enum xfp_status add_line(const char *step, const char *line, struct xfp_error *err)
{
	int fd = open(step, O_WRONLY | O_APPEND | O_CLOEXEC);
	ssize_t length = (ssize_t)strlen(line);
	bool written = fd >= 0 && write(fd, line, (size_t)length) == length;
	int why = errno;

	if (fd >= 0 && close(fd) && written) {
		why = errno;
		written = false;
	}
	return written ? XFP_OK : xfp_fail_errno(err, why, "%s", step);
}

enum xfp_status xfp_step_report_read(const char *step, struct xfp_step_report *report, struct xfp_error *err)
{
	char *text = NULL, *rest, *line;
	enum xfp_status status = xfp_slurp(step, MAX_REPORT, &text, NULL, err);

	*report = (struct xfp_step_report){ .ended = false };
	rest = text;
	while (!status && (line = strsep(&rest, "\n"))) {
		if (sscanf(line, "node %255s", report->node) == 1)
			continue;
		if (!strncmp(line, "error ", 6))
			snprintf(report->error, sizeof report->error, "%s", line + 6);
		else if (sscanf(line, "status %d", &report->status) == 1)
			report->ended = true;
	}
	free(text);
	return status;
}

/* ---- the step ---------------------------------------------------------------------------------- */

struct watch {
	const char *step;
	struct xfp_signals *signals;
};

static void check_step_file(void *context)
{
	const struct watch *watch = context;
	int fd = open(watch->step, O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	else if ((errno == ENOENT || errno == ENOTDIR || errno == ESTALE) && !watch->signals->interrupted)
		watch->signals->interrupted = SIGTERM;
}

/* Run make for the targets alone: the launching side has made the layers that they need. */
static int make(const struct xfp_step_call *call, struct xfp_signals *signals, struct xfp_error *err)
{
	const struct xfp_conversion_place place = { .log = -1 };
	struct watch watch = { call->step, signals };
	const char *pipelines = getenv("XFP_PIPELINES"); /* set by xfp_run_environment */
	char *rules = pipelines ? xfp_path(pipelines, "graph.mk") : NULL, parallel[24], threads[24];
	unsigned jobs = xfp_step_processors();
	uint32_t count = 0, even;
	const char **argv;
	char *step = xfp_formatted("STEP=%s", xfp_base_name(call->step));
	int status = XFP_FAILED;

	while (call->targets[count])
		count++;
	even = count < 1000 ? (1000 + count - 1) / count : 1;
	argv = malloc((count + 16) * sizeof *argv);
	if (rules && step && argv) {
		const char **word = argv;

		snprintf(parallel, sizeof parallel, "-j%u", jobs);
		snprintf(threads, sizeof threads, "%u",
			 xfp_batch_threads(jobs, call->heaviest ? call->heaviest : even));
		setenv("OMP_NUM_THREADS", threads, 0);
		*word++ = "make";
		*word++ = "--no-print-directory";
		*word++ = parallel;
		*word++ = "-f";
		*word++ = rules;
		if (call->keep_going)
			*word++ = "-k";
		*word++ = "BATCHES=";
		*word++ = "CALIBRATED_BATCHES=";
		*word++ = "LAYERS=";
		*word++ = step;
		memcpy(word, call->targets, (count + 1) * sizeof *argv);
		status = xfp_run(&place, signals, argv, call->work, check_step_file, &watch, err);
	} else {
		xfp_no_memory(err);
	}
	free(argv);
	free(step);
	free(rules);
	return status;
}

static enum xfp_status begin(const struct xfp_step_call *call, struct xfp_error *err)
{
	enum xfp_status status = xfp_run_environment(call->work, call->cache, err);

	xfp_leave_make();
	unsetenv("XFP_LAUNCHER");
	if (!status && (setenv(XFP_RUN_HOST, call->host, 1) || setenv(XFP_RUN_VERSION, call->version, 1)))
		status = xfp_no_memory(err);
	return status ? status : xfp_run_version_check(err);
}

/* Run make: *made is its exit status. XFP_FAILED: it could not be started, or it was killed. */
static enum xfp_status run_make(const struct xfp_step_call *call, struct xfp_signals *signals, int *made,
				struct xfp_error *err)
{
	struct xfp_error why = { 0 };
	struct xfp_stage_locks locks;
	enum xfp_status status = begin(call, err);

	if (status)
		return status;
	locks = xfp_stage_locks_share(call->work, call->cache);
	xfp_shared_folders_refresh(call->work, call->cache);
	*made = make(call, signals, &why);
	xfp_stage_locks_release(&locks);
	return *why.text ? xfp_fail(err, XFP_FAILED, "%s", why.text) : XFP_OK;
}

enum xfp_status xfp_step_run(const struct xfp_step_call *call, struct xfp_signals *signals, struct xfp_error *err)
{
	char node[XFP_HOST_NAME] = "", line[1100];
	struct xfp_error why = { 0 };
	enum xfp_status status;
	int made = 0;

	snprintf(line, sizeof line, "node %s\n", xfp_host_name(node) ? node : "unknown");
	if ((status = add_line(call->step, line, err)))
		return xfp_context(err, status, "node %s", node);
	status = run_make(call, signals, &made, &why);
	if (signals->interrupted)
		return xfp_fail(err, XFP_FAILED, "node %s: interrupted", node);
	if (status)
		snprintf(line, sizeof line, "error %s\n", why.text);
	else
		snprintf(line, sizeof line, "status %d\n", made);
	if (add_line(call->step, line, status ? NULL : &why) || status)
		return xfp_fail(err, XFP_FAILED, "node %s: %s", node, why.text);
	return made ? xfp_fail(err, XFP_FAILED, "%s", "") : XFP_OK;
}
