/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "printable.h"

void xfp_inspection_say(const char *kind, const char *text)
{
	fprintf(stderr, "xfp-inspect: %s%s", kind, *kind ? ": " : "");
	for (; *text; text++)
		fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, stderr);
	fputc('\n', stderr);
}

void xfp_inspection_notes(const struct xfp_inspection *inspection)
{
	const struct xfp_notes *notes = &inspection->findings->notes;

	for (uint32_t i = 0; i < inspection->checkpoint->note_count; i++)
		xfp_inspection_say("note", inspection->checkpoint->notes[i]);
	for (uint32_t i = 0; i < notes->count; i++)
		xfp_inspection_say(notes->list[i].warning ? "warning" : "note", notes->list[i].text);
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
	struct role_row *rows = calloc((size_t)ledger->unit_count + 1, sizeof *rows);
	uint32_t count = 0;

	if (!rows)
		return xfp_fail(err, XFP_FAILED, "out of memory");
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
	if (count)
		printf("\n%-17s %-12s %7s %9s %16s\n", "class", "role", "units", "matrices", "weights");
	for (uint32_t r = 0; r < count; r++)
		printf("%-17s %-12s %7" PRIu64 " %9" PRIu64 " %16" PRIu64 "\n", xfp_class_name(rows[r].class_),
		       rows[r].role, rows[r].units, rows[r].matrices, rows[r].weights);
	free(rows);
	return XFP_OK;
}

static void print_details(const struct xfp_inspection *inspection)
{
	const struct xfp_family *family = inspection->family;
	const struct xfp_ledger *ledger = inspection->ledger;

	printf("\n%6s %8s  %s\n", "line", "tensors", "pattern");
	for (uint32_t i = 0; i < family->rule_count; i++)
		printf("%6u %8" PRIu32 "  %s\n", family->rules[i].line, inspection->findings->taken[i],
		       family->rules[i].pattern);
	printf("\n%-8s %-17s %-12s %7s %9s %9s  %s\n", "unit", "class", "role", "experts", "rows", "cols", "name");
	for (uint32_t i = 0; i < ledger->unit_count; i++) {
		const struct xfp_ledger_unit *unit = &ledger->units[i];

		printf("u%06" PRIu32 "  %-17s %-12s %7" PRIu32 " %9" PRIu64 " %9" PRIu64 "  %s\n", i,
		       xfp_class_name(unit->class_), unit->role, unit->experts, unit->rows, unit->cols,
		       xfp_printable(unit->name).text);
	}
}

enum xfp_status xfp_inspection_print(const struct xfp_inspection *inspection, bool verbose, struct xfp_error *err)
{
	const struct xfp_ledger *ledger = inspection->ledger;

	printf("model   %s\n", xfp_printable(ledger->model).text);
	printf("format  %s, %" PRIu32 " file%s\n", ledger->format, ledger->file_count,
	       ledger->file_count == 1 ? "" : "s");
	printf("family  %s, %s\n", xfp_printable(ledger->family).text,
	       inspection->why ? xfp_printable(inspection->why).text : "a guess: no family claims this model");
	print_fates(ledger);
	if (print_roles(ledger, err))
		return XFP_FAILED;
	if (verbose)
		print_details(inspection);
	return XFP_OK;
}

/* ---- for programs ----------------------------------------------------------------------------- */

/* Paths may be no UTF-8, which JSON needs: such bytes become question marks. */
static json_t *text(const char *value)
{
	json_t *json = json_string(value);
	char *copy;

	if (json || !(copy = strdup(value)))
		return json;
	for (char *c = copy; *c; c++)
		if (*c & 0x80)
			*c = '?';
	json = json_string(copy);
	free(copy);
	return json;
}

static json_t *tensor_json(const struct xfp_ledger_tensor *tensor)
{
	json_t *shape = json_array();

	for (uint32_t d = 0; d < tensor->rank; d++)
		json_array_append_new(shape, json_integer((json_int_t)tensor->shape[d]));
	return json_pack("{s:o, s:s, s:o, s:s, s:s, s:o}", "name", text(tensor->name), "fate",
			 xfp_fate_name(tensor->fate), "reason", text(tensor->reason), "class",
			 xfp_class_name(tensor->class_), "dtype", xfp_dtype_name(tensor->dtype), "shape", shape);
}

static json_t *unit_json(const struct xfp_ledger_unit *unit)
{
	return json_pack("{s:o, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I}", "name", text(unit->name), "class",
			 xfp_class_name(unit->class_), "role", unit->role, "plan",
			 unit->plan == XFP_PLAN_FP8 ? "fp8" : "fit", "dtype", xfp_dtype_name(unit->dtype), "rows",
			 (json_int_t)unit->rows, "cols", (json_int_t)unit->cols, "experts", (json_int_t)unit->experts,
			 "weights", (json_int_t)unit_weights(unit));
}

static json_t *note_json(bool warning, const char *value)
{
	return json_pack("{s:b, s:o}", "warning", warning, "text", text(value));
}

enum xfp_status xfp_inspection_json(const struct xfp_inspection *inspection, struct xfp_error *err)
{
	const struct xfp_ledger *ledger = inspection->ledger;
	const struct xfp_notes *notes = &inspection->findings->notes;
	json_t *tensors = json_array(), *units = json_array(), *list = json_array(), *root;
	bool failed = false;

	for (uint32_t i = 0; i < ledger->tensor_count; i++)
		failed |= json_array_append_new(tensors, tensor_json(&ledger->tensors[i])) != 0;
	for (uint32_t i = 0; i < ledger->unit_count; i++)
		failed |= json_array_append_new(units, unit_json(&ledger->units[i])) != 0;
	for (uint32_t i = 0; i < inspection->checkpoint->note_count; i++)
		failed |= json_array_append_new(list, note_json(false, inspection->checkpoint->notes[i])) != 0;
	for (uint32_t i = 0; i < notes->count; i++)
		failed |= json_array_append_new(list, note_json(notes->list[i].warning, notes->list[i].text)) != 0;
	root = json_pack("{s:o, s:o, s:s, s:o, s:o, s:o}", "model", text(ledger->model), "family", text(ledger->family),
			 "format", ledger->format, "tensors", tensors, "units", units, "notes", list);
	if (!root || failed) {
		json_decref(root);
		return xfp_fail(err, XFP_FAILED, "out of memory");
	}
	failed = json_dumpf(root, stdout, JSON_INDENT(1)) || putchar('\n') == EOF;
	json_decref(root);
	return failed ? xfp_fail(err, XFP_FAILED, "standard output: cannot write") : XFP_OK;
}
