/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples.c - the bits that a sample of the experts would have chosen.
 */
#include "conversion/report/html/html.h"
#include "conversion/report/html/page.h"
#include "conversion/report/inputs.h"

static void write_table(FILE *out, const struct xfp_report *report, const struct xfp_report_samples *samples)
{
	xfp_html_table(out, "Bits by a sample of the experts (the paper's table C)",
		       "<component|experts|stacks|bits by all|4 experts: same|too few|too many|16 experts: same|too "
		       "few|too many");
	for (uint32_t i = 0; i < samples->count; i++) {
		const struct xfp_report_sampled *one = &samples->list[i];
		char name[XFP_REPORT_PART_NAME];

		fputs("<tr>", out);
		xfp_html_word(out, xfp_report_part_name(&report->parts[one->part], name));
		xfp_html_number(out, "%u", one->experts);
		xfp_html_number(out, "%u", one->units);
		xfp_html_number(out, "%.3f", xfp_bits_per_weight(one->bytes, one->weights));
		for (unsigned s = 0; s < XFP_REPORT_SAMPLES; s++) {
			const uint32_t counts[] = { one->of[s].same, one->of[s].few, one->of[s].many };

			for (unsigned c = 0; c < 3; c++)
				xfp_html_number(out, one->of[s].possible ? "%u" : "-", counts[c]);
		}
		fputs("</tr>\n", out);
	}
	xfp_html_table_end(out);
}

static void write_samples(FILE *out, const struct xfp_report *report)
{
	const struct xfp_report_samples *samples = report->samples;

	if (samples->count)
		write_table(out, report, samples);
	else if (!samples->left_out)
		fputs("<p class=\"none\">No stack has more than 4 experts.</p>\n", out);
	if (samples->left_out) {
		fputs("<p class=\"none\">", out);
		xfp_html_printf(
			out,
			"%u stacks are not in the table: their fits are not in the cache, they have no floor of "
			"weights, or no candidate meets it.",
			samples->left_out);
		fputs("</p>\n", out);
	}
}

void xfp_page_samples(FILE *out, const struct xfp_report *report)
{
	xfp_html_section(
		out, "samples", "Samples of experts",
		"What 4 or 16 experts, spread evenly, would have chosen for a stack. Too few: all experts together "
		"would miss the floor. Too many: bytes that the floor does not need.");
	write_samples(out, report);
	fputs("</section>\n", out);
}
