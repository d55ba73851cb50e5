/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/table.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/screen.h"
#include "base/utf8.h"

#define INDENT 2 /* indentation of figures below their text, and of continuation lines of a text */

static const char dots[] = "...";

char (*xfp_table_row(struct xfp_table *table, const char *name))[XFP_TABLE_CELL]
{
	struct xfp_table_row *row = &table->dummy_row;

	if (table->rows == table->capacity) {
		unsigned capacity = 2 * table->capacity + 16;
		void *grown = realloc(table->row, capacity * sizeof *table->row);

		if (!grown) {
			table->lost++;
			return row->cell;
		}
		table->row = grown;
		table->capacity = capacity;
	}
	row = &table->row[table->rows++];
	memset(row, 0, sizeof *row);
	snprintf(row->cell[0], sizeof row->cell[0], "%s", name);
	return row->cell;
}

void xfp_table_text(struct xfp_table *table, const char *format, ...)
{
	struct xfp_table_row *row = table->rows ? &table->row[table->rows - 1] : NULL;
	va_list arguments;

	if (!row)
		return;
	free(row->text);
	va_start(arguments, format);
	if (vasprintf(&row->text, format, arguments) < 0)
		row->text = NULL;
	va_end(arguments);
}

/* ---- widths ------------------------------------------------------------------------------------ */

static unsigned width_of(const char *text)
{
	unsigned width = 0;

	for (; *text; text++)
		width += !xfp_utf8_continues(*text);
	return width;
}

/* The start of character number `count`, or the end of the text. */
static const char *after(const char *text, unsigned count)
{
	for (; *text; text++)
		if (!xfp_utf8_continues(*text) && !count--)
			break;
	return text;
}

/* Row 0 holds the headings. */
static const char *text_of(const struct xfp_table *table, unsigned row, unsigned column)
{
	return row ? table->row[row - 1].cell[column] : table->column[column].heading;
}

struct shape {
	unsigned line, columns, keys;
	unsigned width[XFP_TABLE_COLUMNS];
	bool apart; /* texts are printed on lines of their own */
};

/* The width of columns [first, end) with their gaps. */
static unsigned span(const struct xfp_table *table, const struct shape *shape, unsigned first, unsigned end)
{
	unsigned width = 0;

	for (unsigned c = first; c < end; c++)
		width += (unsigned)table->column[c].gap + shape->width[c];
	return width;
}

/* Narrow the widest key repeatedly until the keys take at most half of the line. */
static void narrow_keys(const struct xfp_table *table, struct shape *shape)
{
	while (span(table, shape, 0, shape->keys) > shape->line / 2) {
		unsigned widest = 0;

		for (unsigned c = 1; c < shape->keys; c++)
			if (shape->width[c] > shape->width[widest])
				widest = c;
		shape->width[widest]--;
	}
}

static struct shape shape_of(const struct xfp_table *table)
{
	struct shape shape = { .line = table->width ? table->width : xfp_screen_width(),
			       .keys = table->keys ? table->keys : 1 };
	unsigned whole, texts = 0;

	while (shape.columns < XFP_TABLE_COLUMNS && table->column[shape.columns].heading)
		shape.columns++;
	for (unsigned r = 0; r <= table->rows; r++) {
		for (unsigned c = 0; c < shape.columns; c++) {
			unsigned width = width_of(text_of(table, r, c));

			shape.width[c] = width > shape.width[c] ? width : shape.width[c];
		}
		if (r && table->row[r - 1].text && width_of(table->row[r - 1].text) > texts)
			texts = width_of(table->row[r - 1].text);
	}
	whole = span(table, &shape, 0, shape.columns);
	if (table->text && whole + 2 + texts > shape.line) {
		shape.apart = true;
		shape.line -= INDENT;
	}
	if (whole > shape.line)
		narrow_keys(table, &shape);
	return shape;
}

/* ---- printing ---------------------------------------------------------------------------------- */

static void print_blanks(FILE *out, unsigned count)
{
	fprintf(out, "%*s", (int)count, "");
}

