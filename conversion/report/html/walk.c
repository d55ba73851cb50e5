/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.c - the points of a walk: size against predicted error, where garbage ends, what fits, the recommended point,
 * and the one that is this bundle.
 */
#include <math.h>

#include "base/text/size.h"
#include "conversion/report/html/html.h"
#include "conversion/report/html/page.h"
#include "conversion/report/inputs.h"

#define LEFT 60.0
#define PLOT 560.0
#define TOP 30.0
#define HEIGHT 260.0
#define BOTTOM (TOP + HEIGHT)
#define SMALLEST_ERROR 1e-9 /* zero has no logarithm */
#define LABEL 62.0          /* half the width of the longest label of a point */

struct walk_plot {
	FILE *out;
	const struct xfp_report_walk *walk;
	double min_x, max_x, min_y, max_y; /* bytes; y as log10 */
};

static double cost_of(const struct walk_plot *p, uint32_t point)
{
	return (double)xfp_report_walk_cost(p->walk, &p->walk->points[point]);
}

static double x_at(const struct walk_plot *p, double bytes)
{
	return LEFT + PLOT * fmin(1, fmax(0, (bytes - p->min_x) / (p->max_x - p->min_x)));
}

static double y_at(const struct walk_plot *p, double error)
{
	return BOTTOM - HEIGHT * (log10(fmax(error, SMALLEST_ERROR)) - p->min_y) / (p->max_y - p->min_y);
}

static struct walk_plot plot_of(FILE *out, const struct xfp_report_walk *walk)
{
	struct walk_plot p = { out, walk, INFINITY, 0, INFINITY, -INFINITY };
	double limit = (double)walk->limit, width;

	for (uint32_t i = 0; i < walk->count; i++) {
		double log = log10(fmax(walk->points[i].error, SMALLEST_ERROR));

		p.min_x = fmin(p.min_x, cost_of(&p, i));
		p.max_x = fmax(p.max_x, cost_of(&p, i));
		p.min_y = fmin(p.min_y, log);
		p.max_y = fmax(p.max_y, log);
	}
	width = fmax(p.max_x - p.min_x, .02 * p.max_x + 1);
	if (limit > p.max_x && limit < p.max_x + width)
		p.max_x = limit;
	p.min_x -= .06 * width;
	p.max_x += .06 * width;
	p.min_y -= .12;
	p.max_y += .12;
	return p;
}

/* ---- axes and boundaries ----------------------------------------------------------------------- */

static void draw_line(const struct walk_plot *p, double x1, double x2, double y1, double y2)
{
	fprintf(p->out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x1, x2, y1, y2);
}

static void draw_axes(const struct walk_plot *p)
{
	static const double parts[] = { 1, 2, 5 };
	double step = xfp_tick_step(p->max_x - p->min_x);
	char text[32];

	for (double x = ceil(p->min_x / step) * step; x <= p->max_x; x += step) {
		draw_line(p, x_at(p, x), x_at(p, x), TOP, BOTTOM);
		xfp_html_label(p->out, x_at(p, x), BOTTOM + 16, "f m", "%s", xfp_human(x, "B", text));
	}
	for (int decade = (int)floor(p->min_y); decade <= (int)floor(p->max_y); decade++)
		for (size_t i = 0; i < (p->max_y - p->min_y > 3 ? 1 : sizeof parts / sizeof *parts); i++) {
			double error = parts[i] * pow(10, decade);

			if (log10(error) < p->min_y || log10(error) > p->max_y)
				continue;
			draw_line(p, LEFT, LEFT + PLOT, y_at(p, error), y_at(p, error));
			xfp_html_label(p->out, LEFT - 8, y_at(p, error) + 4, "f e", "%g", error);
		}
	xfp_html_label(p->out, 0, TOP - 14, "f", "weighted error, predicted");
	xfp_html_label(p->out, LEFT + PLOT / 2, BOTTOM + 34, "f m",
		       p->walk->gpus ? "size on the fullest GPU" : "size of the bundle");
}

