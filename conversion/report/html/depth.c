/* SPDX-License-Identifier: Apache-2.0 */
/*
 * depth.c - bits over depth: a heat map with a row per component and a column per layer, the share of the loss below
 * each column, and a table of the components.
 */
#include <math.h>
#include <stdlib.h>

#include "conversion/report/html/html.h"
#include "conversion/report/html/page.h"

#define MAX_ROWS 80 /* more components are in the table only */
#define ROW 22.0
#define TOP 24.0
#define LABELS 190.0
#define LOSS 64.0 /* height of the bars */
#define SHADES 10

struct heat_map {
	const struct xfp_report *report;
	double low, high; /* stored bits */
	double cell;      /* width */
	uint32_t columns, rows;
	bool beyond; /* some units have no layer, and a column of their own */
};

static double x_of(const struct heat_map *map, uint32_t column)
{
	return LABELS + map->cell * column + (map->beyond && column == map->report->layer_count ? 6 : 0);
}

static double width_of(const struct heat_map *map)
{
	return LABELS + map->cell * map->columns + (map->beyond ? 40 : 6);
}

static struct heat_map map_of(const struct xfp_report *report)
{
	struct heat_map map = { .report = report, .low = INFINITY, .high = 0 };

	for (uint32_t u = 0; u < report->info.units; u++) {
		map.low = fmin(map.low, report->units[u].bits);
		map.high = fmax(map.high, report->units[u].bits);
		map.beyond |= report->units[u].column == report->layer_count;
	}
	map.columns = report->layer_count + map.beyond;
	map.rows = report->part_count < MAX_ROWS ? report->part_count : MAX_ROWS;
	map.cell = fmin(44, fmax(9, 700.0 / (map.columns ? map.columns : 1)));
	return map;
}

static int shade_of(const struct heat_map *map, double bits)
{
	if (!(map->high > map->low))
		return SHADES / 2;
	return (int)fmin(SHADES - 1, SHADES * (bits - map->low) / (map->high - map->low));
}

/* ---- drawing ----------------------------------------------------------------------------------- */

static void draw_columns(FILE *out, const struct heat_map *map)
{
	uint32_t step = map->cell >= 24 ? 1 : map->cell >= 14 ? 2 : 5;

	for (uint32_t c = 0; c < map->report->layer_count; c += step)
		xfp_html_label(out, x_of(map, c) + map->cell / 2, TOP - 8, "f m", "%u", map->report->layers[c].number);
	if (map->beyond)
		xfp_html_label(out, x_of(map, map->report->layer_count) + map->cell / 2, TOP - 8, "f m", "other");
}

static void draw_unit(FILE *out, const struct heat_map *map, const struct xfp_report_unit *unit)
{
	double x = x_of(map, unit->column), y = TOP + ROW * unit->part;
	const struct xfp_unit_info *info = &unit->info;

	fprintf(out, "<rect class=\"a o%d%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\"><title>",
		shade_of(map, unit->bits), info->met ? "" : " miss", x + .5, y + .5, map->cell - 1, ROW - 1);
	if (unit->column < map->report->layer_count)
		xfp_html_printf(out, "layer %u, ", unit->layer);
	xfp_html_printf(out, "%s: %s", info->role, info->mode_name);
	if (info->k)
		xfp_html_printf(out, " %u bits", info->k);
	xfp_html_printf(out, ", %.3f per weight, cosine %.6f", unit->bits, unit->median);
	fputs("</title></rect>\n", out);
	if (map->cell >= 30)
		xfp_html_label(out, x + map->cell / 2, y + ROW / 2 + 4, "m", "%.2f", unit->bits);
}

static void draw_loss(FILE *out, const struct heat_map *map)
{
	double top = TOP + ROW * map->rows + 26, largest = 0;
	const struct xfp_report *report = map->report;

	for (uint32_t c = 0; c < report->layer_count; c++)
		largest = fmax(largest, report->layers[c].sum.squared);
	if (!(largest > 0))
		return;
	xfp_html_label(out, 0, top + 12, "", "share of the loss");
	xfp_html_label(out, 0, top + 28, "f", "largest %.1f %%", 100 * largest / report->all.squared);
	fprintf(out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", LABELS,
		x_of(map, report->layer_count), top + LOSS, top + LOSS);
	for (uint32_t c = 0; c < report->layer_count; c++) {
		double height = LOSS * report->layers[c].sum.squared / largest;

		fprintf(out,
			"<rect class=\"a\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>layer %u: "
			"%.1f %%</title></rect>\n",
			x_of(map, c) + 1, top + LOSS - height, map->cell - 2, height, report->layers[c].number,
			100 * report->layers[c].sum.squared / report->all.squared);
	}
}