/* `begun`: the indentation of the first line is already written. */
static void fold_to(FILE *out, const char *text, unsigned indent, unsigned further, unsigned line, bool begun)
{
	while (*text) {
		const char *end = after(text, line - indent), *blank = end;

		while (*end && blank > text && *blank != ' ')
			blank--;
		while (*end && blank > text && blank[-1] == ' ')
			blank--;
		end = blank > text ? blank : end;
		print_blanks(out, begun ? 0 : indent);
		xfp_screen_put(out, text, (size_t)(end - text));
		putc('\n', out);
		text = end + strspn(end, " ");
		indent = further;
		begun = false;
	}
}

static void fold(FILE *out, const char *text, unsigned indent, unsigned line)
{
	fold_to(out, text, indent, indent + XFP_FOLD_MORE, line, false);
}

void xfp_fold_in(FILE *out, const char *text, unsigned column)
{
	fold_to(out, text, column, column, xfp_screen_width(), true);
}

void xfp_fold(FILE *out, const char *text, unsigned indent)
{
	fold(out, text, indent, xfp_screen_width());
}

static void print_cell(FILE *out, const char *text, unsigned width, bool left, bool last)
{
	unsigned own = width_of(text);

	if (own > width) {
		const char *end = after(text, width > sizeof dots - 1 ? width - (unsigned)(sizeof dots - 1) : 0);

		xfp_screen_put(out, text, (size_t)(end - text));
		fprintf(out, "%.*s", (int)width, dots);
		return;
	}
	if (!left)
		print_blanks(out, width - own);
	xfp_screen_put(out, text, strlen(text));
	if (left && !last)
		print_blanks(out, width - own);
}

/* Print the keys and the columns [first, end) of a row. Trailing blanks are left out. */
static void print_row(FILE *out, const struct xfp_table *table, const struct shape *shape, unsigned first, unsigned end,
		      unsigned row)
{
	const char *text = shape->apart || !table->text ? NULL : row ? table->row[row - 1].text : table->text;
	unsigned c = 0;

	while (!text && end > first && !*text_of(table, row, end - 1))
		end--;
	if (shape->apart)
		print_blanks(out, INDENT);
	while (c < end) {
		unsigned next = c + 1 == shape->keys ? first : c + 1;

		print_blanks(out, (unsigned)table->column[c].gap);
		print_cell(out, text_of(table, row, c), shape->width[c], table->column[c].left, !text && next >= end);
		c = next;
	}
	if (text) {
		fputs("  ", out);
		xfp_screen_put(out, text, strlen(text));
	}
	putc('\n', out);
}

static bool has_text(const struct xfp_table *table, unsigned row, unsigned first, unsigned end)
{
	for (unsigned c = first; c < end; c++)
		if (*text_of(table, row, c))
			return true;
	return false;
}

/* Print the keys and the columns [first, end) of all rows. */
static void print_block(FILE *out, const struct xfp_table *table, const struct shape *shape, unsigned first,
			unsigned end)
{
	for (unsigned r = 0; r <= table->rows; r++) {
		const char *text = r ? table->row[r - 1].text : table->text;

		if (first > shape->keys && !has_text(table, r, first, end))
			continue;
		/* Print a text shared by consecutive rows once. */
		if (shape->apart && text &&
		    (r < 2 || !table->row[r - 2].text || strcmp(text, table->row[r - 2].text) != 0))
			fold(out, text, 0, shape->line + INDENT);
		print_row(out, table, shape, first, end, r);
	}
}

/* The end of the block that begins with `first`: as many columns as fit, up to the last part that fits completely. */
static unsigned end_of_block(const struct xfp_table *table, const struct shape *shape, unsigned first)
{
	unsigned keys = span(table, shape, 0, shape->keys), end = first, part;

	while (end < shape->columns && (end == first || keys + span(table, shape, first, end + 1) <= shape->line))
		end++;
	for (part = end; end < shape->columns && part > first; part--)
		if (table->column[part].part)
			return part;
	return end;
}

void xfp_table_print(FILE *out, struct xfp_table *table)
{
	const struct shape shape = shape_of(table);
	unsigned first = shape.keys, end;

	do {
		end = end_of_block(table, &shape, first);
		if (first > shape.keys)
			putc('\n', out);
		print_block(out, table, &shape, first, end);
		first = end;
	} while (first < shape.columns);
	for (unsigned r = 0; r < table->rows; r++)
		free(table->row[r].text);
	free(table->row);
	table->row = NULL;
	if (table->lost)
		fprintf(out, "%u rows are missing: out of memory\n", table->lost);
	table->rows = table->capacity = table->lost = 0;
}
