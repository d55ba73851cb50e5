/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quality.c - perplexity, divergence from the source, and drift per layer.
 */
#include <math.h>

#include "conversion/report/html/html.h"
#include "conversion/report/html/page.h"
#include "conversion/report/inputs.h"

#define LEFT 56.0
#define PLOT 560.0
#define TOP 30.0
#define HEIGHT 120.0
#define APART 190.0

/* ---- figure ------------------------------------------------------------------------------------ */

/* Bars of one quantity, one per layer; the largest is marked. */
static void draw_bars(FILE *out, const struct xfp_report_evaluation *e, double top, bool alone, const char *title)
{
	double step = PLOT / e->layer_count, largest = 0;
	uint32_t worst = 0, every = (uint32_t)ceil(28 / step);

	for (uint32_t i = 0; i < e->layer_count; i++) {
		double value = alone ? e->layers[i].alone : e->layers[i].stream;

		if (isfinite(value) && value > largest) {
			largest = value;
			worst = i;
		}
	}
	xfp_html_label(out, 0, top - 14, "b", "%s", title);
	fprintf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT, LEFT + PLOT,
		top + HEIGHT, top + HEIGHT);
	xfp_html_label(out, LEFT - 6, top + 8, "f e", "%.3g", largest);
	xfp_html_label(out, LEFT - 6, top + HEIGHT, "f e", "0");
	for (uint32_t i = 0; largest > 0 && i < e->layer_count; i++) {
		double value = alone ? e->layers[i].alone : e->layers[i].stream,
		       height = HEIGHT * fmin(1, value / largest);

		fprintf(out,
			"<rect class=\"a%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>layer %u: "
			"%.3g</title></rect>\n",
			i == worst ? "" : " o9", LEFT + step * i + step * .1, top + HEIGHT - height, step * .8, height,
			i, value);
		if (i % every == 0)
			xfp_html_label(out, LEFT + step * (i + .5), top + HEIGHT + 14, "f m", "%u", i);
	}
}

static void draw(FILE *out, const struct xfp_report_evaluation *e)
{
	xfp_html_figure(
		out, "drift", LEFT + PLOT + 10, TOP + APART + HEIGHT + 24, "Drift per layer",
		"Two rows of bars, one bar per layer: the relative squared error of the residual stream after it "
		"if only this layer is quantized, and if all are. The table below has the same figures.");
	draw_bars(out, e, TOP, true, "Error of the residual stream after a layer if only this layer is quantized");
	draw_bars(out, e, TOP + APART, false, "Error of the residual stream after a layer if all layers are quantized");
	xfp_html_figure_end(out);
}

/* ---- tables ------------------------------------------------------------------------------------ */

static void write_row(FILE *out, const char *name, double loss, double perplexity)
{
	fputs("<tr>", out);
	xfp_html_word(out, name);
	xfp_html_number(out, isfinite(perplexity) ? "%.4f" : "infinite", perplexity);
	xfp_html_number(out, "%.5f", loss);
	fputs("</tr>\n", out);
}

static void write_divergence(FILE *out, const struct xfp_report_evaluation *e)
{
	fputs("<ul><li>", out);
	xfp_html_printf(out,
			"KL divergence from the source, in nats per token: mean %.4g, 99 %% of tokens within %.4g, "
			"largest %.4g.",
			e->divergence, e->divergence_99, e->divergence_most);
	fputs("</li>\n<li>", out);
	xfp_html_printf(out,
			"The top-1 agreement is %.2f %%: for that share of tokens the most likely one is the source's.",
			100 * e->agreement);
	fputs("</li></ul>\n", out);
}

static void write_layers(FILE *out, const struct xfp_report_evaluation *e)
{
	xfp_html_table(out, "Relative squared error of the residual stream after each layer",
		       "layer|only this layer quantized|all layers quantized");
	fputs("<tr><td>embedding</td><td>-</td>", out);
	xfp_html_number(out, "%.3g", e->embedding);
	fputs("</tr>\n", out);
	for (uint32_t i = 0; i < e->layer_count; i++) {
		fputs("<tr>", out);
		xfp_html_number(out, "%u", i);
		xfp_html_number(out, "%.3g", e->layers[i].alone);
		xfp_html_number(out, "%.3g", e->layers[i].stream);
		fputs("</tr>\n", out);
	}
	xfp_html_table_end(out);
}

void xfp_page_quality(FILE *out, const struct xfp_report *report)
{
	const struct xfp_report_evaluation *e = report->evaluation;

	xfp_html_section(out, "quality", "Perplexity, divergence and drift",
			 "How the model's outputs change, which is what counts in the end.");
	xfp_html_table(out, "Perplexity of the evaluated tokens", "<model|perplexity|nats per token");
	write_row(out, "this bundle", e->loss, e->perplexity);
	if (e->compared)
		write_row(out, "its source", e->source_loss, e->source_perplexity);
	xfp_html_table_end(out);
	fputs("<p>", out);
	xfp_html_printf(out, "%llu sequences of %llu tokens, %llu of them predicted.", (unsigned long long)e->sequences,
			(unsigned long long)e->length, (unsigned long long)e->predicted);
	fputs("</p>\n", out);
	if (e->compared) {
		write_divergence(out, e);
		if (e->layer_count)
			draw(out, e);
		write_layers(out, e);
	}
	fputs("</section>\n", out);
}
