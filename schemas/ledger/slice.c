/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/ledger/slice.h"

#include <stdlib.h>

#include "schemas/h5.h"

void xfp_ledger_slice_free(struct xfp_ledger_slice *slice)
{
	free(slice->range);
	free(slice->at);
	free(slice->data);
	*slice = (struct xfp_ledger_slice){ 0 };
}

static int by_first(const void *a, const void *b)
{
	const struct xfp_range *x = a, *y = b;

	return (x->first > y->first) - (x->first < y->first);
}

/* Sort the ranges and join those less than `gap` elements apart; returns the number of ranges left. */
static size_t join(struct xfp_range *range, size_t count, uint64_t gap)
{
	size_t last = 0;

	if (!count)
		return 0;
	qsort(range, count, sizeof *range, by_first);
	for (size_t i = 1; i < count; i++) {
		uint64_t end = range[last].first + range[last].count, reach = range[i].first + range[i].count;

		if (range[i].first <= end + gap)
			range[last].count = (reach > end ? reach : end) - range[last].first;
		else
			range[++last] = range[i];
	}
	return last + 1;
}

enum xfp_status xfp_slice_read(struct xfp_artifact *a, enum xfp_ledger_table table, uint64_t total,
			       struct xfp_range *wanted, size_t count, struct xfp_ledger_slice *out,
			       struct xfp_error *err)
{
	struct xfp_ledger_slice slice = { .range = wanted, .record = xfp_ledger_record_size(table) };
	const char *name = xfp_ledger_table_name(table);
	enum xfp_status status = XFP_OK;
	hid_t type = xfp_ledger_record_type(table);
	uint64_t elements = 0;

	for (size_t i = 0; i < count; i++)
		if (wanted[i].count > total || wanted[i].first > total - wanted[i].count) {
			status = xfp_h5_damaged(a, err, "reference outside \"%s\"", name);
			goto done;
		}
	slice.ranges = join(wanted, count, 4096 / slice.record);
	for (size_t i = 0; i < slice.ranges; i++)
		elements += wanted[i].count;
	slice.at = calloc(slice.ranges + 1, sizeof *slice.at);
	slice.data = elements < SIZE_MAX / slice.record ? malloc(elements * slice.record + 1) : NULL;
	if (type < 0 || !slice.at || !slice.data) {
		status = xfp_no_memory_for(err, a->path);
		goto done;
	}
	for (size_t i = 0; i < slice.ranges; i++) {
		slice.at[i + 1] = slice.at[i] + wanted[i].count;
		if ((status = xfp_h5_read_range(a, name, type, wanted[i].first, wanted[i].count,
						slice.data + slice.at[i] * slice.record, err)))
			goto done;
	}
	*out = slice;
done:
	if (type >= 0)
		H5Tclose(type);
	if (status)
		xfp_ledger_slice_free(&slice);
	return status;
}

enum xfp_status xfp_slice_range(struct xfp_artifact *a, enum xfp_ledger_table table, uint64_t total, uint64_t first,
				uint64_t count, struct xfp_ledger_slice *out, struct xfp_error *err)
{
	struct xfp_range *range = malloc(sizeof *range);

	if (!range)
		return xfp_no_memory_for(err, a->path);
	*range = (struct xfp_range){ first, count };
	return xfp_slice_read(a, table, total, range, 1, out, err);
}

const void *xfp_ledger_slice_at(const struct xfp_ledger_slice *slice, uint64_t element)
{
	size_t low = 0, high = slice->ranges;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (slice->range[middle].first <= element)
			low = middle;
		else
			high = middle;
	}
	return slice->data + (slice->at[low] + (element - slice->range[low].first)) * slice->record;
}
