/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/report/html/html.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/size.h"

/* ---- text -------------------------------------------------------------------------------------- */

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void xfp_html_text(FILE *out, const char *text)
{
	size_t left = strlen(text);

	while (left) {
		const char *escape = entity(*text);
		char character[XFP_ESCAPED];
		size_t used = xfp_escape_character(text, left, character);

		/* U+FFFE and U+FFFF, which XML excludes. */
		if (!strncmp(character, "\xef\xbf\xbe", 3) || !strncmp(character, "\xef\xbf\xbf", 3))
			escape = "\xef\xbf\xbd";
		fputs(escape ? escape : character, out);
		text += used;
		left -= used;
	}
}

static void print_args(FILE *out, const char *format, va_list args) XFP_PRINTF(2, 0);
static void print_args(FILE *out, const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		return; /* the stream fails for the same reason, and its owner checks it */
	xfp_html_text(out, text);
	free(text);
}

void xfp_html_printf(FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_args(out, format, args);
	va_end(args);
}

void xfp_html_code(FILE *out, const char *text)
{
	fputs("<code>", out);
	xfp_html_text(out, text);
	fputs("</code>", out);
}

/* ---- sections ---------------------------------------------------------------------------------- */

void xfp_html_section(FILE *out, const char *id, const char *heading, const char *lead)
{
	fprintf(out, "<section id=\"%s\">\n<h2>", id);
	xfp_html_text(out, heading);
	fputs("</h2>\n<p class=\"lead\">", out);
	xfp_html_text(out, lead);
	fputs("</p>\n", out);
}

/* ---- tables ------------------------------------------------------------------------------------ */

void xfp_html_table(FILE *out, const char *caption, const char *headings)
{
	fputs("<div class=\"scroll\" tabindex=\"0\"><table>\n<caption><span>", out);
	xfp_html_text(out, caption);
	fputs("</span></caption>\n<thead><tr>", out);
	while (*headings) {
		size_t length = strcspn(headings, "|");
		bool left = *headings == '<';

		fputs(left ? "<th scope=\"col\" class=\"w\">" : "<th scope=\"col\">", out);
		xfp_html_printf(out, "%.*s", (int)length - left, headings + left);
		fputs("</th>", out);
		headings += length + (headings[length] == '|');
	}
	fputs("</tr></thead>\n<tbody>\n", out);
}

void xfp_html_table_end(FILE *out)
{
	fputs("</tbody></table></div>\n", out);
}

void xfp_html_number(FILE *out, const char *format, ...)
{
	va_list args;

	fputs("<td>", out);
	va_start(args, format);
	print_args(out, format, args);
	va_end(args);
	fputs("</td>", out);
}

void xfp_html_number_or_dash(FILE *out, const char *format, double value)
{
	char text[64] = "-";

	if (isfinite(value))
		snprintf(text, sizeof text, format, value);
	xfp_html_number(out, "%s", text);
}

void xfp_html_word(FILE *out, const char *text)
{
	fputs("<td class=\"w\">", out);
	xfp_html_text(out, text);
	fputs("</td>", out);
}

void xfp_html_name(FILE *out, const char *text)
{
	fputs("<td class=\"w\">", out);
	xfp_html_code(out, text);
	fputs("</td>", out);
}

void xfp_html_size(FILE *out, double bytes)
{
	char text[32];

	xfp_html_number(out, "%s", xfp_human(bytes, "B", text));
}

/* ---- figures ----------------------------------------------------------------------------------- */

void xfp_html_figure(FILE *out, const char *id, double width, double height, const char *title, const char *description)
{
	fprintf(out,
		"<figure class=\"scroll\" tabindex=\"0\"><svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
		"aria-labelledby=\"%s-t %s-d\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n"
		"<title id=\"%s-t\">",
		id, id, width, height, width, height, id);
	xfp_html_text(out, title);
	fprintf(out, "</title><desc id=\"%s-d\">", id);
	xfp_html_text(out, description);
	fputs("</desc>\n", out);
}

void xfp_html_figure_end(FILE *out)
{
	fputs("</svg></figure>\n", out);
}

void xfp_html_label(FILE *out, double x, double y, const char *class, const char *format, ...)
{
	va_list args;

	fprintf(out, *class ? "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">" : "<text x=\"%.1f\" y=\"%.1f\">", x, y,
		class);
	va_start(args, format);
	print_args(out, format, args);
	va_end(args);
	fputs("</text>\n", out);
}
