/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/launch/launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/system/filesystem.h"
#include "base/text/text.h"
#include "conversion/launch/child.h"
#include "conversion/launch/step.h"
#include "schemas/parameters.h"
#include "stages/settings/data.h"
#include "stages/work/hosts.h"

#define STAMP_PATIENCE 10 /* half seconds that a shared file system may take to show the files of a node */

#define WAIT_INTERVAL_S 3

/* Beginnings of lines in the log. */
#define LAUNCHER "launcher '"
#define ON_NODE "on node "

/* ---- launchers --------------------------------------------------------------------------------- */

enum xfp_status xfp_launch_command(const char *launcher, const char *const *argv, int log, struct xfp_signals *signals,
				   void (*tick)(void *context), void *context, int *ended, struct xfp_error *err)
{
	char *script = xfp_formatted("%s \"$@\"", launcher);
	const char **words;
	size_t count = 0;
	enum xfp_status status;

	while (argv[count])
		count++;
	words = malloc((count + 5) * sizeof *words);
	if (script && words) {
		words[0] = "sh";
		words[1] = "-c";
		words[2] = script;
		words[3] = XFP_LAUNCH_PROGRAM;
		memcpy(words + 4, argv, (count + 1) * sizeof *words);
		xfp_leave_make();
		status = xfp_run_launcher(log, signals, words, tick, context, ended, err);
	} else {
		status = xfp_no_memory(err);
	}
	free(words);
	free(script);
	return status;
}

void xfp_launch_outcome(int ended, char text[80])
{
	int status = WIFEXITED(ended) ? WEXITSTATUS(ended) : 0;

	if (WIFSIGNALED(ended))
		snprintf(text, 80, "was killed by a signal (%s)", strsignal(WTERMSIG(ended)));
	else if (status > 128 && status < 128 + SIGRTMIN) /* a shell's command was killed; srun has higher ones */
		snprintf(text, 80, "ended with status %d (%s)", status, strsignal(status - 128));
	else
		snprintf(text, 80, "ended with status %d%s", status,
			 status == 127   ? " (not found)"
			 : status == 126 ? " (cannot be executed)"
					 : "");
}

/* ---- steps ------------------------------------------------------------------------------------- */

struct launched_step {
	const struct xfp_launch *launch;
	struct xfp_signals *signals;
	char *path;
	struct xfp_step_report report;
	int ended;
};

static enum xfp_status create(struct launched_step *step, struct xfp_error *err)
{
	int fd;

	if (!(step->path = xfp_path(step->launch->work, XFP_STEP_PREFIX "XXXXXX")))
		return xfp_no_memory(err);
	if ((fd = mkostemp(step->path, O_CLOEXEC)) < 0)
		return xfp_fail_errno(err, errno, "%s: the work folder cannot be written", step->launch->work);
	close(fd);
	return XFP_OK;
}

/* The node sees that its step file is missing, even if the launcher ignores signals. */
static void cancel(void *context)
{
	struct launched_step *step = context;

	if (step->signals->interrupted)
		unlink(step->path);
}

static enum xfp_status launch_step(struct launched_step *step, struct xfp_error *err)
{
	const struct xfp_launch *launch = step->launch;
	const char *host = getenv(XFP_RUN_HOST); /* set by xfp_run_environment */
	char own[XFP_HOST_TAG];
	char *folder = xfp_tool_folder(), *program = folder ? xfp_path(folder, XFP_LAUNCH_PROGRAM) : NULL;
	const char **words;
	char heaviest[16];
	size_t count = 0, targets = 0;
	enum xfp_status status;

