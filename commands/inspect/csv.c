/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.c - xfp inspect's lists as CSV.
 */
#include <string.h>

#include "commands/inspect/report.h"
#include "commands/ui/record.h"
#include "schemas/json_print.h"

/* Names of files are printed unchanged, even if they are not UTF-8. */
static void put_file(json_t **record, const struct xfp_inspection *inspection, uint32_t file)
{
	xfp_json_put(record, "file", json_string_nocheck(inspection->checkpoint->files[file].name));
}

enum xfp_status xfp_inspection_csv_header(const struct xfp_inspection *inspection, const struct xfp_header *header,
					  struct xfp_error *err)
{
	const struct xfp_record_columns columns = xfp_csv_header("file%q,key%q,type,value%q");
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < header->count; i++) {
		json_t *record = xfp_record_of_entry(&header->entries[i]);

		put_file(&record, inspection, header->entries[i].file);
		status = xfp_csv_row(&columns, record, err);
	}
	return status;
}

#define TENSORS "name%q,dtype,codec,shape,tensors,weights,stored_bytes,bits,class,roles%q,fate,file%q"
#define MOMENTS "finite,nan,infinite,min,max,mean,sigma,kurtosis,beyond_3_sigma,beyond_4_sigma,largest_in_sigma"

enum xfp_status xfp_inspection_csv(const struct xfp_list *list, const struct xfp_listed *lines, uint32_t count,
				   const struct xfp_listed_role *roles, uint32_t role_count, struct xfp_error *err)
{
	const struct xfp_record_columns columns = xfp_csv_header(list->moments ? TENSORS "," MOMENTS : TENSORS);
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < count; i++) {
		json_t *record = xfp_record_of_tensor(list, &lines[i]);

		xfp_json_put(&record, "tensors", xfp_json_count(lines[i].tensors));
		put_file(&record, list->inspection, list->inspection->checkpoint->tensors[lines[i].first].file);
		status = xfp_csv_row(&columns, record, err);
	}
	for (uint32_t i = 0; !status && i < role_count; i++)
		status = xfp_csv_row(&columns, xfp_record_of_role(&roles[i]), err);
	return status;
}
