/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - `xfp report`: one page about a bundle.
 *
 * input    a bundle, which is read completely; JSON of other commands; a work folder
 * output   -o FILE, replaced atomically; with --json standard output
 * status   3 when an input is damaged, or about another model
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/command_line.h"
#include "base/system/file.h"
#include "base/system/mapped.h"
#include "base/system/path.h"
#include "base/text/screen.h"
#include "base/text/text.h"
#include "commands/ui/commands.h"
#include "conversion/report/html/page.h"
#include "conversion/report/inputs.h"
#include "conversion/report/json.h"
#include "runtime/digest.h"
#include "schemas/json_print.h"

struct report_request {
	const char *bundle, *out, *work, *cache, *evaluation, *comparison, *walk, *tails;
	const char *program, *source;
	bool json, ablate;
};

/* What other files contribute to a report. */
struct report_extras {
	struct xfp_report_evaluation evaluation;
	struct xfp_report_comparison comparison;
	struct xfp_report_walk walk;
	struct xfp_report_tails tails;
	struct xfp_report_samples samples;
	struct xfp_report_times times;
	struct xfp_report_source source;
	struct xfp_report_ablations ablation;
};

/* Whether a file is empty or begins as the pages of this command do. */
static enum xfp_status check_page(const char *path, struct xfp_error *err)
{
	static const char begin[] = "<!DOCTYPE html>";
	char found[sizeof begin - 1];
	enum xfp_status status;
	struct stat st;
	int fd = -1;

	if ((status = xfp_open_regular(path, &fd, &st, err)))
		return xfp_context(err, XFP_USAGE, "-o");
	if (st.st_size && (pread(fd, found, sizeof found, 0) != sizeof found || memcmp(found, begin, sizeof found)))
		status = xfp_fail(err, XFP_USAGE, "-o %s: exists, and is not a page of xfp report; remove it first",
				  xfp_printable(path).text);
	close(fd);
	return status;
}

/* The output must not replace an input, or anything else than an older page. */
static enum xfp_status check_output(const struct report_request *request, struct xfp_error *err)
{
	const char *const inputs[] = { request->bundle, request->evaluation, request->comparison, request->walk,
				       request->tails };
	struct stat out, in;

	if (stat(request->out, &out))
		return XFP_OK;
	if (S_ISDIR(out.st_mode))
		return xfp_fail(err, XFP_USAGE, "-o %s: it is a folder; name a file in it",
				xfp_printable(request->out).text);
	for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
		if (inputs[i] && !stat(inputs[i], &in) && in.st_dev == out.st_dev && in.st_ino == out.st_ino)
			return xfp_fail(err, XFP_USAGE, "-o %s: the report would replace its own input",
					xfp_printable(request->out).text);
	return check_page(request->out, err);
}

static enum xfp_status write_page(const struct xfp_report *report, const char *path, struct xfp_error *err)
{
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);

	if (out)
		xfp_report_page(out, report);
	return xfp_write_text(path, &text, err);
}

static enum xfp_status read_extras(const struct report_request *request, struct xfp_report *report,
				   struct report_extras *extras, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	if (request->evaluation) {
		status = xfp_report_read_evaluation(request->evaluation, report, &extras->evaluation, err);
		report->evaluation = &extras->evaluation;
	}
	if (!status && request->comparison) {
		status = xfp_report_read_comparison(request->comparison, report, &extras->comparison, err);
		report->comparison = &extras->comparison;
		report->ablation = extras->comparison.ablation.list ? &extras->comparison.ablation : NULL;
	}
	if (!status && request->walk) {
		status = xfp_report_read_walk(request->walk, report, &extras->walk, err);
		report->walk = &extras->walk;
	}
	if (!status && request->tails) {
		status = xfp_report_read_tails(request->tails, report, &extras->tails, err);
		report->tails = &extras->tails;
	}
	if (!status && request->work) {
		status = xfp_report_read_times(request->work, report, &extras->times, err);
		report->times = &extras->times;
	}
	if (!status && request->cache) {
		status = xfp_report_read_samples(request->cache, request->work, report, &extras->samples, err);
		report->samples = &extras->samples;
	}
	return status;
}

/* Print the messages of inspect. */
static void print_line(const struct xfp_notice *notice, void *context)
{
	(void)context;
	if (notice->kind == XFP_NOTICE_MESSAGE)
		xfp_screen_printf(stderr, "xfp report: %s\n", notice->text);
	else if (notice->kind == XFP_NOTICE_TOOL)
		xfp_screen_printf(stderr, "%s\n", notice->text);
}

/* Check the source, and measure on it. A signal ends the process once the ledger's folder is removed. */
static enum xfp_status read_source(const struct report_request *request, struct xfp_report *report,
				   struct report_extras *extras, struct xfp_error *err)
{
	struct xfp_signals signals = { 0 };
	enum xfp_status status;

