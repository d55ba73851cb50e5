/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outliers.c - what outliers gain, by component.
 */
#include "conversion/report/html/html.h"
#include "conversion/report/html/page.h"
#include "conversion/report/inputs.h"

static void write_ablation(FILE *out, const struct xfp_report *report)
{
	const struct xfp_report_ablations *c = report->ablation;

	xfp_html_table(out, "Outlier ablation by component (the paper's tables 5 and A)",
		       "<component|units|cosine without|with outliers|mean gain|largest gain|error ratio, p50|p90|"
		       "outliers in this trial");
	for (uint32_t i = 0; i < c->count; i++) {
		const struct xfp_report_ablation *one = &c->list[i];
		char name[XFP_REPORT_PART_NAME];

		fputs("<tr>", out);
		xfp_html_word(out, xfp_report_part_name(&report->parts[one->part], name));
		xfp_html_number(out, "%u", one->units);
		xfp_html_number(out, "%.6f", one->without);
		xfp_html_number(out, "%.6f", one->with);
		xfp_html_number(out, "%+.6f", one->mean_gain);
		xfp_html_number(out, "%+.6f", one->max_gain);
		xfp_html_number(out, "%.3f", one->ratio_50);
		xfp_html_number(out, "%.3f", one->ratio_90);
		xfp_html_number(out, "%.4f %%", 100 * one->share);
		fputs("</tr>\n", out);
	}
	xfp_html_table_end(out);
	fputs("<p class=\"none\">", out);
	xfp_html_printf(out, "Measured on %llu of the %llu rows of these units.", (unsigned long long)c->measured,
			(unsigned long long)c->rows);
	if (c->left_out)
		xfp_html_printf(out, " %u units are not in the table: they have no index, or were not measured.",
				c->left_out);
	fputs("</p>\n", out);
}

void xfp_page_outliers(FILE *out, const struct xfp_report *report)
{
	xfp_html_section(
		out, "outliers", "Outliers",
		"Units in the format that they have, with weights beyond 4 standard deviations stored apart and "
		"without. A ratio is the squared error without outliers over that with them: 1 means no gain. Outliers "
		"are counted after columns are balanced, up to the cap, and estimated from rows, so their share "
		"differs from that beyond 4 sigma under Tails, and from that stored in the bundle.");
	write_ablation(out, report);
	fputs("</section>\n", out);
}
