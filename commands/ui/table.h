/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - a table for people: cells of text, columns as wide as what is in them.
 */
#ifndef XFP_TABLE_H
#define XFP_TABLE_H

#include <stdio.h>

#define XFP_TABLE_COLUMNS 12
#define XFP_TABLE_CELL 48

struct xfp_table_column {
	const char *heading;
	int left; /* words to the left, numbers to the right */
	int gap;  /* blanks before it: headings of two words need two */
};

/* Zeroed but for `column` it is empty. */
struct xfp_table {
	const struct xfp_table_column *column; /* up to the first without a heading */
	char (*cell)[XFP_TABLE_COLUMNS][XFP_TABLE_CELL];
	unsigned rows, capacity;
	char nowhere[XFP_TABLE_COLUMNS][XFP_TABLE_CELL]; /* a row that there is no memory for */
};

/* A new row whose first cell is `name`, cut to fit; the others are empty. Without memory the row is not shown. */
char (*xfp_table_row(struct xfp_table *table, const char *name))[XFP_TABLE_CELL];
/* Headings, then rows. Frees the rows. */
void xfp_table_print(FILE *out, struct xfp_table *table);

#endif
