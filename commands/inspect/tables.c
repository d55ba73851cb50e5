/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.c - the lists of xfp inspect as text: files with metadata, tensors, distributions.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/size.h"
#include "base/text/table.h"
#include "base/text/text.h"
#include "commands/inspect/report.h"

#define CELL(cell, ...) snprintf(cell, sizeof(cell), __VA_ARGS__)
#define WIDEST_KEY 32 /* keys up to this width are aligned */
#define SHOWN 8       /* entries of a list */

/* ---- files ------------------------------------------------------------------------------------- */

/* Print the first entries of a long list and its length; shorten a long text as messages do. */
static void print_value(const struct xfp_header_entry *entry, unsigned column)
{
	const char *value = entry->values;
	struct xfp_text raw, shown;
	FILE *out = xfp_text_begin(&raw);

	for (uint64_t v = 0; out && v < entry->count && v < SHOWN; v++, value += strlen(value) + 1)
		fprintf(out, "%s%s", v ? ", " : "", value);
	if (!xfp_text_end(&raw))
		return;
	if ((out = xfp_text_begin(&shown)))
		fputs(xfp_printable(raw.bytes).text, out);
	if (out && entry->count > SHOWN)
		fprintf(out, ", ... (%" PRIu64 ")", entry->count);
	if (out && entry->meaning)
		fprintf(out, " (%s)", entry->meaning);
	if (xfp_text_end(&shown)) {
		if (*shown.bytes)
			xfp_fold_in(stdout, shown.bytes, column);
		else
			putchar('\n');
	}
	free(shown.bytes);
	free(raw.bytes);
}

static void print_entries(const struct xfp_header *header, uint32_t file)
{
	int width = 0;

	for (uint32_t i = 0; i < header->count; i++) {
		int length = (int)strlen(xfp_printable(header->entries[i].key).text);

		if (header->entries[i].file == file && length > width && length <= WIDEST_KEY)
			width = length;
	}
	for (uint32_t i = 0; i < header->count; i++) {
		const struct xfp_header_entry *entry = &header->entries[i];

		if (entry->file != file)
			continue;
		if ((int)strlen(xfp_printable(entry->key).text) > width)
			printf("  %s\n  %*s  ", xfp_printable(entry->key).text, width, "");
		else
			printf("  %-*s  ", width, xfp_printable(entry->key).text);
		print_value(entry, (unsigned)width + 4);
	}
}

void xfp_inspection_print_header(const struct xfp_look *look, const struct xfp_header *header)
{
	const struct xfp_checkpoint *c = look->checkpoint;
	char size[32];

	for (uint32_t f = 0; f < c->file_count; f++) {
		uint64_t tensors = 0;

		if (xfp_inspection_is_config(c->files[f].name))
			continue;
		for (uint32_t t = 0; t < c->tensor_count; t++)
			tensors += c->tensors[t].file == f;
		printf("\n%s\n  %s, %" PRIu64 " tensor%s\n", xfp_printable(c->files[f].name).text,
		       xfp_human((double)c->files[f].identity.size, "B", size), tensors, tensors == 1 ? "" : "s");
		print_entries(header, f);
	}
}

/* ---- tensors ----------------------------------------------------------------------------------- */

enum { DTYPE, PACKED, SHAPE, BITS, CLASS, FATE, TENSORS, COLUMNS };

static const struct xfp_table_column tensor_columns[COLUMNS] = {
	[DTYPE] = { "dtype", 1, 0, 0 },     [PACKED] = { "packed", 1, 2, 0 }, [SHAPE] = { "shape", 0, 2, 0 },
	[BITS] = { "bits", 0, 2, 0 },       [CLASS] = { "class", 1, 2, 0 },   [FATE] = { "fate", 1, 2, 0 },
	[TENSORS] = { "tensors", 0, 2, 0 },
};

/* Choose the columns that are not empty for these lines. `at` receives each column's place; hidden columns get a
 * scratch place. */
static void choose_columns(const struct xfp_look *look, const struct xfp_listed *lines, uint32_t count,
			   struct xfp_table_column layout[COLUMNS + 1], unsigned at[COLUMNS])
{
	bool packed = false, stacks = false;
	unsigned used = 0;

	for (uint32_t i = 0; i < count; i++) {
		packed |= xfp_source_packed(&look->checkpoint->tensors[lines[i].first]) != NULL;
		stacks |= lines[i].tensors > 1;
	}
	memset(layout, 0, (COLUMNS + 1) * sizeof *layout);
	for (unsigned c = 0; c < COLUMNS; c++) {
		bool wanted = c == PACKED    ? packed
			      : c == CLASS   ? look->ledger != NULL
			      : c == FATE    ? look->ledger && !look->refused.status
			      : c == TENSORS ? stacks
					     : true;

		at[c] = XFP_TABLE_COLUMNS - 1;
		if (wanted) {
			layout[used] = tensor_columns[c];
			at[c] = used++;
		}
	}
}

static void put_shape(const struct xfp_source_tensor *tensor, char cell[XFP_TABLE_CELL])
{
	size_t used = 0;

	if (!tensor->rank)
		snprintf(cell, XFP_TABLE_CELL, "scalar");
	for (uint32_t d = 0; d < tensor->rank && used < XFP_TABLE_CELL; d++)
		used += (size_t)snprintf(cell + used, XFP_TABLE_CELL - used, "%s%" PRIu64, d ? "x" : "",
					 tensor->shape[d]);
}

