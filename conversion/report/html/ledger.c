/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.c - what became of each tensor, and why; and the table of all units.
 */
#include <string.h>

#include "base/text/size.h"
#include "conversion/report/html/html.h"
#include "conversion/report/html/page.h"

static void write_fates(FILE *out, const struct xfp_report *report)
{
	char text[32];

	xfp_html_table(out, "Tensors of the checkpoint, grouped by name",
		       "<outcome|<reason|<tensors|number|elements|<type|kept bytes");
	for (uint32_t f = 0; f < report->fate_count; f++) {
		const struct xfp_report_fate *fate = &report->fates[f];

		fputs("<tr>", out);
		xfp_html_word(out, fate->fate);
		xfp_html_word(out, fate->reason);
		xfp_html_name(out, fate->pattern);
		xfp_html_number(out, "%u", fate->tensors);
		xfp_html_number(out, "%s", xfp_human((double)fate->elements, "", text));
		xfp_html_word(out, fate->dtype);
		if (fate->bytes)
			xfp_html_size(out, (double)fate->bytes);
		else
			xfp_html_number(out, "-");
		fputs("</tr>\n", out);
	}
	xfp_html_table_end(out);
}

static void write_files(FILE *out, const struct xfp_report *report)
{
	struct xfp_file_info file;

	xfp_html_table(out, "Files that the bundle carries unchanged", "<file|size");
	for (uint32_t f = 0; xfp_bundle_file(report->bundle, f, &file); f++) {
		fputs("<tr>", out);
		xfp_html_name(out, file.name);
		xfp_html_size(out, (double)file.bytes);
		fputs("</tr>\n", out);
	}
	xfp_html_table_end(out);
}

void xfp_page_ledger(FILE *out, const struct xfp_report *report)
{
	xfp_html_section(
		out, "ledger", "Ledger",
		"Every tensor of the checkpoint is quantized, kept, tied to another one, or dropped, with the reason.");
	write_fates(out, report);
	write_files(out, report);
	fputs("</section>\n", out);
}

void xfp_page_units(FILE *out, const struct xfp_report *report)
{
	xfp_html_section(
		out, "units", "Units",
		"Every unit, in the bundle's order: one matrix, or all experts of one projection in one layer.");
	fputs("<details>\n<summary>", out);
	xfp_html_printf(out, "%u units", report->info.units);
	fputs("</summary>\n", out);
	xfp_html_table(out, "Every unit",
		       "<name|<role|<mode|bits per index|stored bits|size|cosine|5th percentile|floor|error|<missed");
	for (uint32_t u = 0; u < report->info.units; u++) {
		const struct xfp_report_unit *unit = &report->units[u];
		const struct xfp_unit_info *info = &unit->info;

		fputs("<tr>", out);
		xfp_html_name(out, info->name);
		xfp_html_word(out, info->role);
		xfp_html_word(out, info->mode_name);
		xfp_html_number(out, info->k ? "%u" : "-", info->k);
		xfp_html_number(out, "%.3f", unit->bits);
		xfp_html_size(out, (double)info->bytes);
		xfp_html_number(out, "%.6f", unit->median);
		xfp_html_number(out, "%.6f", unit->p5);
		xfp_html_number(out, info->floor > 0 ? "%.9g" : "-", info->floor);
		xfp_html_number(out, "%.3g", unit->error);
		xfp_html_word(out, unit->missed ? unit->missed : "");
		fputs("</tr>\n", out);
	}
	xfp_html_table_end(out);
	fputs("</details>\n</section>\n", out);
}
