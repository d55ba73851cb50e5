/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.c - the order of the sections, and the summary at the top.
 */
#include "conversion/report/html/page.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/path.h"
#include "base/text/size.h"
#include "conversion/report/command.h"
#include "conversion/report/html/html.h"
#include "conversion/report/inputs.h"

/* ---- summary ----------------------------------------------------------------------------------- */

static void tile(FILE *out, const char *name, const char *value, const char *note)
{
	fputs("<div><dt>", out);
	xfp_html_text(out, name);
	fputs("</dt><dd>", out);
	xfp_html_text(out, value);
	if (*note) {
		fputs("<small>", out);
		xfp_html_text(out, note);
		fputs("</small>", out);
	}
	fputs("</dd></div>\n", out);
}

const char *xfp_page_floors(const struct xfp_report *report, char text[XFP_PAGE_FLOORS])
{
	const struct xfp_parameters *p = report->recorded ? &report->recorded->parameters : NULL;
	const struct xfp_report_sum *all = &report->all;

	if (!all->floors)
		return p && p->assigned_count ? "no unit has a floor (made for a size)" : "no unit has a floor";
	snprintf(text, XFP_PAGE_FLOORS,
		 all->missed ? "the table of units says why (%u of %u units have a floor)"
			     : "recorded floors are met (%u of %u units have one)",
		 all->floors, all->units);
	return text;
}

/* The changes of the model's predictions, which decide. */
static void write_evaluation_tiles(FILE *out, const struct xfp_report_evaluation *e)
{
	char value[64], note[96];

	if (e->compared) {
		snprintf(value, sizeof value, "%.4g", e->divergence);
		tile(out, "KL divergence", value, "from the source, nats per token");
		snprintf(value, sizeof value, "%.2f %%", 100 * e->agreement);
		tile(out, "Same token", value, "of the tokens have the source's most likely one");
		snprintf(note, sizeof note,
			 isfinite(e->source_perplexity) ? "%.4f of its source" : "infinite of its source",
			 e->source_perplexity);
	}
	snprintf(value, sizeof value, isfinite(e->perplexity) ? "%.4f" : "infinite", e->perplexity);
	tile(out, "Perplexity", value, e->compared ? note : "");
}

static void write_tiles(FILE *out, const struct xfp_report *report)
{
	const struct xfp_composition *whole = &report->composition;
	char value[64], note[128], size[32], measured[XFP_REPORT_MEASURED], text[XFP_PAGE_FLOORS];

	fputs("<dl class=\"tiles\">\n", out);
	snprintf(note, sizeof note, "%.1f %% of the source's %s",
		 whole->source ? 100 * (double)whole->bytes / (double)whole->source : 0,
		 xfp_human((double)whole->source, "B", size));
	tile(out, "Size", xfp_human((double)whole->bytes, "B", value), note);
	snprintf(value, sizeof value, "%.3f", xfp_composition_bits(whole));
	snprintf(note, sizeof note, "quantized weights %.3f, as papers count %.3f",
		 xfp_bits_per_weight(report->all.bytes, report->all.weights), xfp_composition_paper_bits(whole));
	tile(out, "Bits per weight", value, note);
	snprintf(value, sizeof value, "%.3g", xfp_report_error(&report->all));
	snprintf(note, sizeof note, "squared error of %s, relative to their squares",
		 xfp_report_measured(&report->all, measured));
	tile(out, "Loss", value, note);
	snprintf(value, sizeof value, "%u of %u", report->all.missed, report->all.floors);
	tile(out, "Units below their floor", report->all.floors ? value : "-", xfp_page_floors(report, text));
	if (report->evaluation)
		write_evaluation_tiles(out, report->evaluation);
	fputs("</dl>\n", out);
}

/* The name that the model's config gives, without the folders of a path; else that of the given source, or the family.
 * Borrowed from `config` or the report. */
static const char *model_name(const json_t *config, const struct xfp_report *report)
{
	const char *name = json_string_value(json_object_get(config, "_name_or_path"));

	if (name && strchr("/.~", *name))
		name = xfp_base_name(name);
	if (!(name && *name) && report->source)
		name = xfp_base_name(report->source->given);
	return name && name[strspn(name, ".")] ? name : report->info.family;
}

