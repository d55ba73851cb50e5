/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/inspect/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/output.h"
#include "base/text/size.h"
#include "base/text/suffix.h"
#include "base/text/table.h"
#include "base/text/text.h"
#include "commands/ui/record.h"
#include "schemas/json_print.h"
#include "stages/inspect/name_groups.h"
#include "stages/work/work.h"

#define LEFT_OUT_SHOWN 12
#define CELL(cell, ...) snprintf(cell, sizeof(cell), __VA_ARGS__)

/* The verdict comes last, even if both streams are the same file. */
void xfp_inspection_message(const char *program, const char *kind, const char *text)
{
	xfp_output_flush();
	fprintf(stderr, "%s: %s%s", program, kind, *kind ? ": " : "");
	for (size_t left = strlen(text), taken; left; text += taken, left -= taken) {
		char piece[XFP_ESCAPED];

		taken = xfp_escape_character(text, left, piece);
		fputs(piece, stderr);
	}
	fputc('\n', stderr);
}

/* "attention q, k, v", "norm". */
static void print_meaning(FILE *to, enum xfp_class class, const struct xfp_rule *rule)
{
	fputs(xfp_class_name(class), to);
	for (uint32_t i = 0; rule && i < rule->part_count; i++)
		fprintf(to, "%s %s", i ? "," : "", rule->parts[i].role);
}

static void print_each_guess(const char *program, const struct xfp_inspection *inspection,
			     const struct xfp_name_groups *groups)
{
	for (uint32_t i = 0; i < groups->count; i++) {
		const struct xfp_name_group *group = &groups->list[i];

		fprintf(stderr, "%s: guess: %s (%" PRIu64 " tensor%s): ", program, xfp_printable(group->names).text,
			group->tensors, group->tensors == 1 ? "" : "s");
		print_meaning(stderr, group->class_, group->rule);
		fprintf(stderr, ", %s", xfp_fate_name(group->fate));
		if (group->rule)
			fprintf(stderr, " (%s.family:%u)\n", xfp_printable(inspection->family.family->name).text,
				group->rule->line);
		else
			fputs(" (no rule)\n", stderr);
	}
}

/* "guess: 24 tensors are attention, 3 norm; no rule knows 2". Names are listed only with -v. */
static void print_guesses(const char *program, const struct xfp_name_groups *groups)
{
	uint64_t of_class[XFP_CLASSES] = { 0 }, unknown = 0;
	const char *before = "";

	for (uint32_t i = 0; i < groups->count; i++)
		*(groups->list[i].rule ? &of_class[groups->list[i].class_] : &unknown) += groups->list[i].tensors;
	fprintf(stderr, "%s: guess: ", program);
	for (int i = 0; i < XFP_CLASSES; i++)
		if (of_class[i]) {
			fprintf(stderr, "%s%" PRIu64 " %s", before, of_class[i], xfp_class_name((enum xfp_class)i));
			before = ", ";
		}
	if (unknown)
		fprintf(stderr, "%s%" PRIu64 " that no rule knows", before, unknown);
	fputs(" (tensors; xfp inspect -v names them)\n", stderr);
}

/* Print how tensors were classified, for review: the rules have never been tried on this model. */
static enum xfp_status print_guess(const char *program, const struct xfp_inspection *inspection, bool verbose,
				   struct xfp_error *err)
{
	struct xfp_name_groups groups;
	enum xfp_status status = xfp_name_groups_make(inspection->ledger, inspection->findings.rules, &groups, err);

	if (status)
		return status;
	if (verbose)
		print_each_guess(program, inspection, &groups);
	else
		print_guesses(program, &groups);
	xfp_name_groups_free(&groups);
	return XFP_OK;
}

/* On one line: a multimodal model leaves out hundreds of tensors. */
static void print_left_out(const char *program, const struct xfp_checkpoint *c)
{
	struct xfp_text text;
	FILE *out = c->left_out_count ? xfp_text_begin(&text) : NULL;
	uint32_t shown = c->left_out_count > LEFT_OUT_SHOWN ? LEFT_OUT_SHOWN - 1 : c->left_out_count;

	if (!out)
		return;
	fputs(XFP_NOT_CARRIED, out);
	for (uint32_t i = 0; i < shown; i++)
		fprintf(out, "%s%s", i ? ", " : "", xfp_printable(c->left_out[i]).text);
	if (shown < c->left_out_count)
		fprintf(out, " and %" PRIu32 " more, which xfp inspect --json names", c->left_out_count - shown);
	if (xfp_text_end(&text))
		xfp_inspection_message(program, "note", text.bytes);
	free(text.bytes);
}

