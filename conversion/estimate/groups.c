/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/estimate/groups.h"

#include "schemas/layout/bundle_layout.h"
#include "stages/quantize/library_train.h"

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* struct xfp_group_row (group_row.c). */
static uint64_t row_bytes(const struct xfp_grouping *g)
{
	uint64_t values = g->groups * g->group;

	if (g->mode == XFP_MODE_V2A)
		return xfp_scaled_row_bytes(g->cols, g->group, g->fine);
	/* y, code, two marks; largest, square */
	return values * 4 + values + values / 4 + g->groups * (4 + 4);
}

/* struct xfp_group_codes: index, entry; scale, midpoint, codebook */
static uint64_t codes_bytes(const struct xfp_grouping *g)
{
	uint64_t codebook = g->fine ? 64 : 16;

	return g->groups * g->group + g->groups + (g->mode == XFP_MODE_V2A ? g->groups * (4 + 4 * codebook) : 0);
}

/* Whether candidate i is the first with its grouping. */
static bool is_first(const struct xfp_candidate *list, uint32_t i, uint64_t cols, struct xfp_grouping *grouping)
{
	*grouping = xfp_grouping_of(&list[i], cols);
	for (uint32_t j = 0; j < i; j++) {
		struct xfp_grouping other = xfp_grouping_of(&list[j], cols);

		if (xfp_grouping_same(grouping, &other))
			return false;
	}
	return true;
}

uint64_t xfp_groups_thread(const struct xfp_candidate *list, uint32_t count, uint64_t cols)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct xfp_grouping grouping;

		if (is_first(list, i, cols, &grouping))
			bytes += row_bytes(&grouping) + codes_bytes(&grouping);
	}
	return bytes;
}

static uint64_t library_bytes(const struct xfp_candidate *c)
{
	return c->mode == XFP_MODE_V2A ? xfp_scaled_library_bytes(c->k, c->library) : sizeof(struct xfp_compact_book);
}

uint64_t xfp_groups_libraries(const struct xfp_candidate *list, uint32_t count)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += library_bytes(&list[i]) + 2 * xfp_candidate_code(&list[i]) + 4 * xfp_candidate_hints(&list[i]);
	return bytes;
}

/* Bytes of a sample of the unit's groups and of training one candidate. */
static uint64_t sample_bytes(const struct xfp_grouping *grouping, unsigned library, uint64_t rows)
{
	struct xfp_grouping sample = *grouping;
	uint64_t all = rows * grouping->groups, rounding = rows < XFP_SAMPLE_ROWS ? rows : XFP_SAMPLE_ROWS;

	if (grouping->mode == XFP_MODE_V2A)
		return xfp_scaled_sample_bytes(xfp_scaled_sample_count(all, library) + rounding, grouping->fine);
	sample.groups = (all < XFP_SAMPLE_COMPACT ? all : XFP_SAMPLE_COMPACT) + rounding;
	sample.cols = sample.groups * sample.group;
	/* the sample, raw and as codes; weight; the current row */
	return row_bytes(&sample) + codes_bytes(&sample) + 4 * sample.groups + row_bytes(grouping);
}

uint64_t xfp_groups_training(const struct xfp_candidate *list, uint32_t count, const struct xfp_ledger_unit *unit)
{
	uint64_t max = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct xfp_grouping grouping = xfp_grouping_of(&list[i], unit->cols);
		uint64_t sums = list[i].mode == XFP_MODE_V2A ? sizeof(struct xfp_scaled_training)
							     : sizeof(struct xfp_compact_sums);

		max = larger(max, sample_bytes(&grouping, list[i].library, unit->experts * unit->rows) +
					  library_bytes(&list[i]) + sums);
	}
	return max;
}

uint64_t xfp_groups_bytes(const struct xfp_candidate *list, uint32_t count, uint64_t cols, bool narrowed)
{
	if (xfp_fit_keeps_bytes(list, count, cols))
		return xfp_fit_group_bytes(list, count, cols);
	return narrowed ? cols / XFP_FIT_BYTES_SHARE : 0;
}

uint64_t xfp_groups_again(const struct xfp_candidate *list, uint32_t count, uint64_t cols, unsigned threads)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct xfp_grouping grouping;

		if (is_first(list, i, cols, &grouping) && grouping.mode == XFP_MODE_V2C)
			bytes += threads * (row_bytes(&grouping) + grouping.groups * (4 + 1));
	}
	return bytes;
}

uint64_t xfp_groups_packed(const struct xfp_candidate *c, const struct xfp_ledger_unit *unit, uint64_t block)
{
	uint64_t groups = unit->rows * xfp_candidate_groups(c, unit->cols);

	return block * xfp_index_row_bytes(unit->cols, c->k) + groups * (c->mode == XFP_MODE_V2A ? 5 : 1) + unit->rows;
}
