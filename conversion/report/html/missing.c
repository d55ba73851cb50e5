/* SPDX-License-Identifier: Apache-2.0 */
/*
 * missing.c - the sections without data, with the commands that add them; and other commands of the page.
 */
#include <stdlib.h>

#include "base/text/shell.h"
#include "base/text/text.h"
#include "conversion/report/html/html.h"
#include "conversion/report/html/page.h"
#include "conversion/report/inputs.h"

/* Options of xfp report, by the data that they add. */
enum page_option { EVAL, COMPARE, WALK, STATS, SOURCE, ABLATE, WORK, CACHE, OPTIONS };
static const char *const option_text[OPTIONS] = {
	[EVAL] = " --eval eval.json",    [COMPARE] = " --compare compare.json", [WALK] = " --walk walk.json",
	[STATS] = " --stats stats.json", [SOURCE] = " --source MODEL",          [ABLATE] = " --ablate-outliers",
	[WORK] = " --work %.work",       [CACHE] = " --cache xfp-cache",
};

void xfp_page_command(FILE *out, const struct xfp_report *report, const char *command)
{
	struct xfp_text text;
	FILE *line = xfp_text_begin(&text);

	for (; line && *command; command++)
		if (*command == '%') {
			fputs(*report->name == '-' ? "./" : "", line);
			xfp_shell_quote(line, report->name);
		} else {
			fputc(*command, line);
		}
	if (xfp_text_end(&text))
		xfp_html_text(out, text.bytes);
	free(text.bytes);
}

/* A section without data. */
struct missing_section {
	const void *data; /* NULL: missing */
	const char *name;
	const char *make; /* makes the input; "": nothing to make */
	unsigned options; /* bit i: needs option i */
};
#define SECTIONS 7

static void list_sections(const struct xfp_report *report, struct missing_section list[SECTIONS])
{
	const struct xfp_report_evaluation *e = report->evaluation;
	const struct missing_section sections[SECTIONS] = {
		{ e && e->compared ? e : NULL, e ? "Divergence and drift" : "Perplexity, divergence and drift",
		  "xfp eval % --source MODEL --text FILE --json > eval.json", 1u << EVAL },
		{ report->comparison, "Rate and error", "xfp compare MODEL --json --per-unit > compare.json",
		  1u << COMPARE },
		{ report->walk, "Points of a walk", "xfp walk MODEL --json --probe --text FILE > walk.json",
		  1u << WALK },
		{ report->ablation, "Outliers", "", 1u << SOURCE | 1u << ABLATE },
		{ report->tails, "Tails", "xfp inspect MODEL --stats --json > stats.json", 1u << STATS },
		{ report->samples, "Samples of experts",
		  "xfp convert MODEL -o AGAIN.xfp --like %    # if the cache is gone", 1u << WORK | 1u << CACHE },
		{ report->times, "Time per stage", "", 1u << WORK },
	};

	for (size_t i = 0; i < SECTIONS; i++)
		list[i] = sections[i];
}

bool xfp_page_complete(const struct xfp_report *report)
{
	struct missing_section list[SECTIONS];
	bool complete = true;

	list_sections(report, list);
	for (size_t i = 0; i < SECTIONS; i++)
		complete &= list[i].data != NULL;
	return complete;
}

/* The options that made this page. */
static unsigned given_options(const struct xfp_report *report)
{
	const struct xfp_report_comparison *c = report->comparison;
	const void *const data[OPTIONS] = {
		[EVAL] = report->evaluation, [COMPARE] = c,
		[WALK] = report->walk,       [STATS] = report->tails,
		[SOURCE] = report->source,   [ABLATE] = c && report->ablation == &c->ablation ? NULL : report->ablation,
		[WORK] = report->times,      [CACHE] = report->samples,
	};
	unsigned options = 0;

	for (unsigned i = 0; i < OPTIONS; i++)
		options |= data[i] ? 1u << i : 0;
	return options;
}

void xfp_page_missing(FILE *out, const struct xfp_report *report)
{
	struct missing_section list[SECTIONS];

	list_sections(report, list);
	xfp_html_section(out, "missing", "Sections without data",
			 "Options of xfp report combine: each command has those that made this page, so that it adds "
			 "a section and keeps the others.");
	for (size_t i = 0; i < SECTIONS; i++) {
		unsigned options = given_options(report) | list[i].options;

		if (list[i].data)
			continue;
		fprintf(out, "<h3>%s</h3>\n<pre>", list[i].name);
		xfp_page_command(out, report, list[i].make);
		fputs(*list[i].make ? "\n" : "", out);
		xfp_page_command(out, report, "xfp report %");
		for (unsigned o = 0; o < OPTIONS; o++)
			if (options >> o & 1)
				xfp_page_command(out, report, option_text[o]);
		fputs(" -o report.html</pre>\n", out);
	}
	fputs("</section>\n", out);
}
