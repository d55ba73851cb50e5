/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fates.c - the ledger of a bundle: what became of each tensor, and why. A thousand layers are one line.
 */
#include <stdlib.h>
#include <string.h>

#include "conversion/report/report.h"
#include "stages/inspect/notes.h"

static int compare(const struct xfp_report_fate *x, const struct xfp_report_fate *y)
{
	int order = (x->fate_number > y->fate_number) - (x->fate_number < y->fate_number);

	if (!order)
		order = (x->class_ > y->class_) - (x->class_ < y->class_);
	if (!order)
		order = strcmp(x->pattern, y->pattern);
	if (!order)
		order = strcmp(x->reason, y->reason);
	return order ? order : strcmp(x->dtype, y->dtype);
}

static int in_order(const void *a, const void *b)
{
	return compare(a, b);
}

/* Merge equal neighbors. */
static void merge(struct xfp_report *report)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < report->fate_count; i++) {
		struct xfp_report_fate *fate = &report->fates[i], *last = kept ? &report->fates[kept - 1] : NULL;

		if (last && !compare(last, fate)) {
			last->tensors++;
			last->elements += fate->elements;
			last->bytes += fate->bytes;
			free(fate->pattern);
		} else {
			report->fates[kept++] = *fate;
		}
	}
	report->fate_count = kept;
}

enum xfp_status xfp_report_gather_fates(struct xfp_report *report, struct xfp_error *err)
{
	struct xfp_tensor_info tensor;

	report->fates = calloc(report->info.tensors + (size_t)1, sizeof *report->fates);
	if (!report->fates)
		return xfp_no_memory(err);
	for (uint32_t t = 0; xfp_bundle_tensor(report->bundle, t, &tensor); t++) {
		struct xfp_report_fate *fate = &report->fates[t];

		*fate = (struct xfp_report_fate){ .pattern = strdup(tensor.name),
						  .fate = tensor.fate_name,
						  .reason = tensor.reason,
						  .class_name = tensor.class_name,
						  .dtype = tensor.dtype_name,
						  .fate_number = tensor.fate,
						  .class_ = tensor.class_,
						  .tensors = 1,
						  .elements = tensor.elements,
						  .bytes = tensor.data ? tensor.bytes : 0 };
		if (!fate->pattern)
			return xfp_no_memory(err);
		xfp_star_numbers(fate->pattern);
		report->fate_count++;
	}
	qsort(report->fates, report->fate_count, sizeof *report->fates, in_order);
	merge(report);
	return XFP_OK;
}
