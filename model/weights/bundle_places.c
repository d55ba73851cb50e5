/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the rows of a tensor in a bundle.
 */
#include <stdlib.h>

#include "base/bytes.h"
#include "model/weights/bundle_source.h"

static int compare_places(const void *a, const void *b)
{
	const struct xfp_bundle_place *p = a, *q = b;

	if (p->tensor != q->tensor)
		return p->tensor < q->tensor ? -1 : 1;
	return p->base < q->base ? -1 : p->base > q->base;
}

void xfp_bundle_places(const struct xfp_bundle *bundle, uint32_t matrices, struct xfp_bundle_place *places)
{
	for (uint32_t m = 0; m < matrices; m++) {
		struct xfp_matrix_info info;

		if (xfp_bundle_matrix(bundle, m, &info))
			places[m] = (struct xfp_bundle_place){ info.tensor, m, info.base };
	}
	qsort(places, matrices, sizeof *places, compare_places);
}

uint32_t xfp_bundle_first_place(const struct xfp_bundle_source *s, uint32_t tensor)
{
	uint32_t low = 0, high = s->info.matrices;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->places[middle].tensor < tensor)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool xfp_bundle_source_find(const struct xfp_bundle_source *s, const char *name, uint32_t *number,
			    struct xfp_tensor_info *info)
{
	*number = xfp_bundle_find_tensor(s->bundle, name);
	return xfp_bundle_tensor(s->bundle, *number, info);
}

bool xfp_view_is_within(uint64_t elements, const struct xfp_view *view)
{
	uint64_t down, right, last;

	return view->rows && view->cols && xfp_mul(view->rows - 1, view->row_stride, &down) &&
	       xfp_mul(view->cols - 1, view->col_stride, &right) && xfp_add(down, right, &last) &&
	       xfp_add(last, view->base, &last) && last < elements;
}

/* Rows of the view from `row` on that are in the matrix of that place. */
static bool part_in(const struct xfp_bundle_source *s, uint32_t number, const struct xfp_view *view, uint64_t row,
		    struct xfp_bundle_part *part)
{
	struct xfp_matrix_info info;
	uint64_t before;

	if (!xfp_bundle_matrix(s->bundle, number, &info) || !info.row_stride || info.cols != view->cols ||
	    info.row_stride != view->row_stride || info.col_stride != view->col_stride)
		return false;
	before = view->base + row * view->row_stride - info.base;
	if (before % info.row_stride || before / info.row_stride >= info.rows)
		return false;
	*part = (struct xfp_bundle_part){ number, before / info.row_stride, info.rows - before / info.row_stride };
	if (part->count > view->rows - row)
		part->count = view->rows - row;
	return true;
}

/* A bundle may store one tensor as several matrices, with interleaved rows or one after the other. So the place is
 * usually at most a few before the first one after the row. */
bool xfp_bundle_find_part(const struct xfp_bundle_source *s, uint32_t tensor, const struct xfp_view *view, uint64_t row,
			  struct xfp_bundle_part *part)
{
	uint64_t base = view->base + row * view->row_stride;
	uint32_t low = 0, high = s->info.matrices;

	while (low < high) {
		const struct xfp_bundle_place *p = &s->places[low + (high - low) / 2];

		if (p->tensor < tensor || (p->tensor == tensor && p->base <= base))
			low += (high - low) / 2 + 1;
		else
			high = low + (high - low) / 2;
	}
	while (low && s->places[low - 1].tensor == tensor) {
		if (part_in(s, s->places[--low].matrix, view, row, part))
			return true;
	}
	return false;
}
