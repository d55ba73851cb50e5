/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate.c - bits against squared error: every format of xfp compare, llama.cpp's types, the points of a walk, and this
 * bundle.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conversion/report/html/html.h"
#include "conversion/report/html/page.h"
#include "conversion/report/inputs.h"

#define LEFT 60.0
#define PLOT 560.0
#define TOP 16.0
#define HEIGHT 380.0
#define MAX_BITS 7.2   /* more would squeeze the rest */
#define MAX_LABELS 256 /* and marks */
#define LINE 13.0      /* height of a label */
#define LETTER 6.8

struct rate_plot {
	FILE *out;
	const struct xfp_report *report;
	double min_x, max_x, min_y, max_y; /* y as log10 */
	struct rate_label {
		double left, right, y;
	} labels[MAX_LABELS];
	unsigned label_count;
};

static double x_of(const struct rate_plot *p, double bits)
{
	return LEFT + PLOT * (bits - p->min_x) / (p->max_x - p->min_x);
}

static double y_of(const struct rate_plot *p, double error)
{
	return TOP + HEIGHT * (p->max_y - log10(error)) / (p->max_y - p->min_y);
}

static double bundle_bits(const struct xfp_report *report)
{
	return xfp_bits_per_weight(report->all.bytes, report->all.weights);
}

static void include(struct rate_plot *p, double bits, double error)
{
	if (!(error > 0) || !(bits > 0) || bits > MAX_BITS)
		return;
	p->min_x = fmin(p->min_x, bits);
	p->max_x = fmax(p->max_x, bits);
	p->min_y = fmin(p->min_y, log10(error));
	p->max_y = fmax(p->max_y, log10(error));
}

static struct rate_plot plot_of(FILE *out, const struct xfp_report *report)
{
	struct rate_plot p = { out, report, INFINITY, -INFINITY, INFINITY, -INFINITY, .label_count = 0 };

	for (uint32_t i = 0; i < report->comparison->count; i++)
		include(&p, report->comparison->ways[i].bits, report->comparison->ways[i].error);
	for (uint32_t i = 0; report->walk && i < report->walk->count; i++)
		include(&p, report->walk->points[i].unit_bits, report->walk->points[i].unweighted);
	include(&p, bundle_bits(report), xfp_report_weight_error(&report->all));
	if (!isfinite(p.min_x)) {
		p.min_x = p.min_y = 0;
		p.max_x = p.max_y = 1;
	}
	p.min_x = floor(p.min_x - .1);
	p.max_x = ceil(p.max_x + .1);
	p.min_y -= .15;
	p.max_y += .15;
	return p;
}

static void draw_axes(const struct rate_plot *p)
{
	for (double bits = p->min_x; bits <= p->max_x; bits++) {
		fprintf(p->out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
			x_of(p, bits), x_of(p, bits), TOP, TOP + HEIGHT);
		xfp_html_label(p->out, x_of(p, bits), TOP + HEIGHT + 16, "f m", "%.0f", bits);
	}
	for (int decade = (int)ceil(p->min_y); decade <= (int)floor(p->max_y); decade++) {
		double y = y_of(p, pow(10, decade));

		fprintf(p->out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LEFT,
			LEFT + PLOT, y, y);
		xfp_html_label(p->out, LEFT - 8, y + 4, "f e", "1e%d", decade);
	}
	xfp_html_label(p->out, LEFT + PLOT / 2, TOP + HEIGHT + 34, "f m", "stored bits per weight of units");
	xfp_html_label(p->out, 0, TOP - 6, "f", "squared error of weights");
}

static void occupy(struct rate_plot *p, struct rate_label box)
{
	if (p->label_count < MAX_LABELS)
		p->labels[p->label_count++] = box;
}

static bool is_free(const struct rate_plot *p, const struct rate_label *box)
{
	for (unsigned l = 0; l < p->label_count; l++)
		if (fabs(p->labels[l].y - box->y) < LINE && p->labels[l].left < box->right &&
		    box->left < p->labels[l].right)
			return false;
	return box->right <= LEFT + PLOT + 60;
}

