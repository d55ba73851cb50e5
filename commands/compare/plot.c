/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.c - xfp compare: bits against squared error, and against 1 - cosine, as one SVG that needs nothing else.
 *
 * Our ways are small dots, one a threshold, and a line a mode through the best of each k; common formats are rings with
 * their names, set where they hide no other name. No path and no name of a model is in it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/system/file.h"
#include "base/text/text.h"
#include "commands/compare/compare.h"

enum { WIDTH = 1120, HEIGHT = 560, TOP = 46, BOTTOM = 470, PANEL = 480 };
#define LINES 6     /* v2, v2a, the same as published, v2c of two groups */
#define MOST_BITS 8 /* what takes more is of small matrices, and would squeeze the rest */
#define LETTER 6.6
#define TEXT_HEIGHT 12.0

struct box {
	double left, top, right, bottom;
};

struct panel {
	FILE *out;
	const struct xfp_compared_unit *unit;
	bool cosine;                                   /* 1 - cosine, not the squared error */
	double left, least_x, most_x, least_y, most_y; /* y as log10 */
	struct box taken[2 * XFP_PEERS];
	unsigned taken_count;
};

static double value_of(const struct panel *p, const struct xfp_compared *c)
{
	return p->cosine ? 1 - c->candidate.cos_median : c->candidate.error;
}

/* What has no logarithm is not. */
static bool shown(const struct panel *p, const struct xfp_compared *c)
{
	return c->candidate.cos_median >= 0 && value_of(p, c) > 1e-30 && xfp_compared_bits(p->unit, c) <= MOST_BITS;
}

static double x_of(const struct panel *p, double bits)
{
	return p->left + PANEL * (bits - p->least_x) / (p->most_x - p->least_x);
}

static double y_of(const struct panel *p, double log)
{
	return BOTTOM - (BOTTOM - TOP) * (log - p->least_y) / (p->most_y - p->least_y);
}

static void find_ranges(struct panel *p)
{
	p->least_x = p->least_y = INFINITY;
	p->most_x = p->most_y = -INFINITY;
	for (uint32_t i = 0; i < p->unit->count; i++) {
		const struct xfp_compared *c = &p->unit->list[i];
		double x = xfp_compared_bits(p->unit, c), y;

		if (!shown(p, c))
			continue;
		y = log10(value_of(p, c));
		p->least_x = fmin(p->least_x, x);
		p->most_x = fmax(p->most_x, x);
		p->least_y = fmin(p->least_y, y);
		p->most_y = fmax(p->most_y, y);
	}
	if (!isfinite(p->least_x)) {
		p->least_x = p->least_y = 0;
		p->most_x = p->most_y = 1;
	}
	p->least_x = floor(p->least_x * 2 - .2) / 2;
	p->most_x = ceil(p->most_x * 2 + .2) / 2;
	p->least_y -= .12;
	p->most_y += .12;
}

/* ---- axes -------------------------------------------------------------------------------------- */

static void draw_axes(const struct panel *p)
{
	static const double steps[] = { 1, 2, 5 };
	double step = p->most_x - p->least_x > 12 ? 4 : p->most_x - p->least_x > 6 ? 1 : .5;

	fprintf(p->out, "<text class=\"title\" x=\"%.1f\" y=\"24\">%s</text>\n", p->left,
		p->cosine ? "1 - cosine of a row, median" : "Squared error, relative");
	for (double x = ceil(p->least_x / step) * step; x <= p->most_x + 1e-9; x += step) {
		fprintf(p->out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n", x_of(p, x),
			x_of(p, x), BOTTOM, TOP);
		fprintf(p->out, "<text class=\"faint\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%g</text>\n",
			x_of(p, x), BOTTOM + 18, x);
	}
	for (int decade = (int)floor(p->least_y); decade <= (int)ceil(p->most_y); decade++)
		for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
			double log = decade + log10(steps[s]);

			if (log < p->least_y || log > p->most_y || (s && p->most_y - p->least_y > 6))
				continue;
			fprintf(p->out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
				p->left, p->left + PANEL, y_of(p, log), y_of(p, log));
			fprintf(p->out,
				"<text class=\"faint\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%ge%d</text>\n",
				p->left - 7, y_of(p, log) + 4, steps[s], decade);
		}
	fprintf(p->out,
		"<text class=\"faint\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">bits a weight, all that is stored"
		"</text>\n",
		p->left + PANEL / 2., BOTTOM + 38);
}