static json_t *read_config(const struct xfp_report *report)
{
	uint32_t number = xfp_bundle_find_file(report->bundle, "config.json");
	struct xfp_file_info file;

	return xfp_bundle_file(report->bundle, number, &file) ? json_loadb(file.data, file.bytes, 0, NULL) : NULL;
}

static void write_title(FILE *out, const struct xfp_report *report)
{
	json_t *config = read_config(report);

	xfp_html_printf(out, "%s: %s, %.3f bits per weight", report->name, model_name(config, report),
			xfp_composition_bits(&report->composition));
	json_decref(config);
}

static void write_command(FILE *out, const struct xfp_report *report)
{
	char *options = report->recorded ? xfp_report_options(&report->recorded->parameters) : NULL;

	fputs("<p>To make it again from the model, byte for byte:</p>\n<pre>", out);
	fputs("xfp convert MODEL -o AGAIN.xfp", out);
	if (options)
		xfp_html_text(out, options);
	else
		xfp_page_command(out, report, " --like %");
	fputs("</pre>\n", out);
	free(options);
}

void xfp_page_summary(FILE *out, const struct xfp_report *report)
{
	char weights[32];

	fputs("<header>\n<h1>", out);
	write_title(out, report);
	fputs("</h1>\n<p class=\"lead\">", out);
	xfp_html_printf(out, "Family %s, %s weights in %u units of %u matrices; format version %u.",
			report->info.family, xfp_human((double)report->info.weights, "", weights), report->info.units,
			report->info.matrices, report->info.version);
	fputs("</p>\n", out);
	write_tiles(out, report);
	fputs("<p>SHA-256 of the bundle: ", out);
	xfp_html_code(out, report->sha256);
	if (report->source)
		xfp_html_printf(
			out,
			". Its source was checked: the weights of all %u matrices of its units have the digests "
			"that it records.",
			report->source->matrices);
	fputs("</p>\n", out);
	write_command(out, report);
	fputs("</header>\n", out);
}

/* ---- the page ---------------------------------------------------------------------------------- */

struct page_section {
	const char *id, *name;
	void (*write)(FILE *out, const struct xfp_report *report);
	bool shown;
};

void xfp_report_page(FILE *out, const struct xfp_report *report)
{
	const struct page_section sections[] = {
		{ "weakest", "Weakest", xfp_page_weakest, true },
		{ "depth", "Bits over depth", xfp_page_depth, true },
		{ "cosines", "Cosines", xfp_page_cosines, true },
		{ "quality", "Perplexity", xfp_page_quality, report->evaluation != NULL },
		{ "rate", "Rate and error", xfp_page_rate, report->comparison || report->walk },
		{ "outliers", "Outliers", xfp_page_outliers, report->ablation != NULL },
		{ "tails", "Tails", xfp_page_tails, report->tails != NULL },
		{ "samples", "Samples", xfp_page_samples, report->samples != NULL },
		{ "time", "Time", xfp_page_times, report->times != NULL },
		{ "ledger", "Ledger", xfp_page_ledger, true },
		{ "units", "Units", xfp_page_units, true },
		{ "missing", "Sections without data", xfp_page_missing, !xfp_page_complete(report) },
	};
	const size_t count = sizeof sections / sizeof *sections;

	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
	      "<meta name=\"color-scheme\" content=\"light dark\"/>\n<title>Report of ",
	      out);
	write_title(out, report);
	fputs("</title>\n", out);
	xfp_html_style(out);
	fputs("</head>\n<body>\n", out);
	xfp_page_summary(out, report);
	fputs("<nav aria-label=\"Sections\">", out);
	for (size_t i = 0; i < count; i++)
		if (sections[i].shown)
			fprintf(out, "<a href=\"#%s\">%s</a>\n", sections[i].id, sections[i].name);
	fputs("</nav>\n<main>\n", out);
	for (size_t i = 0; i < count; i++)
		if (sections[i].shown)
			sections[i].write(out, report);
	fputs("</main>\n<footer><p class=\"none\">\"The paper\" in captions of tables is the one on the published XFP "
	      "method, which this program implements; xfp-method(7) lists the differences.</p></footer>\n"
	      "</body>\n</html>\n",
	      out);
}