/* Place a label next to a point: to its right or left, or above or below if something is there. */
static void place(struct rate_plot *p, double x, double y, const char *class, const char *text)
{
	static const double offsets[] = { 0, -LINE, LINE, -2 * LINE, 2 * LINE, -3 * LINE, 3 * LINE };
	double width = LETTER * (double)strlen(text);
	struct rate_label box = { x + 8, x + 8 + width, y + 4 };

	for (size_t i = 0; i < 2 * sizeof offsets / sizeof *offsets; i++) {
		double left = i % 2 ? x - 8 - width : x + 8;
		const struct rate_label other = { left, left + width, y + 4 + offsets[i / 2] };

		if (!is_free(p, &other))
			continue;
		box = other;
		break;
	}
	occupy(p, box);
	xfp_html_label(p->out, box.left, box.y, class, "%s", text);
}

/* Keep labels off the mark of a point. */
static void mark(struct rate_plot *p, double bits, double error)
{
	double x = x_of(p, bits);

	occupy(p, (struct rate_label){ x - 5, x + 5, y_of(p, error) + 4 });
}

static bool is_shown(const struct xfp_report_way *way)
{
	return way->bits <= MAX_BITS;
}

/* Whether a point is the better one of its format and k: one more bit must reduce the error to a quarter. */
static bool is_best(const struct xfp_report_comparison *c, const struct xfp_report_way *way)
{
	for (uint32_t i = 0; i < c->count; i++) {
		const struct xfp_report_way *other = &c->ways[i];

		if (!strcmp(other->format, way->format) && other->k == way->k &&
		    log2(other->error) + 2 * other->bits < log2(way->error) + 2 * way->bits)
			return false;
	}
	return true;
}

/* A line through the best points of each of our formats, in the order of the file: by format, then by k. */
static void draw_ours(struct rate_plot *p)
{
	const struct xfp_report_comparison *c = p->report->comparison;

	for (enum xfp_mode mode = XFP_MODE_V2; mode <= XFP_MODE_V2C; mode++) {
		const struct xfp_report_way *first = NULL;

		for (uint32_t k = 1; k < 16; k++)
			for (uint32_t i = 0; i < c->count; i++) {
				const struct xfp_report_way *way = &c->ways[i];

				if (way->k != k || strcmp(way->format, xfp_mode_name(mode)) || !is_shown(way) ||
				    !is_best(c, way))
					continue;
				if (!first)
					fputs("<polyline class=\"line\" points=\"", p->out);
				first = first ? first : way;
				fprintf(p->out, "%.1f,%.1f ", x_of(p, way->bits), y_of(p, way->error));
			}
		if (first) {
			fputs("\"/>\n", p->out);
			place(p, x_of(p, first->bits), y_of(p, first->error), "h", first->format);
		}
	}
}

/* llama.cpp's types; the table has the others. */
static bool is_llama(const struct xfp_report_way *way)
{
	return !strncmp(way->format, "Q", 1) || !strncmp(way->format, "IQ", 2);
}

static bool is_ring(const struct xfp_report_way *way)
{
	return !way->ours && is_shown(way) && is_llama(way);
}

static void draw_others(struct rate_plot *p)
{
	const struct xfp_report_comparison *c = p->report->comparison;

	for (uint32_t i = 0; i < c->count; i++) {
		const struct xfp_report_way *way = &c->ways[i];

		if (!is_ring(way))
			continue;
		mark(p, way->bits, way->error);
		fprintf(p->out, "<circle class=\"ring\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", x_of(p, way->bits),
			y_of(p, way->error));
	}
}

static void label_others(struct rate_plot *p)
{
	const struct xfp_report_comparison *c = p->report->comparison;

	for (uint32_t i = 0; i < c->count; i++)
		if (is_ring(&c->ways[i]))
			place(p, x_of(p, c->ways[i].bits), y_of(p, c->ways[i].error), "h f", c->ways[i].format);
}