/* ---- ours -------------------------------------------------------------------------------------- */

static void draw_lines(const struct panel *p)
{
	const struct xfp_compared_unit *unit = p->unit;
	unsigned line = 0;

	for (uint32_t i = 0, end; i < unit->count && !unit->list[i].peer; i = end, line++) {
		end = xfp_compared_stretch(unit, i, true);
		for (uint32_t j = i; j < end; j++)
			if (shown(p, &unit->list[j]))
				fprintf(p->out, "<circle class=\"d%u\" cx=\"%.1f\" cy=\"%.1f\" r=\"1.8\"/>\n", line,
					x_of(p, xfp_compared_bits(unit, &unit->list[j])),
					y_of(p, log10(value_of(p, &unit->list[j]))));
		fprintf(p->out, "<polyline class=\"l%u\" points=\"", line);
		for (uint32_t j = i, next; j < end; j = next) {
			const struct xfp_compared *best;

			next = xfp_compared_stretch(unit, j, false);
			best = xfp_compared_best(unit, j, next);
			if (shown(p, best))
				fprintf(p->out, "%.1f,%.1f ", x_of(p, xfp_compared_bits(unit, best)),
					y_of(p, log10(value_of(p, best))));
		}
		fputs("\"/>\n", p->out);
	}
}

static void draw_legend(FILE *out, const struct xfp_compared_unit *unit)
{
	unsigned line = 0;
	double x = 70;

	for (uint32_t i = 0, end; i < unit->count && !unit->list[i].peer; i = end, line++) {
		char mode[32];
		int length = (int)snprintf(NULL, 0, "%s", xfp_compared_mode(&unit->list[i], mode));

		end = xfp_compared_stretch(unit, i, true);
		fprintf(out, "<polyline class=\"l%u\" points=\"%.1f,%d %.1f,%d\"/>\n", line, x, HEIGHT - 26, x + 24,
			HEIGHT - 26);
		fprintf(out, "<text x=\"%.1f\" y=\"%d\">%s</text>\n", x + 31, HEIGHT - 22,
			xfp_compared_mode(&unit->list[i], mode));
		x += 31 + length * LETTER + 28;
	}
	fprintf(out, "<circle class=\"peer\" cx=\"%.1f\" cy=\"%d\" r=\"4\"/>\n", x + 4, HEIGHT - 26);
	fprintf(out, "<text x=\"%.1f\" y=\"%d\">common formats</text>\n", x + 15, HEIGHT - 22);
}

/* ---- peers ------------------------------------------------------------------------------------- */

static bool overlap(const struct box *a, const struct box *b)
{
	return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

static unsigned hidden(const struct panel *p, const struct box *box)
{
	unsigned count = 0;

	for (unsigned i = 0; i < p->taken_count; i++)
		count += overlap(&p->taken[i], box);
	return count + (box->right > p->left + PANEL) + (box->left < p->left);
}

/* Right of the ring, or where else it hides least: above our lines rather than below. */
static struct box place(const struct panel *p, double x, double y, double width)
{
	static const double places[][2] = { { 7, 4 },   { 7, -7 }, { 7, 15 },   { -7, -7 }, { -7, 4 }, { 7, -18 },
					    { -7, 15 }, { 7, 26 }, { -7, -18 }, { 7, -30 }, { -7, 26 } };
	struct box best = { 0 };
	unsigned least = UINT32_MAX;

	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		double left = places[i][0] > 0 ? x + places[i][0] : x + places[i][0] - width, base = y + places[i][1];
		struct box box = { left, base - TEXT_HEIGHT + 2, left + width, base + 2 };
		unsigned count = hidden(p, &box);

		if (count < least) {
			least = count;
			best = box;
		}
	}
	return best;
}

