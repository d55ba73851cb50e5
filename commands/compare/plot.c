/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.c - xfp compare: bits against squared error and against 1 - cosine, as one self-contained SVG.
 *
 * Our candidates are small dots, one per threshold, with one line per mode through the best of each k; common formats
 * are rings with their names, placed without overlaps. The title is the model's name, the legend explains the marks,
 * and the file contains no path.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/text/size.h"
#include "base/text/text.h"
#include "commands/compare/compare.h"
#include "commands/ui/plot.h"

enum { WIDTH = 1120, TOP = 70, BOTTOM = 494, PANEL = 480, LEFT = 66, PANELS_APART = 560 };
enum { LEGEND = 556, LEGEND_ROW = 22, HEIGHT = 600 };
#define LINES 6    /* v2, v2a, v2a as published, v2c with two groups */
#define MAX_BITS 8 /* more occurs only in small matrices, and would squeeze the rest */
#define LETTER 6.6
#define NAME_SIZE 12.0 /* font size of names */
#define TEXT_HEIGHT 14.0
#define DESCENT 3.0 /* below the baseline */

struct box {
	double left, top, right, bottom;
};

struct segment {
	double x1, y1, x2, y2;
};

struct panel {
	struct xfp_plot_area area;
	const struct xfp_compared_unit *unit;
	bool cosine; /* 1 - cosine, not the squared error */
	struct box taken[2 * XFP_PEERS];
	unsigned taken_count;
	struct segment leader[XFP_PEERS];
	unsigned leader_count;
};

static double value_of(const struct panel *p, const struct xfp_compared *c)
{
	return p->cosine ? 1 - c->candidate.cos_median : c->candidate.error;
}

/* Zero has no logarithm and is not shown. */
static bool shown(const struct panel *p, const struct xfp_compared *c)
{
	return c->candidate.cos_median >= 0 && value_of(p, c) > 1e-30 && xfp_compared_bits(p->unit, c) <= MAX_BITS;
}

static void find_ranges(struct panel *p)
{
	p->area.min_x = p->area.min_y = INFINITY;
	p->area.max_x = p->area.max_y = -INFINITY;
	for (uint32_t i = 0; i < p->unit->count; i++) {
		const struct xfp_compared *c = &p->unit->list[i];
		double x = xfp_compared_bits(p->unit, c), y;

		if (!shown(p, c))
			continue;
		y = log10(value_of(p, c));
		p->area.min_x = fmin(p->area.min_x, x);
		p->area.max_x = fmax(p->area.max_x, x);
		p->area.min_y = fmin(p->area.min_y, y);
		p->area.max_y = fmax(p->area.max_y, y);
	}
	if (!isfinite(p->area.min_x)) {
		p->area.min_x = p->area.min_y = 0;
		p->area.max_x = p->area.max_y = 1;
	}
	p->area.min_x = floor(p->area.min_x * 2 - .2) / 2;
	p->area.max_x = ceil(p->area.max_x * 2 + .2) / 2;
	p->area.min_y -= .12;
	p->area.max_y += .12;
}

static void draw_axes(const struct panel *p)
{
	const double range = p->area.max_x - p->area.min_x;

	fprintf(p->area.out, "<text class=\"title\" x=\"%.1f\" y=\"%d\">%s</text>\n", p->area.left, TOP - 22,
		p->cosine ? "1 - cosine of a row, median" : "Squared error, relative");
	xfp_plot_x_axis(&p->area, range > 12 ? 4 : range > 6 ? 1 : .5, "", "bits per weight, all stored bits");
	xfp_plot_y_axis(&p->area);
}

/* ---- ours -------------------------------------------------------------------------------------- */

/* fp8 is a single point, beyond the bits shown. */
static bool has_line(const struct xfp_compared *first)
{
	return first->candidate.mode != XFP_MODE_FP8;
}

static void draw_lines(const struct panel *p)
{
	const struct xfp_compared_unit *unit = p->unit;
	unsigned line = 0;

	for (uint32_t i = 0, end; i < unit->count && !unit->list[i].peer; i = end) {
		end = xfp_compared_run_end(unit, i, true);
		if (!has_line(&unit->list[i]))
			continue;
		for (uint32_t j = i; j < end; j++)
			if (shown(p, &unit->list[j]))
				fprintf(p->area.out, "<circle class=\"d%u\" cx=\"%.1f\" cy=\"%.1f\" r=\"1.8\"/>\n",
					line, xfp_plot_x(&p->area, xfp_compared_bits(unit, &unit->list[j])),
					xfp_plot_y(&p->area, log10(value_of(p, &unit->list[j]))));
		fprintf(p->area.out, "<polyline class=\"l%u\" points=\"", line);
		for (uint32_t j = i, next; j < end; j = next) {
			const struct xfp_compared *best;

			next = xfp_compared_run_end(unit, j, false);
			best = xfp_compared_best(unit, j, next);
			if (shown(p, best))
				fprintf(p->area.out, "%.1f,%.1f ", xfp_plot_x(&p->area, xfp_compared_bits(unit, best)),
					xfp_plot_y(&p->area, log10(value_of(p, best))));
		}
		fputs("\"/>\n", p->area.out);
		line++;
	}
}

