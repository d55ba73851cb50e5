/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cosines.c - the cosines of each class with its floors: a strip of ticks per class on a logarithmic scale of
 * 1 - cosine, and a table.
 */
#include <math.h>
#include <stdlib.h>

#include "base/text/size.h"
#include "conversion/report/html/html.h"
#include "conversion/report/html/page.h"

#define LABELS 130.0
#define PLOT 520.0
#define ROW 34.0
#define TOP 26.0
#define NINES 8 /* 1 - cosine below 1e-8 is drawn at the right edge */

struct cosine_strip {
	double low, high; /* -log10(1 - cosine) */
};

/* -log10(1 - cosine): the number of nines. */
static double nines(double cosine)
{
	return cosine >= 1 ? NINES : fmin(NINES, fmax(0, -log10(1 - cosine)));
}

static double x_of(const struct cosine_strip *strip, double cosine)
{
	return LABELS + PLOT * (nines(cosine) - strip->low) / (strip->high - strip->low);
}

static void include(struct cosine_strip *strip, double cosine)
{
	strip->low = fmin(strip->low, nines(cosine));
	strip->high = fmax(strip->high, nines(cosine));
}

static void draw_axis(FILE *out, const struct cosine_strip *strip, double bottom)
{
	static const double marks[] = {
		0, .5, .8, .9, .95, .98, .99, .995, .998, .999, .9995, .9998, .9999, .99999, 1
	};
	double last = -INFINITY;

	for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
		double x = x_of(strip, marks[i]);

		if (x < LABELS - 1 || x > LABELS + PLOT + 1 || x < last + 48)
			continue;
		last = x;
		fprintf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x, x, TOP - 6,
			bottom);
		xfp_html_label(out, x, TOP - 10, "f m", "%.6g", marks[i]);
	}
}

static void draw_class(FILE *out, const struct xfp_report *report, const struct cosine_strip *strip, uint32_t row)
{
	const struct xfp_report_class *class_ = &report->classes[row];
	double y = TOP + ROW * row;

	xfp_html_label(out, 0, y + ROW / 2 + 4, "", "%s", class_->name);
	fputs("<path class=\"tick\" d=\"", out);
	for (uint32_t u = 0; u < report->info.units; u++) {
		const struct xfp_report_unit *unit = &report->units[u];

		if (unit->info.class_ == class_->class_)
			fprintf(out, "M%.1f %.0fv14", x_of(strip, unit->median), y + 10);
	}
	fputs("\"/>\n", out);
	for (int i = 0; i < 2; i++) {
		double floor = i ? class_->max_floor : class_->min_floor;

		if (floor > 0 && (!i || class_->max_floor > class_->min_floor))
			fprintf(out, "<line class=\"floor\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\"/>\n",
				x_of(strip, floor), x_of(strip, floor), y + 3, y + 31);
	}
}

static void draw(FILE *out, const struct xfp_report *report)
{
	struct cosine_strip strip = { INFINITY, -INFINITY };
	double bottom = TOP + ROW * report->class_count;

	for (uint32_t u = 0; u < report->info.units; u++)
		include(&strip, report->units[u].median);
	for (uint32_t c = 0; c < report->class_count; c++)
		if (report->classes[c].max_floor > 0) {
			include(&strip, report->classes[c].min_floor);
			include(&strip, report->classes[c].max_floor);
		}
	strip.low -= .1;
	strip.high += .1;
	xfp_html_figure(
		out, "strips", LABELS + PLOT + 20, bottom + 26, "Cosines of units by class, with floors",
		"A row per class with a tick per unit at its median cosine, on a logarithmic scale of 1 minus the "
		"cosine; a line at the floor. The table below has medians and floors.");
	draw_axis(out, &strip, bottom);
	for (uint32_t c = 0; c < report->class_count; c++)
		draw_class(out, report, &strip, c);
	if (report->all.floors)
		xfp_html_label(out, LABELS, bottom + 18, "f", "tall line: floor; ticks to the left of it miss it");
	xfp_html_figure_end(out);
}

static void write_floor(FILE *out, const struct xfp_report_class *class_)
{
	if (!(class_->max_floor > 0))
		xfp_html_number(out, "-");
	else if (class_->max_floor > class_->min_floor)
		xfp_html_number(out, "%.9g-%.9g", class_->min_floor, class_->max_floor);
	else
		xfp_html_number(out, "%.9g", class_->max_floor);
}

static void write_table(FILE *out, const struct xfp_report *report)
{
	xfp_html_table(out, "Medians over the units of a class",
		       "<class|units|floor|cosine, median|cosine, 5th percentile|lowest unit|below the floor|"
		       "stored bits|size");
	for (uint32_t c = 0; c < report->class_count; c++) {
		const struct xfp_report_class *class_ = &report->classes[c];

		fputs("<tr>", out);
		xfp_html_word(out, class_->name);
		xfp_html_number(out, "%u", class_->sum.units);
		write_floor(out, class_);
		xfp_html_number(out, "%.6f", class_->median);
		xfp_html_number(out, "%.6f", class_->p5);
		xfp_html_number(out, "%.6f", class_->sum.worst);
		xfp_html_number(out, "%u", class_->sum.missed);
		xfp_html_number(out, "%.3f", xfp_bits_per_weight(class_->sum.bytes, class_->sum.weights));
		xfp_html_size(out, (double)class_->sum.bytes);
		fputs("</tr>\n", out);
	}
	xfp_html_table_end(out);
}

void xfp_page_cosines(FILE *out, const struct xfp_report *report)
{
	char measured[XFP_REPORT_MEASURED];
	char *lead = xfp_formatted("The cosine of each row of %s to its source; a unit counts with its median row.",
				   xfp_report_measured(&report->all, measured));

	xfp_html_section(out, "cosines", "Cosines and floors", lead ? lead : "");
	free(lead);
	if (report->info.units)
		draw(out, report);
	write_table(out, report);
	fputs("</section>\n", out);
}