static void draw_peers(struct panel *p)
{
	const struct xfp_compared_unit *unit = p->unit;

	for (uint32_t i = 0; i < unit->count; i++) {
		const struct xfp_compared *c = &unit->list[i];
		double x, y;

		if (!c->peer || !shown(p, c))
			continue;
		x = x_of(p, xfp_compared_bits(unit, c));
		y = y_of(p, log10(value_of(p, c)));
		p->taken[p->taken_count++] = (struct box){ x - 5, y - 5, x + 5, y + 5 };
		fprintf(p->out, "<circle class=\"peer\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", x, y);
	}
	for (uint32_t i = 0; i < unit->count; i++) {
		const struct xfp_compared *c = &unit->list[i];
		struct box box;

		if (!c->peer || !shown(p, c))
			continue;
		box = place(p, x_of(p, xfp_compared_bits(unit, c)), y_of(p, log10(value_of(p, c))),
			    snprintf(NULL, 0, "%s", c->peer->name) * LETTER);
		p->taken[p->taken_count++] = box;
		fprintf(p->out, "<text class=\"name\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", box.left, box.bottom - 2,
			c->peer->name);
	}
}

/* ---- the file ---------------------------------------------------------------------------------- */

/* Colours that tell apart for most eyes, on white and on black. */
static void draw_style(FILE *out)
{
	static const char *const light[LINES] = { "#57606a", "#8250df", "#bf8700", "#1f6feb", "#1a7f37", "#953800" };
	static const char *const dark[LINES] = { "#9aa4b0", "#b48cf2", "#e3b341", "#6cb0ff", "#56d364", "#f0883e" };

	fputs("<style>text { font: 12px system-ui, sans-serif; fill: #24292f; }\n"
	      ".faint { fill: #57606a; font-size: 11px; } .title { font-weight: 600; } .back { fill: #ffffff; }\n"
	      ".name { paint-order: stroke; stroke: #ffffff; stroke-width: 3px; }\n"
	      ".grid { stroke: #e4e7eb; } .peer { fill: none; stroke: #cf222e; stroke-width: 2; }\n"
	      "polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }\n",
	      out);
	for (int i = 0; i < LINES; i++)
		fprintf(out, ".l%d { stroke: %s; } .d%d { fill: %s; }\n", i, light[i], i, light[i]);
	fputs("@media (prefers-color-scheme: dark) {\n"
	      "text { fill: #e6edf3; } .faint { fill: #9aa4b0; } .back { fill: #0d1117; }\n"
	      ".name { stroke: #0d1117; } .grid { stroke: #2a313a; } .peer { stroke: #ff7b72; }\n",
	      out);
	for (int i = 0; i < LINES; i++)
		fprintf(out, ".l%d { stroke: %s; } .d%d { fill: %s; }\n", i, dark[i], i, dark[i]);
	fputs("}</style>\n<rect class=\"back\" width=\"100%\" height=\"100%\"/>\n", out);
}

static void draw(FILE *out, const struct xfp_comparison *comparison)
{
	const struct xfp_compared_unit *all = &comparison->all;

	fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	draw_style(out);
	for (int i = 0; i < 2; i++) {
		struct panel panel = { .out = out, .unit = all, .cosine = i, .left = 66 + i * 560 };

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
	enum xfp_status status = XFP_OK;

	if (out)
		draw(out, comparison);
	if (!xfp_text_end(&text))
		status = xfp_no_memory(err);
	else
		status = xfp_write_file(path, text.bytes, text.size, false, err);
	free(text.bytes);
	return status;
}
