/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/table.h"

#include <stdlib.h>
#include <string.h>

char (*xfp_table_row(struct xfp_table *table, const char *name))[XFP_TABLE_CELL]
{
	char(*row)[XFP_TABLE_CELL];

	if (table->rows == table->capacity) {
		unsigned capacity = 2 * table->capacity + 16;
		void *grown = realloc(table->cell, capacity * sizeof *table->cell);

		if (!grown)
			return table->nowhere;
		table->cell = grown;
		table->capacity = capacity;
	}
	row = table->cell[table->rows++];
	memset(row, 0, sizeof *table->cell);
	snprintf(row[0], sizeof row[0], "%s", name);
	return row;
}

/* Row 0 is the headings'. */
static const char *text_of(const struct xfp_table *table, unsigned row, unsigned column)
{
	return row ? table->cell[row - 1][column] : table->column[column].heading;
}

static void print_row(FILE *out, const struct xfp_table *table, unsigned columns, const int *width, unsigned row)
{
	unsigned end = columns;

	while (end && !*text_of(table, row, end - 1))
		end--;
	for (unsigned c = 0; c < end; c++) {
		const struct xfp_table_column *column = &table->column[c];

		fprintf(out, "%*s%*s", column->gap, "", column->left ? -width[c] : width[c], text_of(table, row, c));
	}
	putc('\n', out);
}

void xfp_table_print(FILE *out, struct xfp_table *table)
{
	int width[XFP_TABLE_COLUMNS] = { 0 };
	unsigned columns = 0;

	while (columns < XFP_TABLE_COLUMNS && table->column[columns].heading)
		columns++;
	for (unsigned r = 0; r <= table->rows; r++)
		for (unsigned c = 0; c < columns; c++) {
			int length = (int)strlen(text_of(table, r, c));

			width[c] = length > width[c] ? length : width[c];
		}
	for (unsigned r = 0; r <= table->rows; r++)
		print_row(out, table, columns, width, r);
	free(table->cell);
	table->cell = NULL;
	table->rows = table->capacity = 0;
}
