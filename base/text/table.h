/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - print a table of text cells: columns are as wide as their contents, and no line is wider than the screen.
 *
 * A narrow screen hides nothing. Columns that do not fit follow in a second block, with the keys of its rows before
 * them; a long text, such as a unit's name, gets lines of its own above its row.
 */
#ifndef XFP_TABLE_H
#define XFP_TABLE_H

#include <stdio.h>

#include "base/xfp_error.h"

#define XFP_TABLE_COLUMNS 14
#define XFP_TABLE_CELL 48

struct xfp_table_column {
	const char *heading;
	int left; /* left-aligned (words); otherwise right-aligned (numbers) */
	int gap;  /* blanks before the column: headings of two words need two */
	int part; /* prefer to break a table that is too wide before this column */
};

struct xfp_table_row {
	char cell[XFP_TABLE_COLUMNS][XFP_TABLE_CELL];
	char *text; /* NULL: none */
};

/* Empty if zeroed apart from `column` and any of the next three members. */
struct xfp_table {
	const struct xfp_table_column *column; /* ends at the first column without a heading */
	unsigned keys;    /* number of leading columns that identify a row; 0 means 1. Long keys are cut to half a
			   * line */
	const char *text; /* heading of the texts; NULL: no texts */
	unsigned width;   /* width of a line; 0: that of the screen */
	struct xfp_table_row *row;
	unsigned rows, capacity;
	struct xfp_table_row dummy_row; /* stands in for a row that could not be allocated */
	unsigned lost;                  /* number of such rows */
};

/* Add a row whose first cell is `name`, cut to fit; the other cells are empty. If memory runs out, the row is not
 * shown, and the table ends with a note about it. */
char (*xfp_table_row(struct xfp_table *table, const char *name))[XFP_TABLE_CELL];
/* Set the text of the last row. If memory runs out, the row has no text. */
void xfp_table_text(struct xfp_table *table, const char *format, ...) XFP_PRINTF(2, 3);
/* Print the headings and the rows, then free the rows. */
void xfp_table_print(FILE *out, struct xfp_table *table);

/* Print a text wrapped to the screen, broken at blanks if possible. Every line is indented, all but the first by
 * XFP_FOLD_MORE more. */
#define XFP_FOLD_MORE 4
void xfp_fold(FILE *out, const char *text, unsigned indent);
/* Like xfp_fold, but the caller has already written up to `column`, and further lines are indented to it. */
void xfp_fold_in(FILE *out, const char *text, unsigned column);

#endif