	if (!request->source)
		return XFP_OK;
	xfp_signals_block(&signals);
	status = xfp_report_read_source(request->program, request->source, report, &signals,
					(struct xfp_notify){ .report = print_line }, &extras->source, err);
	report->source = &extras->source;
	if (!status && request->ablate) {
		status = xfp_report_ablate(report, &extras->source, &signals, &extras->ablation, err);
		report->ablation = &extras->ablation;
	}
	xfp_signals_release(&signals);
	return status;
}

static enum xfp_status make_report(const struct report_request *request, const struct xfp_bundle *bundle,
				   struct xfp_error *err)
{
	struct xfp_recorded recorded = { .family = NULL };
	/* A bundle of another version may have parameters unknown here; its units are still reported. */
	bool has_record = !xfp_recorded_read(bundle, request->bundle, &recorded, NULL);
	struct report_extras extras = { .evaluation = { .loss = 0 } };
	struct xfp_report report;
	enum xfp_status status = xfp_report_gather(bundle, has_record ? &recorded : NULL, &report, err);

	report.name = xfp_base_name(request->bundle);
	if (!status)
		status = xfp_bundle_check_file(bundle, report.sha256, err);
	if (!status)
		status = read_extras(request, &report, &extras, err);
	if (!status)
		status = read_source(request, &report, &extras, err);
	if (!status && request->out)
		status = write_page(&report, request->out, err);
	if (!status && request->json)
		status = xfp_json_print(xfp_report_json(&report), err);
	xfp_report_evaluation_free(&extras.evaluation);
	xfp_report_comparison_free(&extras.comparison);
	xfp_report_walk_free(&extras.walk);
	xfp_report_tails_free(&extras.tails);
	xfp_report_source_free(&extras.source);
	xfp_report_ablations_free(&extras.ablation);
	xfp_report_samples_free(&extras.samples);
	xfp_report_free(&report);
	xfp_recorded_free(&recorded);
	return status;
}

int xfp_main_report(int argc, char **argv)
{
	struct report_request request = { .program = argv[0] };
	struct xfp_bundle *bundle = NULL;
	const struct xfp_option options[] = {
		{ .letter = 'o',
		  .name = "output",
		  .value = "FILE",
		  .text = "write the page to this file",
		  .path = true,
		  .into = &request.out },
		{ .name = "eval",
		  .value = "FILE",
		  .text = "add perplexity and drift: the JSON of xfp eval",
		  .path = true,
		  .into = &request.evaluation },
		{ .name = "compare",
		  .value = "FILE",
		  .text = "add other formats, and what outliers gain: the JSON of\nxfp compare, per unit",
		  .path = true,
		  .into = &request.comparison },
		{ .name = "walk",
		  .value = "FILE",
		  .text = "add points of other sizes, and which one this is: the JSON of\nxfp walk",
		  .path = true,
		  .into = &request.walk },
		{ .name = "stats",
		  .value = "FILE",
		  .text = "add tails of the source's weights: the JSON of xfp inspect, with\nstatistics",
		  .path = true,
		  .into = &request.tails },
		{ .name = "work",
		  .value = "DIR",
		  .text = "add the time per stage: the work folder of the conversion",
		  .path = true,
		  .into = &request.work },
		{ .name = "cache",
		  .value = "DIR",
		  .text = "with --work: add bits that samples of experts would\nchoose, from the fits in this cache",
		  .path = true,
		  .into = &request.cache },
		{ .name = "source",
		  .value = "MODEL",
		  .text = "check that the bundle was made from this checkpoint",
		  .path = true,
		  .into = &request.source },
		{ .name = "ablate-outliers",
		  .text = "with --source: add what outliers gain, measured on rows of each unit",
		  .set = &request.ablate },
		{ .name = "json", .text = "print the data as one JSON object", .set = &request.json },
		{ 0 },
	};
	struct xfp_command_line line = {
		.usage = "xfp report [-o FILE] [--eval FILE] [--compare FILE] [--walk FILE]\n"
			 "                  [--stats FILE] [--work DIR [--cache DIR]]\n"
			 "                  [--source MODEL [--ablate-outliers]] [--json] BUNDLE",
		.operand = "BUNDLE",
		.summary = "Writes one self-contained HTML page about a bundle: where it loses, and what would help.",
		.options = options,
	};
	struct xfp_error err = { 0 };
	int status;

	if (!xfp_command_line_read(&line, argc, argv, &status))
		return status;
	if (!(request.bundle = xfp_command_line_bundle(&line)))
		return XFP_USAGE;
	if (!request.out && !request.json)
		return xfp_command_line_refuse(&line, "-o FILE or --json is missing");
	if (request.cache && !request.work)
		return xfp_command_line_refuse(&line, "--cache needs --work, which names the fits of the bundle");
	if (request.ablate && !request.source)
		return xfp_command_line_refuse(&line, "--ablate-outliers needs --source, whose weights it measures");
	if (request.out && (status = (int)check_output(&request, &err)))
		goto done;
	xfp_mapped_begin(argv[0], request.bundle, NULL);
	if (!(status = (int)xfp_bundle_open(request.bundle, &bundle, &err)))
		status = (int)make_report(&request, bundle, &err);
	xfp_bundle_close(bundle);
	xfp_mapped_end();
done:
	if (status)
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
	return status;
}
