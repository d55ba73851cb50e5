/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html.h - write HTML that is also well-formed XML: escaped text, tables, figures.
 *
 * Names come from untrusted files. Every text from a file is written by xfp_html_text, or by a function that calls it.
 */
#ifndef XFP_HTML_H
#define XFP_HTML_H

#include <stdio.h>

#include "base/xfp_error.h"

/* Write text: markup is escaped, control characters and bytes that are not UTF-8 become "\xNN". */
void xfp_html_text(FILE *out, const char *text);
/* Write the result of printf as text. */
void xfp_html_printf(FILE *out, const char *format, ...) XFP_PRINTF(2, 3);
/* Write a name or a command in a fixed-width font. */
void xfp_html_code(FILE *out, const char *text);

/* Begin a section with a heading; `lead` is a paragraph that says how to read it. The caller writes "</section>". */
void xfp_html_section(FILE *out, const char *id, const char *heading, const char *lead);

/* Begin a table. `headings` are separated by '|'; '<' before one left-aligns it. `caption` is for readers without
 * eyes on the heading. */
void xfp_html_table(FILE *out, const char *caption, const char *headings);
void xfp_html_table_end(FILE *out);
/* Cells of a row, between "<tr>" and "</tr>": a number, a text, a name. */
void xfp_html_number(FILE *out, const char *format, ...) XFP_PRINTF(2, 3);
void xfp_html_word(FILE *out, const char *text);
void xfp_html_name(FILE *out, const char *text);
/* A number that may be undefined, which is not finite then. `format` is for one double. */
void xfp_html_number_or_dash(FILE *out, const char *format, double value);
/* A number of bytes, as "1.23 MB". */
void xfp_html_size(FILE *out, double bytes);

/* Begin a figure of width x height with its text alternative: a title, and a description. The caller draws SVG, then
 * calls xfp_html_figure_end. `id` is unique in the page. */
void xfp_html_figure(FILE *out, const char *id, double width, double height, const char *title,
		     const char *description);
void xfp_html_figure_end(FILE *out);
/* Text in a figure; `class` is "" or a list of classes of style.c: "m" centers, "e" right-aligns, "f" is faint. */
void xfp_html_label(FILE *out, double x, double y, const char *class, const char *format, ...) XFP_PRINTF(5, 6);

/* The style sheet, with its element. */
void xfp_html_style(FILE *out);

#endif
