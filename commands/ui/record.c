/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/ui/record.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/screen.h"
#include "base/text/size.h"
#include "base/text/table.h"

static struct xfp_record_columns parse(const char *text)
{
	struct xfp_record_columns columns = { .count = 0 };

	for (int used = 0; *text; text += *text == ',') {
		struct xfp_record_column *c = &columns.list[columns.count++];
		bool named;

		assert(columns.count <= XFP_RECORD_COLUMNS);
		named = sscanf(text, "%23[^=?%,]%n", c->heading, &used) == 1;
		assert(named);
		text += used;
		strcpy(c->key, c->heading);
		if (sscanf(text, "=%23[^?%,]%n", c->key, &used) == 1)
			text += used;
		c->optional = *text == '?';
		text += c->optional;
		if (*text == '%' && sscanf(text, "%11[^,]%n", c->format, &used) == 1)
			text += used;
		assert(!*text || *text == ',');
	}
	return columns;
}

/* NULL: missing or null. */
static const json_t *field(json_t *record, const char *key)
{
	json_t *value = json_object_get(record, key), *member;
	const char *name;

	if (!value)
		json_object_foreach (record, name, member)
			if ((value = json_object_get(member, key)))
				break;
	return json_is_null(value) ? NULL : value;
}

static const char *number_text(const json_t *value, const char *format, bool csv, char text[XFP_TABLE_CELL])
{
	double number = json_number_value(value);
	char bytes[32];

	if (json_is_integer(value) && (csv || !*format))
		snprintf(text, XFP_TABLE_CELL, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (!strcmp(format, "%B"))
		snprintf(text, XFP_TABLE_CELL, "%s%s", number < 0 ? "-" : "", xfp_human(fabs(number), "B", bytes));
	else
		snprintf(text, XFP_TABLE_CELL, *format ? format : "%.15g",
			 strstr(format, "%%") ? 100 * number : number);
	return text;
}

static const char *separator(const json_t *list, size_t place)
{
	return !place ? "" : json_is_string(json_array_get(list, place)) ? ", " : "x";
}

/* ---- tables ------------------------------------------------------------------------------------ */

static void add_text(char cell[XFP_TABLE_CELL], const char *text)
{
	size_t used = strlen(cell);

	snprintf(cell + used, XFP_TABLE_CELL - used, "%s", text);
}

static void add_value(char cell[XFP_TABLE_CELL], const json_t *value, const char *format)
{
	char text[XFP_TABLE_CELL];

	if (json_is_string(value))
		add_text(cell, xfp_printable(json_string_value(value)).text);
	else if (json_is_number(value))
		add_text(cell, number_text(value, format, false, text));
	for (size_t i = 0; i < json_array_size(value); i++) {
		add_text(cell, separator(value, i));
		add_value(cell, json_array_get(value, i), format);
	}
}

static void put_cell(const json_t *value, const char *format, char cell[XFP_TABLE_CELL])
{
	size_t length;

	add_value(cell, value, format);
	length = strlen(cell);
	if (!length)
		strcpy(cell, json_is_array(value) ? "scalar" : "-");
	else if (json_is_number(value) && cell[length - 1] == '.') /* "%#.4g" of four digits */
		cell[length - 1] = '\0';
}

/* The columns to show, and their layout. */
static struct xfp_record_columns lay_out(const char *text, const json_t *records, struct xfp_table_column *layout)
{
	struct xfp_record_columns all = parse(text), shown = { .count = 0 };

	for (unsigned c = 0; c < all.count && shown.count < XFP_TABLE_COLUMNS; c++) {
		const json_t *value = NULL;

		for (size_t i = 0; i < json_array_size(records) && !value; i++)
			value = field(json_array_get(records, i), all.list[c].key);
		if (!value && all.list[c].optional)
			continue;
		shown.list[shown.count] = all.list[c];
		layout[shown.count].left = json_is_string(value);
		layout[shown.count++].gap = c ? 2 : 0;
	}
	return shown;
}

enum xfp_status xfp_record_table(const char *columns, const char *text, json_t *records, struct xfp_error *err)
{
	struct xfp_table_column layout[XFP_TABLE_COLUMNS + 1] = { { 0 } };
	const struct xfp_record_columns shown = lay_out(columns, records, layout), of_text = parse(text ? text : "");
	struct xfp_table table = { .column = layout, .text = text ? of_text.list->heading : NULL };

	if (!records)
		return xfp_no_memory(err);
	for (unsigned c = 0; c < shown.count; c++)
		layout[c].heading = shown.list[c].heading;
	for (size_t i = 0; i < json_array_size(records); i++) {
		json_t *record = json_array_get(records, i);
		char(*row)[XFP_TABLE_CELL] = xfp_table_row(&table, "");
		const char *name = json_string_value(field(record, of_text.list->key));
		const char *remark = json_string_value(field(record, "remark"));

		for (unsigned c = 0; c < shown.count; c++)
			put_cell(field(record, shown.list[c].key), shown.list[c].format, row[c]);
		if (text)
			xfp_table_text(&table, "%s%s", name ? xfp_printable(name).text : "-", remark ? remark : "");
	}
	json_decref(records);
	xfp_table_print(stdout, &table);
	return XFP_OK;
}

/* ---- CSV --------------------------------------------------------------------------------------- */

/* RFC 4180: quotation marks are doubled. On a terminal, control characters are escaped. */
static void print_text(const char *text)
{
	for (size_t size; *text; text += size) {
		size = *text == '"' ? 1 : strcspn(text, "\"");
		xfp_screen_print(*text == '"' ? "\"\"" : text, *text == '"' ? 2 : size, false);
	}
}

static void print_value(const json_t *value, const char *format)
{
	char text[XFP_TABLE_CELL];

	if (json_is_string(value))
		print_text(json_string_value(value));
	else if (json_is_number(value))
		fputs(number_text(value, format, true, text), stdout);
	for (size_t i = 0; i < json_array_size(value); i++) {
		fputs(separator(value, i), stdout);
		print_value(json_array_get(value, i), format);
	}
}

struct xfp_record_columns xfp_csv_header(const char *columns)
{
	struct xfp_record_columns parsed = parse(columns);

	for (unsigned c = 0; c < parsed.count; c++)
		printf("%s%s", c ? "," : "", parsed.list[c].heading);
	putchar('\n');
	return parsed;
}

enum xfp_status xfp_csv_row(const struct xfp_record_columns *columns, json_t *record, struct xfp_error *err)
{
	if (!record)
		return xfp_no_memory(err);
	for (unsigned c = 0; c < columns->count; c++) {
		const struct xfp_record_column *column = &columns->list[c];
		const json_t *value = field(record, column->key);
		const char *quote = value && !strcmp(column->format, "%q") ? "\"" : "";

		fputs(c ? "," : "", stdout);
		fputs(quote, stdout);
		print_value(value, column->format);
		fputs(quote, stdout);
	}
	putchar('\n');
	json_decref(record);
	return XFP_OK;
}