enum xfp_status xfp_inspection_notes(const char *program, const struct xfp_inspection *inspection,
				     enum xfp_inspection_detail detail, struct xfp_error *err)
{
	const struct xfp_notes *notes = &inspection->findings.notes;

	for (uint32_t i = 0; i < inspection->checkpoint->note_count; i++)
		xfp_inspection_message(program, "note", inspection->checkpoint->notes[i]);
	if (detail != XFP_DETAIL_WARNINGS)
		print_left_out(program, inspection->checkpoint);
	/* Findings about a conversion do not matter if it would be refused. */
	if (!inspection->ledger || inspection->refused.status)
		return XFP_OK;
	/* If nothing can be quantized, that is the message to show; rules without a match would hide it. */
	for (uint32_t i = 0; i < notes->count; i++)
		if (notes->list[i].warning ||
		    (detail != XFP_DETAIL_WARNINGS &&
		     (!notes->list[i].idle || detail == XFP_DETAIL_ALL || inspection->ledger->unit_count)))
			xfp_inspection_message(program, notes->list[i].warning ? "warning" : "note",
					       notes->list[i].text);
	return inspection->family.why ? XFP_OK : print_guess(program, inspection, detail == XFP_DETAIL_ALL, err);
}

/* print_meaning as a string; NULL if out of memory. */
static char *meaning_of(enum xfp_class class, const struct xfp_rule *rule)
{
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);

	if (out)
		print_meaning(out, class, rule);
	return xfp_text_end(&text) ? text.bytes : NULL;
}

static uint64_t unit_weights(const struct xfp_ledger_unit *unit)
{
	return unit->rows * unit->cols * unit->experts;
}

static uint64_t tensor_weights(const struct xfp_ledger_tensor *tensor)
{
	return tensor->bytes * 8 / xfp_dtype_bits(tensor->dtype);
}

/* ---- for people ------------------------------------------------------------------------------- */

struct fate_row {
	uint64_t tensors, weights, bytes;
};

static void print_fates(const struct xfp_ledger *ledger)
{
	struct fate_row rows[XFP_FATES] = { { 0 } };
	uint64_t stored;

	for (uint32_t i = 0; i < ledger->tensor_count; i++) {
		struct fate_row *row = &rows[ledger->tensors[i].fate];

		row->tensors++;
		row->weights += tensor_weights(&ledger->tensors[i]);
		row->bytes += ledger->tensors[i].bytes;
	}
	printf("\n%-10s %9s %16s %16s\n", "fate", "tensors", "weights", "bytes");
	for (int fate = 0; fate < XFP_FATES; fate++)
		printf("%-10s %9" PRIu64 " %16" PRIu64 " %16" PRIu64 "\n", xfp_fate_name((enum xfp_fate)fate),
		       rows[fate].tensors, rows[fate].weights, rows[fate].bytes);
	stored = rows[XFP_FATE_QUANTIZED].weights + rows[XFP_FATE_KEPT].weights;
	printf("\n%.2f %% of the weights are in units\n",
	       stored ? 100.0 * (double)rows[XFP_FATE_QUANTIZED].weights / (double)stored : 0.0);
}

struct role_row {
	enum xfp_class class_;
	const char *role;
	uint64_t units, matrices, weights;
	uint32_t order;
};

