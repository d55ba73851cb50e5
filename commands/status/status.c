/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.c - `xfp status`: shows the progress of a running or dead run. Reads the work folder (run_state.h) and writes
 * nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/system/command_line.h"
#include "base/system/file.h"
#include "base/system/output.h"
#include "base/text/suffix.h"
#include "base/text/text.h"
#include "commands/status/print.h"
#include "commands/ui/commands.h"
#include "conversion/run_state.h"

#define REDRAW_US 1000000 /* on a terminal */
#define LOOK_US 200000    /* elsewhere */

struct status_request {
	const char *program, *out, *work;
	bool watch, json;
};

/* The requested work folders. */
struct folders {
	char **list;
	size_t count;
};

/* ---- which folders ----------------------------------------------------------------------------- */

static void folders_free(struct folders *folders)
{
	for (size_t i = 0; i < folders->count; i++)
		free(folders->list[i]);
	free(folders->list);
}

static enum xfp_status add_folder(struct folders *folders, char *path, struct xfp_error *err)
{
	char **grown = path ? realloc(folders->list, (folders->count + 1) * sizeof *grown) : NULL;

	if (!grown) {
		free(path);
		return xfp_no_memory(err);
	}
	folders->list = grown;
	grown[folders->count++] = path;
	return XFP_OK;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Find the current folder, if it is a work folder, or the work folders in it by convert's naming scheme. */
static enum xfp_status find_here(struct folders *folders, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	struct dirent *entry;
	DIR *here;

	if (xfp_is_work_folder("."))
		return add_folder(folders, strdup("."), err);
	if (!(here = opendir(".")))
		return xfp_fail_errno(err, errno, "the current folder");
	while (!status && (entry = readdir(here))) {
		if (xfp_stem(entry->d_name, ".work") && xfp_is_work_folder(entry->d_name))
			status = add_folder(folders, strdup(entry->d_name), err);
	}
	closedir(here);
	if (!status && !folders->count)
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "no work folder (OUT.xfp.work) here; name OUT.xfp, or the folder with --work");
	if (folders->count)
		qsort(folders->list, folders->count, sizeof *folders->list, by_name);
	return status;
}

static enum xfp_status find_of(struct folders *folders, const char *out, struct xfp_error *err)
{
	char *work;
	enum xfp_status status = xfp_work_folder_of(out, "name it with --work", &work, err);

	return status ? status : add_folder(folders, work, err);
}

static enum xfp_status find_folders(const struct status_request *request, struct folders *folders,
				    struct xfp_error *err)
{
	const char *work = getenv("XFP_WORK"), *out = getenv("XFP_OUT");

	if (request->work)
		return add_folder(folders, strdup(request->work), err);
	if (request->out)
		return find_of(folders, request->out, err);
	if (work && *work)
		return add_folder(folders, strdup(work), err);
	if (out && *out)
		return find_of(folders, out, err);
	return find_here(folders, err);
}

/* ---- once -------------------------------------------------------------------------------------- */

static enum xfp_status show(const struct status_request *request, const struct folders *folders, struct xfp_error *err)
{
	struct xfp_run_state *states = calloc(folders->count, sizeof *states);
	enum xfp_status status = states ? XFP_OK : xfp_no_memory(err);

	for (size_t i = 0; !status && i < folders->count; i++) {
		status = xfp_run_state_read(folders->list[i], &states[i], err);
		if (!status && !request->json) {
			fputs(i ? "\n\n" : "", stdout);
			xfp_status_text(stdout, &states[i]);
		}
	}
	if (!status && request->json)
		status = xfp_status_json(states, folders->count, false, err);
	for (size_t i = 0; states && i < folders->count; i++)
		xfp_run_state_free(&states[i]);
	free(states);
	return status;
}

/* ---- --watch ----------------------------------------------------------------------------------- */

/* Choose the running one of several work folders. */
static enum xfp_status pick(const struct folders *folders, const char **work, struct xfp_error *err)
{
	size_t running = 0;

	*work = folders->list[0];
	for (size_t i = 0; folders->count > 1 && i < folders->count; i++) {
		struct xfp_run_state state = { 0 };

		if (!xfp_run_state_read(folders->list[i], &state, NULL) && state.locked && !running++)
			*work = folders->list[i];
		xfp_run_state_free(&state);
	}
	return folders->count == 1 || running == 1
		       ? XFP_OK
		       : xfp_fail(err, XFP_USAGE, "--watch: %zu conversions found, %zu of them running; name one",
				  folders->count, running);
}

