/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weakest.c - the section that names the worst layer and component, and what would help.
 */
#include <stdlib.h>

#include "base/text/shell.h"
#include "base/text/size.h"
#include "base/text/text.h"
#include "conversion/report/advice.h"
#include "conversion/report/command.h"
#include "conversion/report/html/html.h"
#include "conversion/report/html/page.h"
#include "conversion/report/inputs.h"

static double percent(double part, double all)
{
	return all > 0 ? 100 * part / all : 0;
}

static void write_worst_layer(FILE *out, const struct xfp_report *report)
{
	uint32_t worst = xfp_report_worst_layer(report);
	const struct xfp_report_layer *layer = &report->layers[worst];
	const struct xfp_report_evaluation *e = report->evaluation;

	if (worst == report->layer_count)
		return;
	fputs("<li>Worst layer: <strong>", out);
	xfp_html_printf(out, "layer %u", layer->number);
	fputs("</strong>", out);
	if (e && e->layer_count > layer->number)
		xfp_html_printf(
			out,
			", whose own error is the largest: if only this layer is quantized, the residual stream "
			"after it has a relative squared error of %.3g. It has",
			e->layers[layer->number].alone);
	else
		fputs(", with", out);
	xfp_html_printf(out, " %.1f %% of the loss and %.1f %% of the weights; its lowest cosine of %s is %.6f.",
			percent(layer->sum.squared, report->all.squared),
			percent((double)layer->sum.weights, (double)report->all.weights),
			xfp_report_unit_measured(&report->units[layer->sum.worst_unit]), layer->sum.worst);
	fputs("</li>\n", out);
}

static void write_worst_part(FILE *out, const struct xfp_report *report)
{
	uint32_t worst = xfp_report_worst_part(report);
	const struct xfp_report_part *part = &report->parts[worst];
	char name[XFP_REPORT_PART_NAME];

	if (worst == report->part_count)
		return;
	fputs("<li>Worst component: <strong>", out);
	xfp_html_text(out, xfp_report_part_name(part, name));
	fputs("</strong>", out);
	xfp_html_printf(out, ", with %.1f %% of the loss and %.1f %% of the weights.",
			percent(part->sum.squared, report->all.squared),
			percent((double)part->sum.weights, (double)report->all.weights));
	fputs("</li>\n", out);
}

static void write_worst_unit(FILE *out, const struct xfp_report *report)
{
	const struct xfp_report_unit *unit = &report->units[report->all.worst_unit];
	char floors[XFP_PAGE_FLOORS];

	if (!report->all.units)
		return;
	fputs("<li>Lowest cosine: ", out);
	xfp_html_code(out, unit->info.name);
	xfp_html_printf(out, " (%s), %.6f of %s", unit->info.role, unit->median, xfp_report_unit_measured(unit));
	if (unit->info.floor > 0)
		xfp_html_printf(out, "; its floor is %.9g", unit->info.floor);
	fputs(".</li>\n", out);
	fputs(report->all.missed ? "<li class=\"bad\">" : "<li>", out);
	if (report->all.missed)
		xfp_html_printf(out,
				report->all.missed == 1 ? "%u unit is below its floor: "
							: "%u units are below their floor: ",
				report->all.missed);
	else
		fputs("Floors: ", out);
	xfp_html_printf(out, "%s.", xfp_page_floors(report, floors));
	fputs("</li>\n", out);
}

/* The cell of units: their name, and the option for them below it, where no screen cuts it off. */
static void write_units(FILE *out, const char *name, const struct xfp_report_advice *advice)
{
	char *word = xfp_formatted("%s=%u", advice->pattern, advice->bits);
	struct xfp_text text;
	FILE *line = xfp_text_begin(&text);

	if (line && word) {
		fputs("--override ", line);
		xfp_shell_quote(line, word);
	}
	fputs("<td class=\"w\">", out);
	xfp_html_text(out, name);
	if (xfp_text_end(&text) && word) {
		fputs(" <code class=\"option\">", out);
		xfp_html_text(out, text.bytes);
		fputs("</code>", out);
	}
	fputs("</td>", out);
	free(text.bytes);
	free(word);
}