	while (launch->targets[targets])
		targets++;
	words = malloc((targets + 20) * sizeof *words);
	xfp_host_tag(own);
	if (program && words) {
		if (launch->nice)
			words[count++] = "nice";
		words[count++] = program;
		words[count++] = "--here";
		words[count++] = "--step";
		words[count++] = step->path;
		words[count++] = "--run-version";
		words[count++] = PACKAGE_VERSION;
		words[count++] = "--run-host";
		words[count++] = host && *host ? host : own;
		words[count++] = "--work";
		words[count++] = launch->work;
		words[count++] = "--cache";
		words[count++] = launch->cache;
		if (launch->keep_going)
			words[count++] = "--keep-going";
		if (launch->heaviest) {
			snprintf(heaviest, sizeof heaviest, "%" PRIu32, launch->heaviest);
			words[count++] = "--heaviest";
			words[count++] = heaviest;
		}
		memcpy(words + count, launch->targets, (targets + 1) * sizeof *words);
		status =
			xfp_launch_command(launch->launcher, words, -1, step->signals, cancel, step, &step->ended, err);
	} else {
		status = xfp_no_memory(err);
	}
	free(words);
	free(program);
	free(folder);
	return status;
}

/* The first target, and the number of others. */
static void describe_targets(const struct xfp_launch *launch, char text[64])
{
	size_t others = 0;

	while (launch->targets[others + 1])
		others++;
	if (others)
		snprintf(text, 64, "%.24s and %zu other%s", launch->targets[0], others, others == 1 ? "" : "s");
	else
		snprintf(text, 64, "%.24s", launch->targets[0]);
}

static bool target_exists(const struct xfp_launch *launch, const char *target)
{
	char *path = xfp_path(launch->work, target);
	bool exists = path && !access(path, F_OK);

	free(path);
	return exists;
}

/* The first target that the node did not make, although it reported success. A shared file system may need a
 * moment. */
static const char *missing_target(const struct xfp_launch *launch)
{
	for (int patience = STAMP_PATIENCE;; patience--) {
		const char *const *target = launch->targets;

		xfp_folder_refresh(launch->work);
		while (*target && target_exists(launch, *target))
			target++;
		if (!*target || !patience)
			return *target;
		usleep(500000);
	}
}

/* Name the missing targets: make_log.c finds the node of a killed stage by them. */
static enum xfp_status fail_on_node(const struct launched_step *step, struct xfp_error *err)
{
	char targets[900] = "";
	size_t length = 0;

	for (const char *const *target = step->launch->targets; *target && length < sizeof targets; target++)
		if (!target_exists(step->launch, *target))
			length += (size_t)snprintf(targets + length, sizeof targets - length, " %s", *target);
	return xfp_fail(err, XFP_FAILED, ON_NODE "%.64s, stages failed or were not run:%s", step->report.node, targets);
}

static bool is_step(const char *name)
{
	return !strncmp(name, XFP_STEP_PREFIX, strlen(XFP_STEP_PREFIX));
}

static void for_each_step(const char *work, void (*act)(int folder, const char *name))
{
	DIR *folder = opendir(work);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (is_step(entry->d_name))
			act(dirfd(folder), entry->d_name);
	if (folder)
		closedir(folder);
}

/* The step starts no other units, as make does after a failure. */
static void stop(int folder, const char *name)
{
	fchmodat(folder, name, S_IRWXU, 0);
}

/* Decide by the node's report; the launcher's status only explains a missing one. */
static enum xfp_status outcome_of_step(const struct launched_step *step, struct xfp_error *err)
{
	const struct xfp_launch *launch = step->launch;
	const struct xfp_step_report *report = &step->report;
	const char *missing;
	char outcome[80], targets[64];

	xfp_launch_outcome(step->ended, outcome);
	describe_targets(launch, targets);
	if (!*report->node)
		return xfp_fail(err, XFP_FAILED, LAUNCHER "%s': %s before %s started on a node; %s", launch->launcher,
				outcome, targets,
				step->ended ? "correct --launcher, or see its messages in the log"
					    : "it must run the command that is appended to it");
	if (*report->error)
		return xfp_fail(err, XFP_FAILED, LAUNCHER "%s': node %s: %s", launch->launcher, report->node,
				report->error);
	if (!report->ended)
		return xfp_fail(err, XFP_FAILED,
				LAUNCHER "%s': %s, and node %s did not finish %s: it died, or its step was killed",
				launch->launcher, outcome, report->node, targets);
	if (report->status)
		return fail_on_node(step, err);
	if ((missing = missing_target(launch)))
		return xfp_fail(err, XFP_FAILED,
				LAUNCHER "%s': node %s reported success, but %s/%s does not exist; the folder must be "
					 "shared by all nodes",
				launch->launcher, report->node, launch->work, missing);
	return XFP_OK;
}

