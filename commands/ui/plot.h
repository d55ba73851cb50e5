/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot.h - figures in SVG: where to write them, and the axes of an area whose vertical axis is logarithmic.
 */
#ifndef XFP_PLOT_H
#define XFP_PLOT_H

#include <stdio.h>

#include "base/xfp_error.h"

/* Check that a figure can be written, before hours of work: its folder exists and is writable, and an existing file is
 * empty or SVG, so that no other file is replaced. */
enum xfp_status xfp_plot_check(const char *option, const char *path, struct xfp_error *err);

struct xfp_plot_area {
	FILE *out;
	double left, right, top, bottom;
	double min_x, max_x, min_y, max_y; /* y as log10 */
};
double xfp_plot_x(const struct xfp_plot_area *area, double x);
double xfp_plot_y(const struct xfp_plot_area *area, double log);

/* Grid lines and labels at multiples of `step`: numbers, or sizes if `unit` is "B"; and the name of the axis. */
void xfp_plot_x_axis(const struct xfp_plot_area *area, double step, const char *unit, const char *name);
/* Grid lines and labels of decades, and if these are few at 2 and 5, too. */
void xfp_plot_y_axis(const struct xfp_plot_area *area);
/* Text with the characters of markup escaped. */
void xfp_plot_text(FILE *out, const char *text);

#endif