/* Replace the last `before` printed lines; a wrapped line would break the count. */
static int redraw(const struct xfp_run_state *state, int before)
{
	struct winsize window = { 0 };
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);
	char *rest, *line;
	int lines = 0, width, height;

	if (!out)
		return before;
	xfp_status_text(out, state);
	if (!xfp_text_end(&text))
		return before;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) || !window.ws_col || !window.ws_row)
		window = (struct winsize){ .ws_col = 80, .ws_row = 24 };
	width = window.ws_col - 1;
	height = window.ws_row - 1;
	if (before)
		printf("\033[%dA", before);
	fputs("\r\033[J", stdout);
	for (rest = text.bytes; (line = strsep(&rest, "\n")) && rest && (lines < height || !state->locked); lines++)
		printf("%.*s\n", state->locked ? width : (int)strlen(line), line);
	xfp_output_flush();
	free(text.bytes);
	return lines;
}

/* Whether the state differs from `last`. */
static bool changed(const struct xfp_run_state *state, char last[96])
{
	char now[96];

	snprintf(now, sizeof now, "%s %s %u %u %u %d %d", state->state, state->record.phase, (unsigned)state->done,
		 (unsigned)state->layers_done, (unsigned)state->failures,
		 state->weights > 0 ? (int)((state->cached + state->fresh) * 20 / state->weights) : 0,
		 (int)(state->bundled * 20));
	if (!strcmp(now, last))
		return false;
	memcpy(last, now, sizeof now);
	return true;
}

/* Watch until the run ends; returns its exit status. */
static int watch(const struct status_request *request, const char *work, struct xfp_error *err)
{
	bool terminal = isatty(STDOUT_FILENO) && !request->json;
	struct xfp_run_state state = { 0 };
	char last[96] = "";
	int status, lines = 0;

	while (!(status = (int)xfp_run_state_read(work, &state, err))) {
		bool news = changed(&state, last);

		if (terminal)
			lines = redraw(&state, lines);
		else if (news && request->json)
			status = (int)xfp_status_json(&state, 1, true, err);
		else if (news)
			xfp_status_line(stdout, &state);
		if (status || !state.locked || fflush(stdout))
			break;
		usleep(terminal ? REDRAW_US : LOOK_US);
	}
	/* A killed run could not record its status. */
	if (!status && !state.locked)
		status = state.record.ended || !strcmp(state.state, "prepared") ? (int)state.record.status : XFP_FAILED;
	xfp_run_state_free(&state);
	return status;
}

/* ---- options ----------------------------------------------------------------------------------- */

int xfp_main_status(int argc, char **argv)
{
	struct status_request request = { .program = argv[0] };
	const struct xfp_option options[] = {
		{ .name = "work",
		  .value = "DIR",
		  .text = "the conversion's work folder [OUT.xfp.work]",
		  .into = &request.work },
		{ .name = "watch",
		  .text = "follow the run until it ends, and exit with its status",
		  .set = &request.watch },
		{ .name = "json", .text = "print a JSON object; with --watch, one per line", .set = &request.json },
		{ 0 },
	};
	struct xfp_command_line line = {
		.usage = "xfp status [--watch] [--json] [--work DIR | OUT.xfp]",
		.operand = "RUN",
		.summary =
			"Shows the progress of a conversion, or how it ended. Without OUT.xfp, shows all conversions\n"
			"into the current folder. It changes nothing.",
		.options = options,
	};
	struct folders folders = { 0 };
	struct xfp_error err = { 0 };
	const char *work;
	int status;

	if (!xfp_command_line_read(&line, argc, argv, &status))
		return status;
	request.out = line.argument_count ? line.arguments[0] : NULL;
	if (line.argument_count > 1)
		return xfp_command_line_refuse(&line, "expected one conversion, got '%s' as well", line.arguments[1]);
	if (request.out && request.work)
		return xfp_command_line_refuse(&line, "OUT.xfp or --work, not both");
	if (request.out && !*request.out)
		return xfp_command_line_refuse(&line, "OUT.xfp is empty");
	status = (int)find_folders(&request, &folders, &err);
	if (!status && !request.watch)
		status = (int)show(&request, &folders, &err);
	else if (!status && !(status = (int)pick(&folders, &work, &err)))
		status = watch(&request, work, &err);
	if (status && *err.text)
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
	folders_free(&folders);
	return status;
}