/* The improvement that costs no bytes. */
static void write_calibration(FILE *out, const struct xfp_report *report)
{
	if (!report->recorded || *report->recorded->parameters.calibration.sha256)
		return;
	fputs("<p>This bundle is not calibrated. ", out);
	xfp_html_code(out, "--calibrate");
	fputs(" or ", out);
	xfp_html_code(out, "--calibrate-self");
	fputs(" usually lowers the error of the outputs at the same size; see xfp-convert(1).</p>\n", out);
}

static void write_advice(FILE *out, const struct xfp_report *report)
{
	struct xfp_report_advice list[XFP_REPORT_ADVICE];
	uint32_t count = xfp_report_advise(report, list);
	char *options = report->recorded ? xfp_report_options(&report->recorded->parameters) : NULL;

	fputs("<h3>What would help</h3>\n", out);
	write_calibration(out, report);
	if (!count) {
		fputs("<p>No class of the worst layer and no component can get more bits by one option: some unit has "
		      "6 bits per index, or no index.</p>\n",
		      out);
		free(options);
		return;
	}
	fputs("<p>One more bit per index, for the units that save most loss per MB. If the units of an option have "
	      "different bits, only those with fewer get more. Predicted: each bit reduces the squared error to about "
	      "a quarter. A smaller loss only hints at better predictions of tokens: measure them with xfp eval. To "
	      "try one, add its option to those of the bundle:</p>\n<pre>",
	      out);
	xfp_html_printf(out, "xfp convert MODEL -o NEW.xfp%s OPTION", options ? options : " ...");
	fputs("</pre>\n", out);
	xfp_html_table(out, "Classes of the worst layer, and components, by loss saved per MB",
		       "<units, with their option|bits per index|share of the loss|relative squared error|more bytes|"
		       "loss afterwards|loss saved per MB");
	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_report_advice *one = &list[i];
		char name[XFP_REPORT_PART_NAME];

		if (one->layer != XFP_REPORT_NO_LAYER)
			snprintf(name, sizeof name, "layer %u, %s", report->layers[one->layer].number,
				 xfp_class_name((enum xfp_class)one->class_));
		else
			xfp_report_part_name(&report->parts[one->part], name);
		fputs("<tr>", out);
		write_units(out, name, one);
		if (one->low == one->high)
			xfp_html_number(out, "%u to %u", one->low, one->bits);
		else
			xfp_html_number(out, "%u-%u to %u", one->low, one->high, one->bits);
		xfp_html_number(out, "%.1f %%", 100 * one->share);
		xfp_html_number(out, "%.3g", one->error);
		xfp_html_size(out, one->bytes);
		xfp_html_number(out, "%.1f %%", 100 * one->remaining);
		xfp_html_number(out, "%.3g %%", 100 * one->saved);
		fputs("</tr>\n", out);
		free(list[i].pattern);
	}
	xfp_html_table_end(out);
	free(options);
}

void xfp_page_weakest(FILE *out, const struct xfp_report *report)
{
	const struct xfp_report_evaluation *e = report->evaluation;
	char measured[XFP_REPORT_MEASURED];
	char *lead = xfp_formatted(
		"The loss is the squared error of %s, relative to their squares, averaged over weights. %s%s",
		xfp_report_measured(&report->all, measured),
		report->all.calibrated ? "Outputs are those of each matrix, measured during calibration. " : "",
		e && e->layer_count
			? "The worst layer is the one with the largest error of its own: that of the residual stream "
			  "after it if only this layer is quantized, as measured by xfp eval."
			: "It is a hint: the predictions of the model decide, and --eval adds them.");

	xfp_html_section(out, "weakest", "Where it is weakest", lead ? lead : "");
	free(lead);
	fputs("<ul>\n", out);
	write_worst_layer(out, report);
	write_worst_part(out, report);
	write_worst_unit(out, report);
	fputs("</ul>\n", out);
	write_advice(out, report);
	fputs("</section>\n", out);
}
