/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/plot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/text/size.h"

#define MANY_DECADES 4

/* Whether a file is empty or begins as figures do. */
static enum xfp_status check_file(const char *option, const char *path, struct xfp_error *err)
{
	static const char begin[] = "<svg ";
	char found[sizeof begin - 1];
	enum xfp_status status;
	struct stat st;
	int fd = -1;

	if ((status = xfp_open_regular(path, &fd, &st, err)))
		return xfp_context(err, XFP_USAGE, "%s", option);
	if (st.st_size && (pread(fd, found, sizeof found, 0) != sizeof found || memcmp(found, begin, sizeof found)))
		status = xfp_fail(err, XFP_USAGE, "%s %s: exists, and is not a figure in SVG; remove it first", option,
				  xfp_printable(path).text);
	close(fd);
	return status;
}

enum xfp_status xfp_plot_check(const char *option, const char *path, struct xfp_error *err)
{
	const struct xfp_printable name = xfp_printable(path);
	const char *slash = strrchr(path, '/');
	char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	enum xfp_status status = XFP_OK;

	if (!folder)
		status = xfp_no_memory(err);
	else if (access(folder, W_OK | X_OK))
		status = errno == ENOENT
				 ? xfp_fail(err, XFP_FAILED, "%s %s: its folder does not exist; create it first",
					    option, name.text)
				 : xfp_fail_errno(err, errno, "%s %s: the folder cannot be written", option, name.text);
	else if (!access(path, F_OK))
		status = check_file(option, path, err);
	free(folder);
	return status;
}

double xfp_plot_x(const struct xfp_plot_area *a, double x)
{
	return a->left + (a->right - a->left) * (x - a->min_x) / (a->max_x - a->min_x);
}

double xfp_plot_y(const struct xfp_plot_area *a, double log)
{
	return a->bottom - (a->bottom - a->top) * (log - a->min_y) / (a->max_y - a->min_y);
}

void xfp_plot_x_axis(const struct xfp_plot_area *a, double step, const char *unit, const char *name)
{
	for (double x = ceil(a->min_x / step) * step; x <= a->max_x + 1e-9 * step; x += step) {
		char text[32];

		if (*unit)
			xfp_human(x, unit, text);
		else
			snprintf(text, sizeof text, "%g", x);
		fprintf(a->out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\"/>\n",
			xfp_plot_x(a, x), xfp_plot_x(a, x), a->bottom, a->top);
		fprintf(a->out, "<text class=\"faint\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.0f\">%s</text>\n",
			xfp_plot_x(a, x), a->bottom + 18, text);
	}
	fprintf(a->out, "<text class=\"faint\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.0f\">%s</text>\n",
		(a->left + a->right) / 2, a->bottom + 38, name);
}

void xfp_plot_y_axis(const struct xfp_plot_area *a)
{
	static const int steps[] = { 1, 2, 5 };

	for (int decade = (int)floor(a->min_y); decade <= (int)ceil(a->max_y); decade++)
		for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
			const double log = decade + log10(steps[s]), y = xfp_plot_y(a, log);

			if (log < a->min_y || log > a->max_y || (s && a->max_y - a->min_y > MANY_DECADES))
				continue;
			fprintf(a->out, "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
				a->left, a->right, y, y);
			fprintf(a->out, "<text class=\"faint\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%g</text>\n",
				a->left - 7, y + 4, steps[s] * pow(10, decade));
		}
}

void xfp_plot_text(FILE *out, const char *text)
{
	for (; *text; text++)
		if (strchr("<>&", *text))
			fputs(*text == '<' ? "&lt;" : *text == '>' ? "&gt;" : "&amp;", out);
		else
			fputc(*text, out);
}
