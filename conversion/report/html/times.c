/* SPDX-License-Identifier: Apache-2.0 */
/*
 * times.c - time per stage.
 */
#include "conversion/report/html/html.h"
#include "conversion/report/html/page.h"
#include "conversion/report/inputs.h"

#define LABELS 130.0
#define PLOT 420.0
#define ROW 24.0

static void draw(FILE *out, const struct xfp_report_times *times)
{
	xfp_html_figure(out, "stages", LABELS + PLOT + 80, ROW * times->count + 8, "Time per stage",
			"A bar per stage, longest first. The table below has the same figures.");
	for (uint32_t i = 0; i < times->count; i++) {
		const struct xfp_report_stage *stage = &times->stages[i];
		double width = times->stages->seconds > 0 ? PLOT * stage->seconds / times->stages->seconds : 0;

		xfp_html_label(out, 0, ROW * i + 16, "", "%s", stage->name);
		fprintf(out, "<rect class=\"a\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"16\"/>\n", LABELS,
			ROW * i + 4, width);
		xfp_html_label(out, LABELS + width + 6, ROW * i + 16, "f", "%.3g s", stage->seconds);
	}
	xfp_html_figure_end(out);
}

static void write_table(FILE *out, const struct xfp_report_times *times)
{
	xfp_html_table(out, "Stages, over all units", "<stage|made|from the cache|seconds|share|longest");
	for (uint32_t i = 0; i < times->count; i++) {
		const struct xfp_report_stage *stage = &times->stages[i];

		fputs("<tr>", out);
		xfp_html_word(out, stage->name);
		xfp_html_number(out, "%u", stage->made);
		xfp_html_number(out, "%u", stage->hits);
		xfp_html_number(out, "%.3f", stage->seconds);
		xfp_html_number(out, "%.1f %%", times->seconds > 0 ? 100 * stage->seconds / times->seconds : 0);
		xfp_html_number(out, "%.3f", stage->longest);
		fputs("</tr>\n", out);
	}
	xfp_html_table_end(out);
}

void xfp_page_times(FILE *out, const struct xfp_report *report)
{
	xfp_html_section(out, "time", "Time per stage",
			 "Seconds of all processes that the work folder's events record; stages run in parallel.");
	if (!report->times->count) {
		fputs("<p class=\"none\">The work folder's last run found everything done, and has no times.</p>\n",
		      out);
	} else {
		draw(out, report->times);
		write_table(out, report->times);
	}
	fputs("</section>\n", out);
}
