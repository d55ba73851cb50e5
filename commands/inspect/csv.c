/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.c - xfp inspect's lists as CSV.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/screen.h"
#include "commands/inspect/report.h"

/* RFC 4180: quotation marks are doubled. On a terminal, control characters are escaped. */
static void print_inside(const char *text)
{
	for (size_t size; *text; text += size) {
		size = *text == '"' ? 1 : strcspn(text, "\"");
		xfp_screen_print(*text == '"' ? "\"\"" : text, *text == '"' ? 2 : size, false);
	}
}

static void print_quoted(const char *text)
{
	putchar('"');
	print_inside(text);
	putchar('"');
}

void xfp_inspection_csv_header(const struct xfp_look *look, const struct xfp_header *header)
{
	puts("file,key,type,value");
	for (uint32_t i = 0; i < header->count; i++) {
		const struct xfp_header_entry *entry = &header->entries[i];
		const char *value = entry->values;

		print_quoted(look->checkpoint->files[entry->file].name);
		putchar(',');
		print_quoted(entry->key);
		printf(",%s,\"", entry->type);
		for (uint64_t v = 0; v < entry->count; v++, value += strlen(value) + 1) {
			fputs(v ? ", " : "", stdout);
			print_inside(value);
		}
		puts("\"");
	}
}

static void print_number(double value)
{
	if (isfinite(value))
		printf(",%.15g", value);
	else
		putchar(',');
}

static void print_moments(const struct xfp_distribution *m)
{
	if (!m->measured) {
		printf(",,,,,,,,,,,");
		return;
	}
	printf(",%" PRIu64 ",%" PRIu64 ",%" PRIu64, m->count, m->nans, m->infinities);
	print_number(m->least);
	print_number(m->most);
	print_number(m->mean);
	print_number(m->sigma);
	print_number(m->kurtosis);
	print_number((double)m->beyond_3 / (double)m->count);
	print_number((double)m->beyond_4 / (double)m->count);
	print_number(m->largest);
}

static void print_line(const struct xfp_list *list, const struct xfp_listed *line)
{
	const struct xfp_look *look = list->look;
	const struct xfp_source_tensor *tensor = &look->checkpoint->tensors[line->first];
	const char *class = xfp_list_class(look, line->first), *fate = xfp_list_fate(look, line->first);
	const char *packed = xfp_source_packed(tensor);

	print_quoted(line->name);
	printf(",%s,%s,", xfp_dtype_name(tensor->dtype), packed ? packed : "");
	for (uint32_t d = 0; d < tensor->rank; d++)
		printf("%s%" PRIu64, d ? "x" : "", tensor->shape[d]);
	printf(",%" PRIu32 ",%" PRIu64 ",%" PRIu64, line->tensors, line->weights, line->stored);
	print_number(line->weights ? xfp_look_bits(line->stored, line->weights) : NAN);
	printf(",%s,", class ? class : "");
	print_quoted(list->roles[line->first]);
	printf(",%s,", fate ? fate : "");
	print_quoted(look->checkpoint->files[tensor->file].name);
	if (list->moments)
		print_moments(&line->moments);
	putchar('\n');
}

static void print_role(const struct xfp_listed_role *role)
{
	struct xfp_distribution moments = xfp_distribution_sum_end(&role->sum);

	printf(",,,,%" PRIu64 ",%" PRIu64 ",,,%s,", role->sum.tensors, role->weights, role->class_);
	print_quoted(role->roles);
	printf(",,");
	print_moments(&moments);
	putchar('\n');
}

void xfp_inspection_csv(const struct xfp_list *list, const struct xfp_listed *lines, uint32_t count,
			const struct xfp_listed_role *roles, uint32_t role_count)
{
	printf("name,dtype,codec,shape,tensors,weights,stored_bytes,bits,class,roles,fate,file%s\n",
	       list->moments ? ",finite,nan,infinite,min,max,mean,sigma,kurtosis,beyond_3_sigma,beyond_4_sigma,"
			       "largest_in_sigma"
			     : "");
	for (uint32_t i = 0; i < count; i++)
		print_line(list, &lines[i]);
	for (uint32_t i = 0; i < role_count; i++)
		print_role(&roles[i]);
}