static int by_class(const void *a, const void *b)
{
	const struct role_row *x = a, *y = b;

	if (x->class_ != y->class_)
		return x->class_ < y->class_ ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static enum xfp_status print_roles(const struct xfp_ledger *ledger, struct xfp_error *err)
{
	static const struct xfp_table_column layout[] = { { "class", 1, 0, 0 },   { "role", 1, 2, 0 },
							  { "units", 0, 2, 0 },   { "matrices", 0, 2, 0 },
							  { "weights", 0, 2, 0 }, { NULL, 0, 0, 0 } };
	struct role_row *rows = calloc((size_t)ledger->unit_count + 1, sizeof *rows);
	struct xfp_table table = { .column = layout, .keys = 2 };
	uint32_t count = 0;

	if (!rows)
		return xfp_no_memory(err);
	for (uint32_t i = 0; i < ledger->unit_count; i++) {
		const struct xfp_ledger_unit *unit = &ledger->units[i];
		uint32_t r = 0;

		while (r < count && (rows[r].class_ != unit->class_ || strcmp(rows[r].role, unit->role)))
			r++;
		if (r == count)
			rows[count++] = (struct role_row){ .class_ = unit->class_, .role = unit->role, .order = r };
		rows[r].units++;
		rows[r].matrices += unit->experts;
		rows[r].weights += unit_weights(unit);
	}
	qsort(rows, count, sizeof *rows, by_class);
	for (uint32_t r = 0; r < count; r++) {
		char(*row)[XFP_TABLE_CELL] = xfp_table_row(&table, xfp_class_name(rows[r].class_));

		CELL(row[1], "%s", rows[r].role);
		CELL(row[2], "%" PRIu64, rows[r].units);
		CELL(row[3], "%" PRIu64, rows[r].matrices);
		CELL(row[4], "%" PRIu64, rows[r].weights);
	}
	if (count) {
		putchar('\n');
		xfp_table_print(stdout, &table);
	}
	free(rows);
	return XFP_OK;
}

static enum xfp_status print_names(const struct xfp_inspection *inspection, struct xfp_error *err)
{
	static const struct xfp_table_column layout[] = {
		{ "tensors", 0, 0, 0 }, { "fate", 1, 1, 0 }, { "line", 0, 1, 0 }, { NULL, 0, 0, 0 }
	};
	struct xfp_table table = { .column = layout, .text = "names: class and role" };
	struct xfp_name_groups groups;
	enum xfp_status status = xfp_name_groups_make(inspection->ledger, inspection->findings.rules, &groups, err);

	if (status)
		return status;
	for (uint32_t i = 0; i < groups.count; i++) {
		const struct xfp_name_group *group = &groups.list[i];
		char(*row)[XFP_TABLE_CELL] = xfp_table_row(&table, "");
		char *meaning = meaning_of(group->class_, group->rule);

		CELL(row[0], "%" PRIu64, group->tensors);
		CELL(row[1], "%s", xfp_fate_name(group->fate));
		CELL(row[2], "-");
		if (group->rule)
			CELL(row[2], "%u", group->rule->line);
		xfp_table_text(&table, "%s: %s", xfp_printable(group->names).text, meaning ? meaning : "?");
		free(meaning);
	}
	putchar('\n');
	xfp_table_print(stdout, &table);
	xfp_name_groups_free(&groups);
	return XFP_OK;
}

const char *xfp_rule_action_name(enum xfp_rule_action action)
{
	return action == XFP_RULE_QUANTIZE ? "quantize" : action == XFP_RULE_KEEP ? "keep" : "drop";
}

static void print_rules(const struct xfp_inspection *inspection)
{
	static const struct xfp_table_column layout[] = { { "line", 0, 0, 0 },
							  { "tensors", 0, 1, 0 },
							  { NULL, 0, 0, 0 } };
	const struct xfp_family *family = inspection->family.family;
	struct xfp_table table = { .column = layout, .text = "rule" };

	for (uint32_t i = 0; i < family->rule_count; i++) {
		const struct xfp_rule *rule = &family->rules[i];
		char(*row)[XFP_TABLE_CELL] = xfp_table_row(&table, "");
		char *meaning = meaning_of(rule->class_, rule);

		CELL(row[0], "%u", rule->line);
		CELL(row[1], "%" PRIu32, inspection->findings.taken[i]);
		xfp_table_text(&table, "%s%s %s  %s", rule->optional ? "optional " : "",
			       xfp_rule_action_name(rule->action), meaning ? meaning : "?", rule->pattern);
		free(meaning);
	}
	putchar('\n');
	xfp_table_print(stdout, &table);
}

static enum xfp_status print_units(const struct xfp_ledger *ledger, struct xfp_error *err)
{
	json_t *records = json_array();
	char number[16];

	for (uint32_t i = 0; i < ledger->unit_count; i++) {
		json_t *record = xfp_record_of_unit(&ledger->units[i]);

		xfp_unit_format(i, number);
		xfp_json_put(&record, "unit", json_string(number));
		xfp_json_add(&records, record);
	}
	putchar('\n');
	return xfp_record_table("unit,class,role,experts,rows,cols", "name", records, err);
}

struct packed_form {
	const char *name;
	uint64_t stored;
};

static int by_share(const void *a, const void *b)
{
	const struct packed_form *x = a, *y = b;

	return x->stored != y->stored ? (x->stored < y->stored) - (x->stored > y->stored) : strcmp(x->name, y->name);
}

/* "Q4_K (70 %), Q6_K (30 %)": a GGUF's types by their shares of the packed weights; "fp8" if there is one format. */
static void print_forms(FILE *out, const struct xfp_checkpoint *c)
{
	struct packed_form forms[64];
	uint32_t count = 0;
	uint64_t all = 0;

	for (uint32_t i = 0; c->arranged && i < c->tensor_count; i++) {
		const char *name = xfp_source_packed(&c->tensors[i]);
		uint32_t f = 0;

		if (!name)
			continue;
		while (f < count && forms[f].name != name)
			f++;
		if (f == sizeof forms / sizeof *forms)
			continue;
		if (f == count)
			forms[count++] = (struct packed_form){ .name = name };
		forms[f].stored += xfp_source_stored_bytes(&c->tensors[i]);
		all += xfp_source_stored_bytes(&c->tensors[i]);
	}
	if (count < 2 || !all) {
		fprintf(out, "as %s", c->packed);
		return;
	}
	qsort(forms, count, sizeof *forms, by_share);
	for (uint32_t f = 0; f < count; f++)
		fprintf(out, "%s%s (%.0f %%)", f ? ", " : "as ", forms[f].name,
			100 * (double)forms[f].stored / (double)all);
}

/* Print the size of packed weights, since other sizes here are of unpacked ones. */
static void print_format(const struct xfp_checkpoint *c)
{
	uint64_t stored = 0, bytes = 0;
	uint32_t files = 0;
	struct xfp_text text;
	char a[32], b[32];
	FILE *out;

	for (uint32_t i = 0; i < c->file_count; i++)
		files += !xfp_inspection_is_config(c->files[i].name);
	for (uint32_t i = 0; i < c->tensor_count; i++) {
		stored += xfp_source_stored_bytes(&c->tensors[i]);
		bytes += c->tensors[i].bytes;
	}
	printf("format  %s, %" PRIu32 " file%s\n", c->format, files, files == 1 ? "" : "s");
	if (!c->packed || !(out = xfp_text_begin(&text)))
		return;
	print_forms(out, c);
	fprintf(out, ": %s, which are %s when they are unpacked", xfp_human((double)stored, "B", a),
		xfp_human((double)bytes, "B", b));
	if (xfp_text_end(&text)) {
		fputs("packed  ", stdout);
		xfp_fold_in(stdout, text.bytes, 8);
	}
	free(text.bytes);
}

bool xfp_inspection_is_config(const char *name)
{
	return xfp_stem(name, ".json");
}

/* The file, if it is the whole model: its folder may have others. */
static const char *only_file(const struct xfp_checkpoint *c)
{
	const char *path = NULL;

	for (uint32_t i = 0; !c->is_folder && i < c->file_count; i++) {
		if (xfp_inspection_is_config(c->files[i].name))
			continue;
		if (path)
			return NULL;
		path = c->files[i].path;
	}
	return path;
}

void xfp_inspection_title(const struct xfp_inspection *inspection)
{
	const struct xfp_family_choice *family = &inspection->family;
	const char *file = only_file(inspection->checkpoint);

	printf("model   %s\n", xfp_printable(file ? file : inspection->checkpoint->folder).text);
	print_format(inspection->checkpoint);
	if (family->family)
		printf("family  %s, %s\n", xfp_printable(family->family->name).text,
		       family->why ? xfp_printable(family->why).text : "a guess: no family claims this model");
}

/* The dtypes of a model that a conversion would refuse. */
static void print_dtypes(const struct xfp_checkpoint *c)
{
	struct fate_row rows[XFP_DTYPES] = { { 0 } };

	for (uint32_t i = 0; i < c->tensor_count; i++) {
		struct fate_row *row = &rows[c->tensors[i].dtype];

		row->tensors++;
		row->weights += xfp_inspection_weights(&c->tensors[i]);
		row->bytes += c->tensors[i].bytes;
	}
	printf("\n%-11s %8s %16s %16s\n", "dtype", "tensors", "elements", "bytes");
	for (int d = 0; d < XFP_DTYPES; d++)
		if (rows[d].tensors)
			printf("%-11s %8" PRIu64 " %16" PRIu64 " %16" PRIu64 "\n", xfp_dtype_name((enum xfp_dtype)d),
			       rows[d].tensors, rows[d].weights, rows[d].bytes);
}

enum xfp_status xfp_inspection_print(const struct xfp_inspection *inspection, bool verbose, struct xfp_error *err)
{
	const struct xfp_ledger *ledger = inspection->ledger;

	xfp_inspection_title(inspection);
	if (inspection->family.path)
		printf("rules   %s\n", xfp_printable(inspection->family.path).text);
	if (!ledger || inspection->refused.status) {
		print_dtypes(inspection->checkpoint);
		return XFP_OK;
	}
	print_fates(ledger);
	if (print_roles(ledger, err))
		return XFP_FAILED;
	if (!verbose)
		return XFP_OK;
	if (print_names(inspection, err))
		return XFP_FAILED;
	print_rules(inspection);
	return print_units(ledger, err);
}