/* Shade sizes from `from` to `to`, in pixels. The label is where no points are: errors fall with size. */
static void draw_band(const struct walk_plot *p, double from, double to, const char *text)
{
	if (to - from < 1)
		return;
	fprintf(p->out, "<rect class=\"band\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", from, TOP,
		to - from, HEIGHT);
	if (from > LEFT)
		xfp_html_label(p->out, to - 6, TOP + 16, "f e", "%s", text);
	else
		xfp_html_label(p->out, from + 6, BOTTOM - 10, "f", "%s", text);
}

/* Garbage ends between the last point that is garbage and the first that passed. */
static void draw_boundaries(const struct walk_plot *p)
{
	const struct xfp_report_walk *walk = p->walk;

	if (walk->garbage != XFP_REPORT_NO_POINT) {
		uint32_t end = walk->passed != XFP_REPORT_NO_POINT ? walk->passed : walk->garbage;

		draw_band(p, LEFT, (x_at(p, cost_of(p, walk->garbage)) + x_at(p, cost_of(p, end))) / 2, "garbage");
	}
	if (walk->limit)
		draw_band(p, x_at(p, (double)walk->limit), LEFT + PLOT, "does not fit");
}

/* ---- points ------------------------------------------------------------------------------------ */

static void draw_point(const struct walk_plot *p, uint32_t number)
{
	const struct xfp_report_point *point = &p->walk->points[number];
	double x = x_at(p, cost_of(p, number)), y = y_at(p, point->error);
	bool failed = point->verdict == XFP_REPORT_GARBAGE || point->verdict == XFP_REPORT_TOO_LARGE;
	bool chosen = number == p->walk->chosen;
	char size[32];

	if (failed)
		fprintf(p->out, "<path class=\"miss\" d=\"M%.1f %.1fl8 8m0 -8l-8 8\">", x - 4, y - 4);
	else
		fprintf(p->out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\">",
			chosen || point->verdict == XFP_REPORT_PASSED ? "a" : "other", x, y, chosen ? 7 : 4);
	fputs("<title>", p->out);
	xfp_html_printf(p->out, "%s: %s, weighted error %.3g", point->name, xfp_human(cost_of(p, number), "B", size),
			point->error);
	fprintf(p->out, "</title></%s>\n", failed ? "path" : "circle");
}

/* Write a label above or below a point, not beyond the plot. */
static void draw_label(const struct walk_plot *p, uint32_t number, double below, const char *class, const char *text)
{
	double x = fmin(LEFT + PLOT - LABEL, fmax(LEFT + LABEL, x_at(p, cost_of(p, number))));

	xfp_html_label(p->out, x, y_at(p, p->walk->points[number].error) + below, class, "%s", text);
}

static void draw_marks(const struct walk_plot *p)
{
	uint32_t best = p->walk->recommended, chosen = p->walk->chosen;

	if (best != XFP_REPORT_NO_POINT) {
		fprintf(p->out, "<circle class=\"best\" cx=\"%.1f\" cy=\"%.1f\" r=\"11\"/>\n",
			x_at(p, cost_of(p, best)), y_at(p, p->walk->points[best].error));
		draw_label(p, best, 26, "h m", "recommended");
	}
	if (chosen != XFP_REPORT_NO_POINT)
		draw_label(p, chosen, -15, "h b m", "this bundle");
}

static void draw(FILE *out, const struct xfp_report_walk *walk)
{
	struct walk_plot p = plot_of(out, walk);

	xfp_html_figure(
		out, "walk-figure", LEFT + PLOT + 20, BOTTOM + 44, "Size and weighted error of the points of a walk",
		walk->probed
			? "A mark per point: a cross for a bundle that was judged garbage or is too large, a colored "
			  "dot for one that passed, a grey dot for one not probed. A ring marks the recommended "
			  "point, a large dot this bundle. Shaded sizes are garbage, or do not fit. The table below "
			  "has the figures."
			: "A dot per point. A ring marks the recommended point, a large dot this bundle. "
			  "Shaded sizes do not fit. The table below has the figures.");
	draw_boundaries(&p);
	draw_axes(&p);
	for (uint32_t i = 0; i < walk->count; i++)
		draw_point(&p, i);
	draw_marks(&p);
	xfp_html_figure_end(out);
}

/* ---- text -------------------------------------------------------------------------------------- */

