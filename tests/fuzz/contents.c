/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contents.c - bytes for the parts of a unit: random, except numbers that refer to something.
 */
#include <string.h>

#include "base/bytes.h"
#include "schemas/layout/classes.h"
#include "tests/fuzz/recipe.h"

/* The first bytes of a part; `size` of them are written. */
struct window {
	uint8_t *bytes;
	uint64_t size;
};

static void put(const struct window *w, uint64_t at, uint64_t value, unsigned width)
{
	if (at < w->size && width <= w->size - at)
		memcpy(w->bytes + at, &value, width);
}

/* Codebook numbers below L. */
static void fill_groups(const struct xfp_idx_unit *unit, const struct xfp_idx_matrix *matrix, const struct window *w)
{
	uint64_t groups = unit->rows * xfp_row_groups(unit->cols, unit->group);

	if (unit->mode != XFP_MODE_V2A)
		return;
	for (uint64_t g = 0; g < groups; g++) {
		uint64_t at = matrix->offset[XFP_PART_GROUP] + 4 * groups + g;

		if (at >= w->size)
			break;
		w->bytes[at] &= (uint8_t)((1u << unit->library) - 1);
	}
}

/* Spread as evenly over the rows as possible. */
static void fill_outliers(const struct xfp_idx_unit *unit, const struct xfp_idx_matrix *matrix, const struct window *w)
{
	uint64_t at = matrix->offset[XFP_PART_OUTLIER], count = matrix->outliers, rows = unit->rows, i = 0;
	uint64_t column = at + xfp_outlier_row_bytes(rows, count);
	unsigned wide = unit->cols > 65536 ? 4 : 2;
	bool listed = xfp_outliers_listed(rows, count);

	if (!count || at + xfp_outlier_bytes(rows, unit->cols, count) > w->size)
		return;
	for (uint64_t r = 0; r < rows; r++) {
		uint64_t end = count * (r + 1) / rows, n = end - i;

		for (uint64_t j = 0; i < end; i++, j++) {
			if (listed)
				put(w, at + 4 * i, r, 4);
			put(w, column + wide * i, (j * unit->cols + r % unit->cols) / n, wide);
		}
		if (!listed) {
			put(w, at, 0, 4);
			put(w, at + 4 * (r + 1), end, 4);
		}
	}
}

void fuzz_fill_part(const struct fuzz_bundle *b, uint32_t number, uint8_t *out, uint64_t size)
{
	const struct xfp_idx_part *part = &b->parts[number];
	struct window w = { out, size };
	uint64_t random = b->seed ^ (uint64_t)number << 32;

	for (uint64_t i = 0; i < size; i += 8)
		put(&w, i, fuzz_random(&random) & 0xbbffbbffbbffbbff, size - i < 8 ? (unsigned)(size - i) : 8);
	if (part->kind >= XFP_PARTS || part->number >= b->count[XFP_TABLE_UNITS])
		return;
	for (uint32_t m = 0; m < b->count[XFP_TABLE_MATRICES]; m++) {
		if (b->matrices[m].unit != part->number)
			continue;
		if (part->kind == XFP_PART_GROUP)
			fill_groups(&b->units[part->number], &b->matrices[m], &w);
		if (part->kind == XFP_PART_OUTLIER)
			fill_outliers(&b->units[part->number], &b->matrices[m], &w);
	}
}