/* A dot for each point of a walk; xfp_page_walk draws them closer. */
static void draw_walk(struct rate_plot *p)
{
	const struct xfp_report_walk *walk = p->report->walk;

	for (uint32_t i = 0; walk && i < walk->count; i++) {
		const struct xfp_report_point *point = &walk->points[i];

		if (!(point->unweighted > 0) || !(point->unit_bits > 0) || point->unit_bits > MAX_BITS)
			continue;
		mark(p, point->unit_bits, point->unweighted);
		fprintf(p->out, "<circle class=\"step\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n", x_of(p, point->unit_bits),
			y_of(p, point->unweighted));
	}
}

static void draw(FILE *out, const struct xfp_report *report)
{
	struct rate_plot p = plot_of(out, report);
	double bits = bundle_bits(report), error = xfp_report_weight_error(&report->all);

	xfp_html_figure(out, "plot", LEFT + PLOT + 90, TOP + HEIGHT + 44, "Squared error against bits per weight",
			"Lines: formats of xfp. Rings: types of llama.cpp. Small dots: points of a walk. The large dot "
			"is this bundle. Lower and further left is better. The table below has the figures.");
	draw_axes(&p);
	draw_others(&p);
	draw_walk(&p);
	draw_ours(&p);
	if (error > 0 && bits <= MAX_BITS) {
		fprintf(out, "<circle class=\"a\" cx=\"%.1f\" cy=\"%.1f\" r=\"7\"/>\n", x_of(&p, bits),
			y_of(&p, error));
		place(&p, x_of(&p, bits) + 3, y_of(&p, error), "h b", "this bundle");
	}
	label_others(&p);
	xfp_html_figure_end(out);
}

static int by_bits(const void *a, const void *b)
{
	const struct xfp_report_way *x = a, *y = b;

	return (x->bits > y->bits) - (x->bits < y->bits);
}

static void write_way(FILE *out, const struct xfp_report_way *way, double error)
{
	fputs(way->ours ? "<tr class=\"sum\">" : "<tr>", out);
	xfp_html_word(out, way->format);
	xfp_html_number(out, "%.3f", way->bits);
	xfp_html_number(out, "%.3g", way->error);
	xfp_html_number(out, error > 0 ? "%.2f" : "-", way->error / error);
	fputs("</tr>\n", out);
}

/* Common formats by size, with this bundle among them. */
static void write_table(FILE *out, const struct xfp_report *report)
{
	const struct xfp_report_comparison *c = report->comparison;
	struct xfp_report_way *list = calloc(c->count + (size_t)1, sizeof *list);
	double error = xfp_report_weight_error(&report->all);
	uint32_t count = 0;

	xfp_html_table(out, "Common formats by size",
		       "<format|stored bits per weight|squared error|relative to this bundle's");
	for (uint32_t i = 0; list && i < c->count; i++)
		if (!c->ways[i].ours)
			list[count++] = c->ways[i];
	if (list) {
		list[count++] = (struct xfp_report_way){
			.format = "this bundle", .ours = true, .bits = bundle_bits(report), .error = error
		};
		qsort(list, count, sizeof *list, by_bits);
	}
	for (uint32_t i = 0; i < count; i++)
		write_way(out, &list[i], error);
	xfp_html_table_end(out);
	free(list);
}

void xfp_page_rate(FILE *out, const struct xfp_report *report)
{
	xfp_html_section(
		out, "rate", "Rate and error",
		"What other formats and settings would cost and lose on these weights: lines are formats of xfp, rings "
		"are types of llama.cpp, small dots are points of a walk, as predicted. Bits and errors are those of "
		"the quantized units only; errors are of weights, also for a calibrated bundle, which trades "
		"them for lower errors of outputs. Lower and further left is better.");
	if (report->comparison) {
		draw(out, report);
		write_table(out, report);
	}
	if (report->walk)
		xfp_page_walk(out, report);
	fputs("</section>\n", out);
}
