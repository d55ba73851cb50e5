/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/run_calibrate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"
#include "conversion/place.h"
#include "conversion/run_make.h"
#include "conversion/state/layers.h"
#include "stages/work/stages.h"

#define SELF "self" /* source of text that the model generates */

/* Remove the calibration of an earlier run. prepare removes stamps of layers. */
static enum xfp_status remove_old(const char *work, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_CALIBRATION_FILE);
	enum xfp_status status = path ? xfp_remove_file(path, err) : xfp_no_memory(err);

	free(path);
	return status;
}

/* Run the program. `self`: the model generates the text. `tokens` 0: the program decides. */
static int begin(struct xfp_conversion *c, const char *work, bool self, uint64_t tokens, struct xfp_error *err)
{
	const struct xfp_calibration_request *wanted = &c->request->calibration;
	const char *argv[12] = { XFP_CALIBRATE_PROGRAM, "--begin", "--work", work };
	off_t before = xfp_log_size(&c->place);
	unsigned count = 4;
	char number[24];
	int status;

	if (self)
		argv[count++] = "--self";
	if (wanted->text || wanted->ids) {
		argv[count++] = wanted->text ? "--text" : "--tokens";
		argv[count++] = wanted->text ? wanted->text : wanted->ids;
	}
	if (tokens) {
		snprintf(number, sizeof number, "%" PRIu64, tokens);
		argv[count++] = "--token-count";
		argv[count++] = number;
	}
	argv[count++] = "--";
	argv[count++] = c->request->model;
	status = xfp_run(&c->place, c->signals, argv, NULL, NULL, NULL, err);
	if (status || !c->request->quiet)
		xfp_log_show(c, before);
	if (status)
		xfp_log_keep(&c->place, before);
	/* Its options come from the user. */
	return status == XFP_USAGE ? XFP_USAGE : (int)xfp_child_status(status);
}

/* Report what the program noted: a text that is too short, for example. */
static enum xfp_status show_notes(const struct xfp_conversion *c, struct xfp_error *err)
{
	char *copy = strdup(c->layers.calibration.notes), *rest = copy, *line;

	while (!c->request->quiet && (line = strsep(&rest, "\n")))
		if (*line) {
			char *text = xfp_formatted("note: %s", line);

			if (text)
				XFP_NOTIFY(c, .kind = XFP_NOTICE_INSPECT, .text = text);
			free(text);
		}
	free(copy);
	return copy ? XFP_OK : xfp_no_memory(err);
}

/* Compare the ids with those of the bundle to repeat. A bundle names its source, not the user's file. */
static enum xfp_status check_like(const struct xfp_conversion *c, const struct xfp_calibrated *ours,
				  struct xfp_error *err)
{
	const struct xfp_calibrated *theirs = &c->request->parameters.calibration;

	if (!*theirs->sha256 || !strcmp(ours->sha256, theirs->sha256))
		return XFP_OK;
	return xfp_fail(err, XFP_UNMET,
			"%s: was calibrated with other token ids (%s, SHA-256 %s); name their file with "
			"--calibrate-text or --calibrate-ids",
			c->request->like, theirs->source, theirs->sha256);
}

/* Record what is in calibration.h5 as a parameter of the bundle. */
static void set_parameter(const struct xfp_calibration *from, struct xfp_calibrated *to)
{
	memcpy(to->sha256, from->sha256, sizeof to->sha256);
	snprintf(to->source, sizeof to->source, "%s", from->source);
	to->tokens = from->windows * from->length;
}

/* Whether the work folder has text that the model generated. */
static bool has_own_text(const struct xfp_conversion *c)
{
	struct xfp_calibration calibration = { 0 };
	bool found, own = !xfp_calibration_read(c->request->work, &calibration, &found, NULL) && found &&
			  !strcmp(calibration.source, SELF);

	xfp_calibration_free(&calibration);
	return own;
}

int xfp_run_calibrate(struct xfp_conversion *c, const char *work, struct xfp_error *err)
{
	static const char generating[] = "note: the model generates the calibration text, token by token; the log has "
					 "the cost";
	const struct xfp_calibration_request *wanted = &c->request->calibration;
	const struct xfp_calibrated *recorded = &c->request->parameters.calibration;
	bool self = wanted->self || (!wanted->text && !wanted->ids && !strcmp(recorded->source, SELF));
	/* A dry run generates no text. Without that of the work folder, all layers are missing, with any text. */
	bool reuse = self && c->request->dry_run && has_own_text(c), other = self && c->request->dry_run && !reuse;
	int status = XFP_OK;

	if (!wanted->wanted)
		return (int)remove_old(work, err);
	if (self && !c->request->dry_run && !c->request->quiet && !has_own_text(c))
		XFP_NOTIFY(c, .kind = XFP_NOTICE_INSPECT, .text = generating);
	if (!reuse)
		status = begin(c, work, self && !other, wanted->tokens ? wanted->tokens : recorded->tokens, err);
	if (status || (status = (int)xfp_layers_begin(c, reuse ? c->request->work : work, err)) ||
	    (status = (int)show_notes(c, err)))
		return status;
	set_parameter(&c->layers.calibration, &c->parameters.calibration);
	return other ? XFP_OK : (int)check_like(c, &c->parameters.calibration, err);
}

int xfp_run_calibrate_again(struct xfp_conversion *c, struct xfp_error *err)
{
	struct xfp_calibration calibration = { 0 };
	bool found, sound = !xfp_calibration_read(c->request->work, &calibration, &found, NULL) && found &&
			    !strcmp(calibration.sha256, c->parameters.calibration.sha256);

	xfp_calibration_free(&calibration);
	if (sound || !c->layers.count)
		return XFP_OK;
	xfp_layers_free(c);
	return xfp_run_calibrate(c, c->request->work, err);
}
