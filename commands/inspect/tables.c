/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.c - the lists of xfp inspect as text: files with metadata, tensors, distributions.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/size.h"
#include "base/text/table.h"
#include "base/text/text.h"
#include "commands/inspect/report.h"
#include "commands/ui/record.h"
#include "schemas/json_print.h"

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

void xfp_inspection_print_header(const struct xfp_inspection *inspection, const struct xfp_header *header)
{
	const struct xfp_checkpoint *c = inspection->checkpoint;
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
	       xfp_human((double)weights, "", a), xfp_human((double)stored, "B", b),
	       xfp_inspection_bits(stored, weights));
}

enum xfp_status xfp_inspection_print_tensors(const struct xfp_list *list, const struct xfp_listed *lines,
					     uint32_t count, struct xfp_error *err)
{
	json_t *records = json_array();
	enum xfp_status status;
	bool stacks = false;

	for (uint32_t i = 0; i < count; i++)
		stacks |= lines[i].tensors > 1;
	for (uint32_t i = 0; i < count; i++) {
		json_t *record = xfp_record_of_tensor(list, &lines[i]);

		if (stacks)
			xfp_json_put(&record, "tensors", xfp_json_count(lines[i].tensors));
		xfp_json_add(&records, record);
	}
	putchar('\n');
	if (!(status = xfp_record_table("dtype,packed=codec?,shape,bits%.2f,class?,fate?,tensors?", "name", records,
					err)))
		print_total(lines, count);
	return status;
}

/* ---- distributions ----------------------------------------------------------------------------- */

#define MOMENTS                                                                                                      \
	"min%#.4g,max%#.4g,sigma%#.4g,kurtosis%.2f,> 3 sigma=beyond_3_sigma%.3f %%,> 4 sigma=beyond_4_sigma%.3f %%," \
	"largest=largest_in_sigma%.2f"

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

enum xfp_status xfp_inspection_print_moments(const struct xfp_inspection *inspection, const struct xfp_listed *lines,
					     uint32_t count, struct xfp_error *err)
{
	json_t *records = json_array();
	char text[96];

	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_distribution *m = &lines[i].moments;

		left_out(m, text);
		if (!m->measured)
			snprintf(text, sizeof text, ": %s",
				 xfp_dtype_name(inspection->checkpoint->tensors[lines[i].first].dtype));
		xfp_json_add(&records,
			     XFP_JSON({ "name", xfp_json_text(lines[i].name) }, { "remark", json_string(text) },
				      { "stats", m->measured ? xfp_record_of_moments(m) : json_null() }));
	}
	putchar('\n');
	return xfp_record_table(MOMENTS, "name", records, err);
}

enum xfp_status xfp_inspection_print_roles(const struct xfp_listed_role *roles, uint32_t count, struct xfp_error *err)
{
	json_t *records;
	char weights[32], text[96];

	if (!count)
		return XFP_OK;
	records = json_array();
	for (uint32_t i = 0; i < count; i++) {
		struct xfp_distribution m = xfp_distribution_sum_end(&roles[i].sum);
		uint64_t tensors = roles[i].sum.tensors;
		char *remark = xfp_formatted("%s%s (%" PRIu64 " tensor%s, %s weights)%s", *roles[i].roles ? " " : "",
					     roles[i].roles, tensors, tensors == 1 ? "" : "s",
					     xfp_human((double)roles[i].weights, "", weights), left_out(&m, text));
		json_t *record = xfp_record_of_role(&roles[i]);

		xfp_json_put(&record, "remark", remark ? xfp_json_text(remark) : NULL);
		xfp_json_add(&records, record);
		free(remark);
	}
	putchar('\n');
	return xfp_record_table(MOMENTS, "class and role=class", records, err);
}