enum xfp_status xfp_launch_targets(const struct xfp_launch *launch, struct xfp_signals *signals, struct xfp_error *err)
{
	struct launched_step step = { .launch = launch, .signals = signals };
	enum xfp_status status = create(&step, err);

	if (!status) {
		status = launch_step(&step, err);
		if (!status && !signals->interrupted)
			status = xfp_step_report_read(step.path, &step.report, err);
		unlink(step.path);
		if (!status)
			status = signals->interrupted ? xfp_fail(err, XFP_FAILED, "%s", "")
						      : outcome_of_step(&step, err);
	}
	if (status && !launch->keep_going)
		for_each_step(launch->work, stop);
	free(step.path);
	return status;
}

/* ---- the log ----------------------------------------------------------------------------------- */

/* A message of xfp-launch in a line of the log, if it begins with `beginning`; otherwise NULL. */
static const char *message_of(const char *line, const char *beginning)
{
	const char *message = xfp_after_prefix(line, XFP_LAUNCH_PROGRAM ": ");

	return message && xfp_after_prefix(message, beginning) ? message : NULL;
}

unsigned xfp_launch_find_messages(const char *log, const char *beginning, char first[XFP_LAUNCH_MESSAGE])
{
	char *copy = strdup(log), *rest = copy, *line;
	unsigned count = 0;

	while ((line = strsep(&rest, "\n"))) {
		const char *message = message_of(line, beginning);

		if (message && !count++)
			snprintf(first, XFP_LAUNCH_MESSAGE, "%s", message);
	}
	free(copy);
	return count;
}

bool xfp_launch_find_failure(const char *log, char failure[1024])
{
	unsigned count = xfp_launch_find_messages(log, LAUNCHER, failure);

	if (count > 1)
		snprintf(failure + strlen(failure), 64, "; %u more failure%s", count - 1, count == 2 ? "" : "s");
	return count;
}

void xfp_launch_find_node(const char *log, uint32_t unit, char where[XFP_LAUNCH_NODE])
{
	char *copy = strdup(log), *rest = copy, *line, target[24];

	*where = '\0';
	snprintf(target, sizeof target, " u%06" PRIu32 "-", unit);
	while (!*where && (line = strsep(&rest, "\n"))) {
		const char *message = message_of(line, ON_NODE);

		if (message && strstr(message, target))
			snprintf(where, XFP_LAUNCH_NODE, " %.*s", (int)strcspn(message, ","), message);
	}
	free(copy);
}

/* ---- waiting ----------------------------------------------------------------------------------- */

/* Whether the node has not written its first line. Opening the file asks the server of a shared file system. */
static bool is_empty(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	struct stat st;
	bool empty = fd >= 0 && !fstat(fd, &st) && !st.st_size;

	if (fd >= 0)
		close(fd);
	return empty;
}

bool xfp_launch_waits(const char *work, double now, struct xfp_launch_wait *wait)
{
	char first[sizeof wait->step] = "";
	struct dirent *entry;
	bool same = false;
	DIR *folder;

	if (now < wait->checked + WAIT_INTERVAL_S || !(folder = opendir(work)))
		return false;
	wait->checked = now;
	while ((entry = readdir(folder)))
		if (is_step(entry->d_name) && is_empty(dirfd(folder), entry->d_name)) {
			same |= !strcmp(entry->d_name, wait->step);
			snprintf(first, sizeof first, "%s", entry->d_name);
		}
	closedir(folder);
	if (!same) {
		strcpy(wait->step, first);
		wait->since = now;
	}
	return *wait->step && now >= wait->since + XFP_LAUNCH_PATIENCE_S;
}

/* ---- leftovers --------------------------------------------------------------------------------- */

static void cancel_step(int folder, const char *name)
{
	unlinkat(folder, name, 0);
}

void xfp_launch_sweep(const char *work)
{
	for_each_step(work, cancel_step);
}