static void print_total(const struct xfp_listed *lines, uint32_t count)
{
	uint64_t tensors = 0, weights = 0, stored = 0;
	char a[32], b[32];

	for (uint32_t i = 0; i < count; i++) {
		tensors += lines[i].tensors;
		weights += lines[i].weights;
		stored += lines[i].stored;
	}
	printf("\n%" PRIu64 " tensor%s, %s weights, %s: %.2f bits per weight\n", tensors, tensors == 1 ? "" : "s",
	       xfp_human((double)weights, "", a), xfp_human((double)stored, "B", b), xfp_look_bits(stored, weights));
}

void xfp_inspection_print_tensors(const struct xfp_look *look, const struct xfp_listed *lines, uint32_t count)
{
	struct xfp_table_column layout[COLUMNS + 1];
	struct xfp_table table = { .column = layout, .text = "name" };
	unsigned at[COLUMNS];

	choose_columns(look, lines, count, layout, at);
	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_source_tensor *tensor = &look->checkpoint->tensors[lines[i].first];
		const char *class = xfp_list_class(look, lines[i].first), *fate = xfp_list_fate(look, lines[i].first);
		const char *packed = xfp_source_packed(tensor);
		char(*row)[XFP_TABLE_CELL] = xfp_table_row(&table, "");

		CELL(row[at[PACKED]], "%s", packed ? packed : "-");
		put_shape(tensor, row[at[SHAPE]]);
		if (lines[i].weights)
			CELL(row[at[BITS]], "%.2f", xfp_look_bits(lines[i].stored, lines[i].weights));
		else
			CELL(row[at[BITS]], "-");
		CELL(row[at[CLASS]], "%s", class ? class : "-");
		CELL(row[at[FATE]], "%s", fate ? fate : "-");
		CELL(row[at[TENSORS]], "%" PRIu32, lines[i].tensors);
		CELL(row[at[DTYPE]], "%s", xfp_dtype_name(tensor->dtype));
		xfp_table_text(&table, "%s", xfp_printable(lines[i].name).text);
	}
	putchar('\n');
	xfp_table_print(stdout, &table);
	print_total(lines, count);
}

/* ---- distributions ----------------------------------------------------------------------------- */

static const struct xfp_table_column moment_columns[] = {
	{ "min", 0, 0, 0 },       { "max", 0, 2, 0 },       { "sigma", 0, 2, 0 },   { "kurtosis", 0, 2, 0 },
	{ "> 3 sigma", 0, 2, 0 }, { "> 4 sigma", 0, 2, 0 }, { "largest", 0, 2, 0 }, { NULL, 0, 0, 0 },
};

static void put_number(char cell[XFP_TABLE_CELL], const char *format, double value)
{
	size_t length;

	if (isfinite(value))
		snprintf(cell, XFP_TABLE_CELL, format, value);
	else
		snprintf(cell, XFP_TABLE_CELL, "-");
	length = strlen(cell);
	if (cell[length - 1] == '.') /* after four digits */
		cell[length - 1] = '\0';
}

static void put_moments(char (*row)[XFP_TABLE_CELL], const struct xfp_distribution *m)
{
	double hundred = m->count ? 100 / (double)m->count : NAN;

	put_number(row[0], "%#.4g", m->measured ? m->least : NAN);
	put_number(row[1], "%#.4g", m->measured ? m->most : NAN);
	put_number(row[2], "%#.4g", m->measured ? m->sigma : NAN);
	put_number(row[3], "%.2f", m->measured ? m->kurtosis : NAN);
	put_number(row[4], "%.3f %%", (double)m->beyond_3 * hundred);
	put_number(row[5], "%.3f %%", (double)m->beyond_4 * hundred);
	put_number(row[6], "%.2f", m->measured ? m->largest : NAN);
}

/* ": 3 NaN, 1 infinite left out", if there are any. */
static const char *left_out(const struct xfp_distribution *m, char text[96])
{
	*text = '\0';
	if (m->nans && m->infinities)
		snprintf(text, 96, ": %" PRIu64 " NaN, %" PRIu64 " infinite left out", m->nans, m->infinities);
	else if (m->nans || m->infinities)
		snprintf(text, 96, ": %" PRIu64 " %s left out", m->nans + m->infinities, m->nans ? "NaN" : "infinite");
	return text;
}

void xfp_inspection_print_moments(const struct xfp_look *look, const struct xfp_listed *lines, uint32_t count)
{
	struct xfp_table table = { .column = moment_columns, .text = "name" };
	char text[96];

	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_distribution *m = &lines[i].moments;

		put_moments(xfp_table_row(&table, ""), m);
		if (m->measured)
			xfp_table_text(&table, "%s%s", xfp_printable(lines[i].name).text, left_out(m, text));
		else
			xfp_table_text(&table, "%s: %s", xfp_printable(lines[i].name).text,
				       xfp_dtype_name(look->checkpoint->tensors[lines[i].first].dtype));
	}
	putchar('\n');
	xfp_table_print(stdout, &table);
}

void xfp_inspection_print_roles(const struct xfp_listed_role *roles, uint32_t count)
{
	struct xfp_table table = { .column = moment_columns, .text = "class and role" };
	char weights[32], text[96];

	for (uint32_t i = 0; i < count; i++) {
		struct xfp_distribution m = xfp_distribution_sum_end(&roles[i].sum);

		put_moments(xfp_table_row(&table, ""), &m);
		xfp_table_text(&table, "%s%s%s (%" PRIu64 " tensor%s, %s weights)%s", roles[i].class_,
			       *roles[i].roles ? " " : "", roles[i].roles, roles[i].sum.tensors,
			       roles[i].sum.tensors == 1 ? "" : "s", xfp_human((double)roles[i].weights, "", weights),
			       left_out(&m, text));
	}
	if (!count)
		return;
	putchar('\n');
	xfp_table_print(stdout, &table);
}