/* Draw text at x; returns the x after it. */
static double draw_text(FILE *out, double x, double y, const char *text)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", x, y, text);
	return x + (double)strlen(text) * LETTER;
}

/* One row for the lines, one for the other marks. */
static void draw_legend(FILE *out, const struct xfp_compared_unit *unit)
{
	const double middle = LEGEND - 4, below = LEGEND + LEGEND_ROW;
	unsigned line = 0;
	double x = LEFT;

	for (uint32_t i = 0, end; i < unit->count && !unit->list[i].peer; i = end) {
		char mode[32];

		end = xfp_compared_run_end(unit, i, true);
		if (!has_line(&unit->list[i]))
			continue;
		fprintf(out, "<polyline class=\"l%u\" points=\"%.1f,%.1f %.1f,%.1f\"/>\n", line, x, middle, x + 24,
			middle);
		x = draw_text(out, x + 31, LEGEND, xfp_compared_mode(&unit->list[i], mode)) + 28;
		line++;
	}
	fprintf(out, "<circle class=\"d0\" cx=\"%d\" cy=\"%.1f\" r=\"1.8\"/>\n", LEFT + 4, below - 4);
	x = draw_text(out, LEFT + 15, below,
		      "small dots: each outlier threshold, and none; lines join the best of each number of bits");
	fprintf(out, "<circle class=\"peer\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", x + 32, below - 4);
	draw_text(out, x + 43, below, "common formats");
}

/* ---- peers ------------------------------------------------------------------------------------- */