static void write_boundary(FILE *out, const struct xfp_report_walk *walk, const char *what, uint32_t point)
{
	if (point == XFP_REPORT_NO_POINT)
		return;
	fputs("<li>", out);
	xfp_html_text(out, what);
	fputs(" <strong>", out);
	xfp_html_text(out, walk->points[point].name);
	fputs("</strong></li>\n", out);
}

static void write_boundaries(FILE *out, const struct xfp_report_walk *walk)
{
	char limit[32], fits[96];

	snprintf(fits, sizeof fits, "Fits into %s%s up to:", xfp_human((double)walk->limit, "B", limit),
		 walk->gpus ? " on a GPU" : "");
	fputs("<ul>\n", out);
	write_boundary(out, walk, "Garbage up to:", walk->garbage);
	write_boundary(out, walk, "Passes from:", walk->passed);
	if (walk->limit)
		write_boundary(out, walk, fits, walk->largest);
	write_boundary(out, walk, "Recommended:", walk->recommended);
	write_boundary(out, walk, "This bundle:", walk->chosen);
	if (walk->chosen == XFP_REPORT_NO_POINT)
		fputs("<li>This bundle is not a point of the walk.</li>\n", out);
	fputs("</ul>\n", out);
}

static const char *verdict_of(const struct xfp_report_point *point)
{
	static const char *const text[] = { [XFP_REPORT_NOT_PROBED] = "-",
					    [XFP_REPORT_PASSED] = "passed",
					    [XFP_REPORT_GARBAGE] = "garbage",
					    [XFP_REPORT_TOO_LARGE] = "too large" };

	return text[point->verdict];
}

static void write_probe(FILE *out, const struct xfp_report_walk *walk, const struct xfp_report_point *point)
{
	xfp_html_word(out, verdict_of(point));
	if (walk->measured) {
		xfp_html_number_or_dash(out, "%.4f", point->divergence);
		xfp_html_number_or_dash(out, "%.1f %%", 100 * point->agreement);
		xfp_html_number_or_dash(out, "%.3f", point->perplexity);
	}
	if (walk->scored)
		xfp_html_number_or_dash(out, "%.6g", point->score);
}

static void write_table(FILE *out, const struct xfp_report_walk *walk)
{
	char headings[256];

	snprintf(headings, sizeof headings,
		 "<point|size%s|bits per weight of the file|stored bits of units|squared error of units|weighted error|"
		 "<options%s%s%s",
		 walk->gpus ? "|on a GPU" : "", walk->probed ? "|<verdict" : "",
		 walk->measured ? "|KL|same token|perplexity" : "", walk->scored ? "|score" : "");
	xfp_html_table(out, "Points of the walk, from aggressive to conservative", headings);
	for (uint32_t i = 0; i < walk->count; i++) {
		const struct xfp_report_point *point = &walk->points[i];

		fputs(i == walk->chosen ? "<tr class=\"sum\">" : "<tr>", out);
		xfp_html_word(out, point->name);
		xfp_html_size(out, (double)point->bytes);
		if (walk->gpus)
			xfp_html_size(out, (double)point->gpu);
		xfp_html_number(out, "%.3f", point->bits);
		xfp_html_number(out, "%.3f", point->unit_bits);
		xfp_html_number(out, "%.3g", point->unweighted);
		xfp_html_number(out, "%.3g", point->error);
		xfp_html_name(out, point->options);
		if (walk->probed)
			write_probe(out, walk, point);
		fputs("</tr>\n", out);
	}
	xfp_html_table_end(out);
}

void xfp_page_walk(FILE *out, const struct xfp_report *report)
{
	const struct xfp_report_walk *walk = report->walk;

	fputs("<h3>Points of a walk</h3>\n", out);
	fputs("<p>Bundles that other settings would give, from aggressive to conservative ones. The size of a point "
	      "that was built is that of its file; other figures are predicted. Stored bits are those of the quantized "
	      "units only. Errors are those of weights, relative to their squares: the squared error of units counts "
	      "all weights alike, and is drawn under Rate and error; the weighted error counts classes as size goals "
	      "do, and is drawn here.",
	      out);
	if (!walk->probed)
		fputs(" None was built and judged: xfp walk --probe does it.", out);
	fputs("</p>\n", out);
	write_boundaries(out, walk);
	if (walk->count)
		draw(out, walk);
	write_table(out, walk);
}
