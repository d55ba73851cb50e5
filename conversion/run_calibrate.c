/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/run_calibrate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/system/file.h"
#include "conversion/run_make.h"
#include "conversion/state/layers.h"
#include "stages/work/decided.h"
#include "stages/work/stages.h"

/* Remove the calibration of an earlier run. prepare removes stamps of layers. */
static enum xfp_status remove_old(const char *work, struct xfp_error *err)
{
	char *path = xfp_path(work, XFP_CALIBRATION_FILE);
	enum xfp_status status = path ? xfp_remove_file(path, err) : xfp_no_memory(err);

	free(path);
	return status;
}

/* 0: the program decides. */
static uint64_t wanted_tokens(const struct xfp_conversion *c)
{
	return c->request->calibration.tokens ? c->request->calibration.tokens
					      : c->request->parameters.calibration.tokens;
}

/* Run the program. `self`: the model generates the text; a dry run counts its tokens. */
static int begin(struct xfp_conversion *c, const char *work, bool self, struct xfp_error *err)
{
	const struct xfp_calibration_request *wanted = &c->request->calibration;
	const uint64_t tokens = wanted_tokens(c);
	const char *argv[13] = { XFP_CALIBRATE_PROGRAM, "--begin", "--work", work };
	unsigned count = 4;
	char number[24];

	if (self)
		argv[count++] = c->request->dry_run ? "--self-length" : "--self";
	if (c->request->planning)
		argv[count++] = "--pace";
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
	return xfp_run_program(c, argv, err);
}

/* Report what the program noted: a text that is too short, for example. */
static enum xfp_status show_notes(const struct xfp_conversion *c, struct xfp_error *err)
{
	char *copy = strdup(c->layers.calibration.notes), *rest = copy, *line;

	while (!c->request->quiet && (line = strsep(&rest, "\n")))
		if (*line) {
			char *text = xfp_formatted("note: %s", line);

			if (text)
				XFP_NOTIFY(c, .kind = XFP_NOTICE_MESSAGE, .text = text);
			free(text);
		}
	free(copy);
	return copy ? XFP_OK : xfp_no_memory(err);
}

/* Check that the text is of the same kind as that of the bundle to repeat, which names its source, not the user's
 * file. */
static enum xfp_status check_source(const struct xfp_conversion *c, struct xfp_error *err)
{
	const struct xfp_calibration_request *wanted = &c->request->calibration;
	const struct xfp_calibrated *theirs = &c->request->parameters.calibration;
	bool text = xfp_after_prefix(theirs->source, XFP_CALIBRATION_TEXT),
	     ids = !strcmp(theirs->source, XFP_CALIBRATION_TOKENS),
	     self = !strcmp(theirs->source, XFP_CALIBRATION_SELF);

	if (!*theirs->sha256 || (!!wanted->text == text && !!wanted->ids == ids && (self || !wanted->self)))
		return XFP_OK;
	if (text || ids)
		return xfp_fail(err, XFP_UNMET,
				"%s: was calibrated with a file of the user's (%s, SHA-256 of the token ids %s); name "
				"it with --calibrate-%s",
				c->request->like, theirs->source, theirs->sha256, text ? "text" : "ids");
	return xfp_fail(err, XFP_UNMET, "%s: was calibrated with %s; omit --calibrate-%s", c->request->like,
			self ? "text that the model generated" : "xfp's own text",
			wanted->text  ? "text"
			: wanted->ids ? "ids"
				      : "self");
}

static enum xfp_status check_ids(const struct xfp_conversion *c, struct xfp_error *err)
{
	const char *ours = c->parameters.calibration.sha256;
	const struct xfp_calibrated *theirs = &c->request->parameters.calibration;

	if (!*theirs->sha256 || !strcmp(ours, theirs->sha256))
		return XFP_OK;
	return xfp_fail(err, XFP_UNMET, "%s: was calibrated with other token ids (%s, SHA-256 %s), not with %s",
			c->request->like, theirs->source, theirs->sha256, ours);
}

/* Record the tokens of calibration.h5 as a parameter of the bundle. */
static void set_parameter(const struct xfp_calibration *from, struct xfp_calibrated *to)
{
	memcpy(to->sha256, from->sha256, sizeof to->sha256);
	snprintf(to->source, sizeof to->source, "%s", from->source);
	to->tokens = from->windows * from->length;
}

/* Whether the work folder has text that the model generated, of that many tokens; 0: of any number. */
static bool has_own_text(const struct xfp_conversion *c, uint64_t tokens)
{
	struct xfp_calibration calibration = { 0 };
	bool found, own = !xfp_calibration_read(c->request->work, &calibration, &found, NULL) && found &&
			  !strcmp(calibration.source, XFP_CALIBRATION_SELF) &&
			  (!tokens || calibration.windows == xfp_divide_up(tokens, calibration.length));

	xfp_calibration_free(&calibration);
	return own;
}

int xfp_run_calibrate(struct xfp_conversion *c, const char *work, struct xfp_error *err)
{
	static const char generating[] = "note: the model generates the calibration text, token by token; the log has "
					 "the cost";
	const struct xfp_calibration_request *wanted = &c->request->calibration;
	bool self = wanted->self || !strcmp(c->request->parameters.calibration.source, XFP_CALIBRATION_SELF);
	bool dry = self && c->request->dry_run;
	int status;

	if (!wanted->wanted)
		return (int)remove_old(work, err);
	if ((status = (int)check_source(c, err)))
		return status;
	if (self && !dry && !c->request->quiet && !has_own_text(c, wanted_tokens(c)))
		XFP_NOTIFY(c, .kind = XFP_NOTICE_MESSAGE, .text = generating);
	if (!(c->layers.files = xfp_decided_files(c->units.ledger)))
		return (int)xfp_no_memory(err);
	if ((status = begin(c, work, self, err)) || (status = (int)xfp_layers_begin(c, work, err)))
		return status;
	/* A dry run generates no text. Unless the work folder has it, all layers are missing, with any tokens. */
	if (dry && has_own_text(c, c->layers.calibration.windows * c->layers.calibration.length)) {
		double *seconds = c->layers.calibration.seconds;

		c->layers.calibration.seconds = NULL;
		xfp_layers_free(c);
		dry = false;
		status = (int)xfp_layers_begin(c, c->request->work, err);
		free(c->layers.calibration.seconds);
		c->layers.calibration.seconds = seconds;
	}
	if (status || (status = (int)show_notes(c, err)))
		return status;
	set_parameter(&c->layers.calibration, &c->parameters.calibration);
	return dry ? XFP_OK : (int)check_ids(c, err);
}

static bool files_changed(const struct xfp_conversion *c)
{
	struct xfp_identity *now = xfp_decided_files(c->units.ledger);
	bool same = now;

	for (uint32_t i = 0; same && i < c->units.ledger->extra_count; i++)
		same = xfp_identity_equal(&c->layers.files[i], &now[i]);
	free(now);
	return !same;
}

int xfp_run_calibrate_again(struct xfp_conversion *c, struct xfp_error *err)
{
	struct xfp_calibration calibration = { 0 };
	bool found, sound = !xfp_calibration_read(c->request->work, &calibration, &found, NULL) && found &&
			    !strcmp(calibration.sha256, c->parameters.calibration.sha256);

	xfp_calibration_free(&calibration);
	if (!c->layers.count || (sound && !files_changed(c)))
		return XFP_OK;
	xfp_layers_free(c);
	return xfp_run_calibrate(c, c->request->work, err);
}
