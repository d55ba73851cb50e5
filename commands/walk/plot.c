/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.c - a walk as one self-contained SVG: the size of each point against its predicted error, what was probed, the
 * limit, and the recommended point. The file contains no path.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/text/size.h"
#include "base/text/text.h"
#include "commands/ui/plot.h"
#include "commands/walk/walk.h"

enum { WIDTH = 760, HEIGHT = 470, LEFT = 76, RIGHT = 730, TOP = 52, BOTTOM = 380, LEGEND = 446 };
#define SMALLEST_ERROR 1e-9 /* zero has no logarithm */
#define LETTER 6.6

struct plot {
	struct xfp_plot_area area;
	const struct xfp_walk_command *w;
};

static double cost_of(const struct plot *p, uint32_t point)
{
	return (double)xfp_walk_cost(&p->w->walk, &p->w->walk.point[point]);
}

static double error_of(const struct plot *p, uint32_t point)
{
	return log10(fmax(p->w->walk.point[point].error, SMALLEST_ERROR));
}

/* The limit is shown if it is not far from the points. */
static bool shows_limit(const struct plot *p)
{
	const double limit = (double)p->w->walk.limit.bytes;

	return limit > 0 && limit >= p->area.min_x && limit <= p->area.max_x;
}

static void find_ranges(struct plot *p)
{
	const double limit = (double)p->w->walk.limit.bytes;
	double width;

	p->area.min_x = p->area.min_y = INFINITY;
	p->area.max_x = p->area.max_y = -INFINITY;
	for (uint32_t i = 0; i < p->w->walk.count; i++) {
		p->area.min_x = fmin(p->area.min_x, cost_of(p, i));
		p->area.max_x = fmax(p->area.max_x, cost_of(p, i));
		p->area.min_y = fmin(p->area.min_y, error_of(p, i));
		p->area.max_y = fmax(p->area.max_y, error_of(p, i));
	}
	width = fmax(p->area.max_x - p->area.min_x, .02 * p->area.max_x);
	if (limit > 0 && fabs(limit - p->area.max_x) < width)
		p->area.max_x = fmax(p->area.max_x, limit);
	if (limit > 0 && fabs(limit - p->area.min_x) < width)
		p->area.min_x = fmin(p->area.min_x, limit);
	p->area.min_x -= .05 * width;
	p->area.max_x += .05 * width;
	p->area.min_y -= .15;
	p->area.max_y += .15;
}

/* ---- axes -------------------------------------------------------------------------------------- */

static void draw_axes(const struct plot *p)
{
	xfp_plot_x_axis(&p->area, xfp_tick_step(p->area.max_x - p->area.min_x), "B",
			p->w->limit.kind == XFP_GOAL_ENVELOPE ? "size on the fullest GPU" : "size of the bundle");
	xfp_plot_y_axis(&p->area);
	fprintf(p->area.out, "<text class=\"faint\" x=\"%d\" y=\"%d\">predicted squared error, relative</text>\n", LEFT,
		TOP - 8);
}

/* ---- points ------------------------------------------------------------------------------------ */

static const char *class_of(const struct xfp_walk_point *point)
{
	switch (point->probe.verdict) {
	case XFP_WALK_PASSED:
		return "passed";
	case XFP_WALK_GARBAGE:
	case XFP_WALK_TOO_LARGE:
		return "failed";
	default:
		return "point";
	}
}

/* A dot; a cross for garbage. Browsers show the title of a point under the pointer. */
static void draw_mark(FILE *out, const char *kind, double x, double y)
{
	if (strcmp(kind, "failed") != 0)
		fprintf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\">", kind, x, y);
	else
		fprintf(out, "<path class=\"failed\" d=\"M%.1f %.1fl8 8m0 -8l-8 8\">", x - 4, y - 4);
}

static void draw_point(const struct plot *p, uint32_t i)
{
	const struct xfp_walk_point *point = &p->w->walk.point[i];
	const double x = xfp_plot_x(&p->area, cost_of(p, i)), y = xfp_plot_y(&p->area, error_of(p, i));
	const char *kind = class_of(point);
	char name[XFP_WALK_NAME], size[32];

	if (i == p->w->found.best)
		fprintf(p->area.out, "<circle class=\"best\" cx=\"%.1f\" cy=\"%.1f\" r=\"9\"/>\n", x, y);
	draw_mark(p->area.out, kind, x, y);
	fputs("<title>", p->area.out);
	xfp_plot_text(p->area.out, xfp_walk_long_name(point, name));
	fprintf(p->area.out, ": %s, error %.3g</title></%s>\n", xfp_human(cost_of(p, i), "B", size), point->error,
		strcmp(kind, "failed") ? "circle" : "path");
}

