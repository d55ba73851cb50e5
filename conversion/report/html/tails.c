/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tails.c - how far the weights of each role reach beyond a normal distribution's.
 */
#include <math.h>
#include <string.h>

#include "conversion/report/html/html.h"
#include "conversion/report/html/page.h"
#include "conversion/report/inputs.h"

#define LABELS 210.0
#define PLOT 380.0
#define ROW 24.0
#define MAX_ROWS 60

static void write_name(FILE *out, const struct xfp_report_tail *tail)
{
	fputs("<td class=\"w\">", out);
	xfp_html_printf(out, "%s %s", tail->class_name, strcmp(tail->roles, tail->class_name) ? tail->roles : "");
	fputs("</td>", out);
}

static void draw(FILE *out, const struct xfp_report_tails *tails)
{
	uint32_t rows = tails->count < MAX_ROWS ? tails->count : MAX_ROWS;
	double most = 0;

	for (uint32_t i = 0; i < rows; i++)
		most = fmax(most, tails->list[i].largest);
	if (!(most > 0))
		return;
	xfp_html_figure(out, "tails-figure", LABELS + PLOT + 80, ROW * rows + 8,
			"Largest weight of each role, in standard deviations",
			"A bar per role. The table below has the same figures, and the shares beyond 3 and 4 sigma.");
	for (uint32_t i = 0; i < rows; i++) {
		const struct xfp_report_tail *tail = &tails->list[i];
		double width = tail->largest > 0 ? PLOT * tail->largest / most : 0;

		xfp_html_label(out, 0, ROW * i + 16, "", "%.16s %.14s", tail->class_name,
			       strcmp(tail->roles, tail->class_name) ? tail->roles : "");
		fprintf(out, "<rect class=\"a\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"16\"/>\n", LABELS,
			ROW * i + 4, width);
		if (tail->largest > 0)
			xfp_html_label(out, LABELS + width + 6, ROW * i + 16, "f", "%.1f sigma", tail->largest);
	}
	xfp_html_figure_end(out);
}

static void write_table(FILE *out, const struct xfp_report_tails *tails)
{
	xfp_html_table(out, "Tails by role (the paper's table B)",
		       "<role|tensors|sigma|kurtosis|beyond 3 sigma|beyond 4 sigma|largest, in sigma|largest");
	for (uint32_t i = 0; i < tails->count; i++) {
		const struct xfp_report_tail *tail = &tails->list[i];

		fputs("<tr>", out);
		write_name(out, tail);
		xfp_html_number(out, "%llu", (unsigned long long)tail->tensors);
		xfp_html_number_or_dash(out, "%.4g", tail->sigma);
		xfp_html_number_or_dash(out, "%.2f", tail->kurtosis);
		xfp_html_number_or_dash(out, "%.3f %%", 100 * tail->beyond_3);
		xfp_html_number_or_dash(out, "%.4f %%", 100 * tail->beyond_4);
		xfp_html_number_or_dash(out, "%.1f", tail->largest);
		xfp_html_number_or_dash(out, "%.4g", tail->max);
		fputs("</tr>\n", out);
	}
	xfp_html_table_end(out);
}

void xfp_page_tails(FILE *out, const struct xfp_report *report)
{
	xfp_html_section(
		out, "tails", "Tails",
		"Weights of the source far from their mean. A normal distribution has kurtosis 3, 0.270 % beyond 3 "
		"sigma and 0.0063 % beyond 4: more of them need outliers, or more bits.");
	draw(out, report->tails);
	write_table(out, report->tails);
	fputs("</section>\n", out);
}