static bool overlap(const struct box *a, const struct box *b)
{
	return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

/* Clip a line to [low, high]: *begin to *end, as fractions of the line. */
static void clip(double at, double step, double low, double high, double *begin, double *end)
{
	double near, far;

	if (fabs(step) < 1e-9) {
		if (at <= low || at >= high)
			*end = -1;
		return;
	}
	near = (low - at) / step;
	far = (high - at) / step;
	*begin = fmax(*begin, fmin(near, far));
	*end = fmin(*end, fmax(near, far));
}

static bool crosses(const struct segment *line, const struct box *box)
{
	double begin = 0, end = 1;

	clip(line->x1, line->x2 - line->x1, box->left, box->right, &begin, &end);
	clip(line->y1, line->y2 - line->y1, box->top, box->bottom, &begin, &end);
	return begin < end;
}

/* Width of a name in DejaVu Sans, which few fonts exceed. */
static double width_of(const char *name)
{
	double width = 0;

	for (; *name; name++)
		width += strchr("MW", *name)                ? .87
			 : *name >= 'A' && *name <= 'Z'     ? .7
			 : strchr("-fijlrt", *name) != NULL ? .4
							    : .64;
	return width * NAME_SIZE;
}

/* The leader from a ring to its name; of length 0 if the name is next to the ring. */
static struct segment leader_of(double x, double y, const struct box *box)
{
	double middle = (box->top + box->bottom) / 2;

	double near = box->left > x ? box->left - 1 : box->right + 1;

	if (fabs(middle - y) <= TEXT_HEIGHT && fabs(near - x) < 8)
		return (struct segment){ x, y, x, y };
	if (fabs(middle - y) <= TEXT_HEIGHT)
		return (struct segment){ x + (near > x ? 5 : -5), y, near, middle };
	return (struct segment){ x, y + (middle > y ? 5 : -5), near, middle };
}

static bool has_length(const struct segment *line)
{
	return fabs(line->x1 - line->x2) > 0 || fabs(line->y1 - line->y2) > 0;
}

/* Whether a name and its leader overlap no ring, no other name and no other leader. */
static bool is_free(const struct panel *p, const struct box *box, const struct segment *leader)
{
	if (box->left < p->area.left || box->right > p->area.left + PANEL || box->top < TOP || box->bottom > BOTTOM)
		return false;
	for (unsigned i = 0; i < p->taken_count; i++)
		if (overlap(&p->taken[i], box) || (has_length(leader) && crosses(leader, &p->taken[i])))
			return false;
	for (unsigned i = 0; i < p->leader_count; i++)
		if (crosses(&p->leader[i], box))
			return false;
	return true;
}

/* Place a name next to its ring, or at the nearest position without overlap. */
static struct box place(const struct panel *p, double x, double y, double width)
{
	struct box nearest = { x + 8, y + 4 + DESCENT - TEXT_HEIGHT, x + 8 + width, y + 4 + DESCENT };
	double min = INFINITY;

	for (double off = 0; off < BOTTOM - TOP; off += 2)
		for (double aside = 8; aside < PANEL / 3. && off + aside < min; aside += 10)
			for (int side = 0; side < 4; side++) {
				double base = y + 4 + (side & 1 ? off : -off);
				double left = side & 2 ? x - aside - width : x + aside;
				struct box box = { left, base + DESCENT - TEXT_HEIGHT, left + width, base + DESCENT };
				struct segment leader = leader_of(x, y, &box);

				if (off + aside < min && is_free(p, &box, &leader)) {
					nearest = box;
					min = off + aside;
				}
			}
	return nearest;
}

static void draw_peers(struct panel *p)
{
	const struct xfp_compared_unit *unit = p->unit;

	for (uint32_t i = 0; i < unit->count; i++) {
		const struct xfp_compared *c = &unit->list[i];
		double x, y;

		if (!c->peer || !shown(p, c))
			continue;
		x = xfp_plot_x(&p->area, xfp_compared_bits(unit, c));
		y = xfp_plot_y(&p->area, log10(value_of(p, c)));
		p->taken[p->taken_count++] = (struct box){ x - 5, y - 5, x + 5, y + 5 };
		fprintf(p->area.out, "<circle class=\"peer\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", x, y);
	}
	for (uint32_t i = 0; i < unit->count; i++) {
		const struct xfp_compared *c = &unit->list[i];
		struct segment leader;
		struct box box;
		double x, y;

		if (!c->peer || !shown(p, c))
			continue;
		x = xfp_plot_x(&p->area, xfp_compared_bits(unit, c));
		y = xfp_plot_y(&p->area, log10(value_of(p, c)));
		box = place(p, x, y, width_of(c->peer->name));
		leader = leader_of(x, y, &box);
		if (has_length(&leader)) {
			fprintf(p->area.out,
				"<line class=\"leader\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", leader.x1,
				leader.y1, leader.x2, leader.y2);
			p->leader[p->leader_count++] = leader;
		}
		p->taken[p->taken_count++] = box;
		fprintf(p->area.out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", box.left,
			box.bottom - DESCENT, c->peer->name);
	}
}

/* ---- the file ---------------------------------------------------------------------------------- */

/* Colours that most people can distinguish, on white and on black. */
static void draw_style(FILE *out)
{
	static const char *const light[LINES] = { "#57606a", "#8250df", "#bf8700", "#1f6feb", "#1a7f37", "#953800" };
	static const char *const dark[LINES] = { "#9aa4b0", "#b48cf2", "#e3b341", "#6cb0ff", "#56d364", "#f0883e" };

	fputs("<style>text { font: 12px system-ui, sans-serif; fill: #24292f; }\n"
	      ".faint { fill: #57606a; font-size: 11px; } .title { font-weight: 600; } .back { fill: #ffffff; }\n"
	      ".name { paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }\n"
	      ".grid { stroke: #e4e7eb; } .leader { stroke: #57606a; } "
	      ".peer { fill: none; stroke: #cf222e; stroke-width: 2; }\n"
	      "polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }\n",
	      out);
	for (int i = 0; i < LINES; i++)
		fprintf(out, ".l%d { stroke: %s; } .d%d { fill: %s; }\n", i, light[i], i, light[i]);
	fputs("@media (prefers-color-scheme: dark) {\n"
	      "text { fill: #e6edf3; } .faint { fill: #9aa4b0; } .back { fill: #0d1117; }\n"
	      ".name { stroke: #0d1117; } .grid { stroke: #2a313a; } .leader { stroke: #9aa4b0; } "
	      ".peer { stroke: #ff7b72; }\n",
	      out);
	for (int i = 0; i < LINES; i++)
		fprintf(out, ".l%d { stroke: %s; } .d%d { fill: %s; }\n", i, dark[i], i, dark[i]);
	fputs("}</style>\n<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n", out);
}

/* The model's name without folders: "Qwen3-0.6B: 196 units, 440 M weights". */
static void draw_title(FILE *out, const struct xfp_comparison *comparison)
{
	const char *given = comparison->request.given, *end = given + strlen(given), *name;
	struct xfp_printable shown;
	char weights[32], *copy;

	while (end > given + 1 && end[-1] == '/')
		end--;
	for (name = end; name > given && name[-1] != '/';)
		name--;
	copy = strndup(name, (size_t)(end - name));
	shown = xfp_printable(copy && strcmp(copy, ".") && strcmp(copy, "..") ? copy : "model");
	free(copy);
	fprintf(out, "<text class=\"title\" x=\"%d\" y=\"22\">", LEFT);
	xfp_plot_text(out, shown.text);
	fprintf(out, ": %" PRIu32 " unit%s, %s weights</text>\n", comparison->count, comparison->count == 1 ? "" : "s",
		xfp_human((double)comparison->all.weights, "", weights));
}

static void draw(FILE *out, const struct xfp_comparison *comparison)
{
	const struct xfp_compared_unit *all = &comparison->all;

	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	draw_style(out);
	draw_title(out, comparison);
	for (int i = 0; i < 2; i++) {
		const double left = LEFT + i * PANELS_APART;
		struct panel panel = { .area = { out, left, left + PANEL, TOP, BOTTOM, 0, 0, 0, 0 },
				       .unit = all,
				       .cosine = i };

		find_ranges(&panel);
		draw_axes(&panel);
		draw_lines(&panel);
		draw_peers(&panel);
	}
	draw_legend(out, all);
	fputs("</svg>\n", out);
}

enum xfp_status xfp_compare_plot(const struct xfp_comparison *comparison, const char *path, struct xfp_error *err)
{
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);

	if (out)
		draw(out, comparison);
	return xfp_write_text(path, &text, err);
}