static void draw_limit(const struct plot *p)
{
	const double x = xfp_plot_x(&p->area, (double)p->w->walk.limit.bytes);
	const bool left = x > (LEFT + RIGHT) / 2.;
	char text[32];

	fprintf(p->area.out, "<line class=\"limit\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n", x, x, BOTTOM,
		TOP);
	fprintf(p->area.out, "<text text-anchor=\"%s\" x=\"%.1f\" y=\"%d\">limit %s</text>\n", left ? "end" : "start",
		x + (left ? -6 : 6), TOP + 14,
		xfp_size_text(p->w->walk.limit.bytes, xfp_size_is_binary(p->w->limit.option), text));
}

static void draw_legend(const struct plot *p)
{
	static const struct {
		const char *kind, *text;
	} all[] = { { "point", "point" }, { "failed", "garbage, or too large" }, { "passed", "passed" } };
	double x = LEFT + 4;

	for (size_t i = 0; i < (p->w->probe ? sizeof all / sizeof *all : 1); i++) {
		draw_mark(p->area.out, all[i].kind, x, LEGEND - 4);
		fprintf(p->area.out, "</%s><text x=\"%.1f\" y=\"%d\">%s</text>\n",
			strcmp(all[i].kind, "failed") ? "circle" : "path", x + 11, LEGEND, all[i].text);
		x += 40 + LETTER * (double)strlen(all[i].text);
	}
	if (p->w->found.best != XFP_WALK_NONE)
		fprintf(p->area.out,
			"<circle class=\"best\" cx=\"%.1f\" cy=\"%d\" r=\"9\"/><text x=\"%.1f\" y=\"%d\">recommended"
			"</text>\n",
			x + 5, LEGEND - 4, x + 20, LEGEND);
}

/* ---- the file ---------------------------------------------------------------------------------- */

static void draw(struct plot *p)
{
	fprintf(p->area.out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
		"width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	fprintf(p->area.out, "<title>%u points of a walk: size and predicted error</title>\n",
		(unsigned)p->w->walk.count);
	fputs("<style>text { font: 12px system-ui, sans-serif; fill: #24292f; }\n"
	      ".faint { fill: #57606a; font-size: 11px; } .head { font-weight: 600; } .back { fill: #ffffff; }\n"
	      ".grid { stroke: #e4e7eb; } .limit { stroke: #953800; stroke-dasharray: 5 4; }\n"
	      ".point { fill: #8c959f; } .passed { fill: #1a7f37; } .best { fill: none; stroke: #1f6feb; "
	      "stroke-width: 2; }\n.failed { fill: none; stroke: #cf222e; stroke-width: 2; }\n"
	      "@media (prefers-color-scheme: dark) {\n"
	      "text { fill: #e6edf3; } .faint { fill: #9aa4b0; } .back { fill: #0d1117; } .grid { stroke: #2a313a; }\n"
	      ".limit { stroke: #f0883e; } .point { fill: #9aa4b0; } .passed { fill: #56d364; } "
	      ".best { stroke: #6cb0ff; } .failed { stroke: #ff7b72; }\n"
	      "}</style>\n<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n",
	      p->area.out);
	fprintf(p->area.out,
		"<text class=\"head\" x=\"%d\" y=\"22\">Points from aggressive to conservative ones</text>\n", LEFT);
	draw_axes(p);
	if (shows_limit(p))
		draw_limit(p);
	for (uint32_t i = 0; i < p->w->walk.count; i++)
		draw_point(p, i);
	draw_legend(p);
	fputs("</svg>\n", p->area.out);
}

enum xfp_status xfp_walk_plot(const struct xfp_walk_command *w, struct xfp_error *err)
{
	struct xfp_text text;
	struct plot plot = { .area = { xfp_text_begin(&text), LEFT, RIGHT, TOP, BOTTOM, 0, 0, 0, 0 }, .w = w };
	enum xfp_status status;

	if (plot.area.out && w->walk.count) {
		find_ranges(&plot);
		draw(&plot);
	}
	if ((status = xfp_write_text(w->plot, &text, err)))
		xfp_context(err, status, "--plot");
	return status;
}