static void draw_legend(FILE *out, const struct heat_map *map)
{
	double y = TOP + ROW * map->rows + 118;

	xfp_html_label(out, LABELS, y + 11, "f", "%.2f", map->low);
	for (int i = 0; i < SHADES; i++)
		fprintf(out, "<rect class=\"a o%d\" x=\"%.0f\" y=\"%.1f\" width=\"14\" height=\"14\"/>\n", i,
			LABELS + 34 + 14 * i, y);
	xfp_html_label(out, LABELS + 34 + 14 * SHADES + 6, y + 11, "f", "%.2f bits per weight", map->high);
}

static void draw(FILE *out, const struct xfp_report *report)
{
	struct heat_map map = map_of(report);
	char name[XFP_REPORT_PART_NAME];
	char *description = xfp_formatted(
		"A row per component, a column per layer. Stored bits per weight of a unit range from %.2f to "
		"%.2f. The table below has the same figures for each component.",
		map.low, map.high);

	xfp_html_figure(out, "map", fmax(width_of(&map), 520), TOP + ROW * map.rows + 140,
			"Bits per weight by component and layer", description ? description : "");
	draw_columns(out, &map);
	for (uint32_t p = 0; p < map.rows; p++)
		xfp_html_label(out, 0, TOP + ROW * p + ROW / 2 + 4, "", "%.28s",
			       xfp_report_part_name(&report->parts[p], name));
	for (uint32_t u = 0; u < report->info.units; u++)
		if (report->units[u].part < map.rows)
			draw_unit(out, &map, &report->units[u]);
	draw_loss(out, &map);
	draw_legend(out, &map);
	xfp_html_figure_end(out);
	if (map.rows < report->part_count) {
		fputs("<p class=\"none\">", out);
		xfp_html_printf(out, "The map has the first %u of %u components.", map.rows, report->part_count);
		fputs("</p>\n", out);
	}
	free(description);
}

/* ---- table ------------------------------------------------------------------------------------- */

static void write_sum(FILE *out, const struct xfp_report *report, const struct xfp_report_sum *sum)
{
	double weights = (double)sum->weights;

	xfp_html_number(out, "%u", sum->units);
	xfp_html_number(out, "%.1f %%", report->all.weights ? 100 * weights / (double)report->all.weights : 0);
	if (sum->ranges.min_k == sum->ranges.max_k)
		xfp_html_number(out, sum->ranges.max_k ? "%u" : "-", sum->ranges.max_k);
	else
		xfp_html_number(out, "%u-%u", sum->ranges.min_k, sum->ranges.max_k);
	xfp_html_number(out, "%.3f", weights > 0 ? sum->paper / weights : 0);
	xfp_html_number(out, "%.3f", xfp_bits_per_weight(sum->bytes, sum->weights));
	xfp_html_size(out, (double)sum->bytes);
	xfp_html_number(out, "%.3f %%", weights > 0 ? 100 * (double)sum->outliers / weights : 0);
	xfp_html_number(out, "%.3g", xfp_report_error(sum));
	xfp_html_number(out, "%.1f %%", report->all.squared > 0 ? 100 * sum->squared / report->all.squared : 0);
}

static void write_parts(FILE *out, const struct xfp_report *report)
{
	xfp_html_table(
		out, "Bits by component (the paper's table 3)",
		"<class|<role|units|of weights|bits per index|bits as papers count|stored bits|size|stored outliers|"
		"error|share of the loss|<tensors");
	for (uint32_t p = 0; p < report->part_count; p++) {
		const struct xfp_report_part *part = &report->parts[p];

		fputs("<tr>", out);
		xfp_html_word(out, part->class_name);
		xfp_html_word(out, part->role);
		write_sum(out, report, &part->sum);
		xfp_html_name(out, part->pattern);
		fputs("</tr>\n", out);
	}
	fputs("<tr class=\"sum\"><td class=\"w\">all units</td><td></td>", out);
	write_sum(out, report, &report->all);
	fputs("<td></td></tr>\n", out);
	xfp_html_table_end(out);
}

void xfp_page_depth(FILE *out, const struct xfp_report *report)
{
	xfp_html_section(
		out, "depth", "Bits over depth",
		"Stronger colors are more stored bits per weight. Floors and goals differ by class, so compare units "
		"of one class: those with more bits are harder to quantize. An outline marks a unit below its floor.");
	if (report->info.units)
		draw(out, report);
	write_parts(out, report);
	fputs("</section>\n", out);
}
