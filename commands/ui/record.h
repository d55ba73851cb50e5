/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - print records as a text table and as CSV.
 *
 * A record is a JSON object, which a command makes once (XFP_JSON, schemas/json_print.h). xfp_json_print prints all
 * fields; tables and CSV print those that their columns name. A field may also be inside a member that is an object: a
 * tensor's "sigma" is in its "stats". Numbers in a list are a shape, "4096x1024" or, in tables, "scalar"; texts in a
 * list are joined: "gate, up".
 *
 * Columns are one text, "run,started,packed=repacked,seconds%.1f": the heading, then, each if needed,
 *
 *	=KEY     the field, if the heading is not its key
 *	?        leave the column out of the table if no record has the field
 *	%FORMAT  how to print a number: %.1f and so on, with %% in the format times 100; %B as bytes, "3.5 kB"; in CSV,
 *	         how to print a real number if not with 15 digits, or %q to put a text in quotation marks
 */
#ifndef XFP_RECORD_H
#define XFP_RECORD_H

#include <jansson.h>
#include <stdbool.h>

#include "base/xfp_error.h"

#define XFP_RECORD_COLUMNS 32 /* most columns of a CSV; a table has at most XFP_TABLE_COLUMNS */

struct xfp_record_columns {
	struct xfp_record_column {
		char heading[24], key[24], format[12];
		bool optional;
	} list[XFP_RECORD_COLUMNS];
	unsigned count;
};

/* Print a list of records and release it (NULL: memory ran out). Texts are left-aligned, missing fields and null print
 * as "-". If `text` is not NULL, it is a column for the texts of rows (base/text/table.h); the field "remark", if
 * any, is appended unchanged. */
enum xfp_status xfp_record_table(const char *columns, const char *text, json_t *records, struct xfp_error *err);

/* Parse the columns and print their headings. */
struct xfp_record_columns xfp_csv_header(const char *columns);
/* Print one record and release it; NULL means that memory ran out. Missing fields and null are empty. */
enum xfp_status xfp_csv_row(const struct xfp_record_columns *columns, json_t *record, struct xfp_error *err);

#endif
