/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - a table for people: cells of text, columns as wide as what is in them, and no line wider than the screen.
 *
 * Nothing is left out where it is narrow. Columns that do not fit follow in a second block, with the keys of its rows
 * before them; a text of any length, a unit's name say, gets lines of its own above its row.
 */
#ifndef XFP_TABLE_H
#define XFP_TABLE_H

#include <stdio.h>

#include "base/xfp_error.h"

#define XFP_TABLE_COLUMNS 14
#define XFP_TABLE_CELL 48

struct xfp_table_column {
	const char *heading;
	int left; /* words to the left, numbers to the right */
	int gap;  /* blanks before it: headings of two words need two */
	int part; /* a table that is too wide is rather broken before this one than further on */
};

struct xfp_table_row {
	char cell[XFP_TABLE_COLUMNS][XFP_TABLE_CELL];
	char *text; /* NULL: none */
};

/* Zeroed but for `column`, and what else of the first four is wanted, it is empty. */
struct xfp_table {
	const struct xfp_table_column *column; /* up to the first without a heading */
	unsigned keys;    /* how many of the first columns tell rows apart; 0 is 1. Long ones are cut to half a line */
	const char *text; /* heading of the texts; NULL: there are none */
	unsigned width;   /* of a line; 0: the screen's */
	struct xfp_table_row *row;
	unsigned rows, capacity;
	struct xfp_table_row nowhere; /* a row that there is no memory for, */
	unsigned lost;                /* and how many there were */
};

/* A new row whose first cell is `name`, cut to fit; the others are empty. Without memory the row is not shown, and the
 * table ends by saying so. */
char (*xfp_table_row(struct xfp_table *table, const char *name))[XFP_TABLE_CELL];
/* The text of the last row. Without memory it has none. */
void xfp_table_text(struct xfp_table *table, const char *format, ...) XFP_PRINTF(2, 3);
/* Headings, then rows. Frees the rows. */
void xfp_table_print(FILE *out, struct xfp_table *table);

/* A text in as many lines of the screen as it takes, broken at blanks where there are any. Each is indented, all but
 * the first by XFP_FOLD_MORE more. */
#define XFP_FOLD_MORE 4
void xfp_fold(FILE *out, const char *text, unsigned indent);
/* The same of a text that begins where the caller has written up to `column`: what is left of it begins there, too. */
void xfp_fold_in(FILE *out, const char *text, unsigned column);

#endif
