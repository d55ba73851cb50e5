/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/group_row.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/memory.h"
#include "kernels/common/decode.h"
#include "kernels/encode/encode.h"
#include "kernels/encode/scaled_published.h"

/* ---- rows -------------------------------------------------------------------------------------- */

struct xfp_grouping xfp_grouping_of(const struct xfp_candidate *candidate, uint64_t cols)
{
	return (struct xfp_grouping){ .mode = (enum xfp_mode)candidate->mode,
				      .group = candidate->group,
				      .fine = candidate->mode == XFP_MODE_V2A && xfp_scaled_fine(candidate->k),
				      .cols = cols,
				      .groups = xfp_candidate_groups(candidate, cols) };
}

bool xfp_grouping_same(const struct xfp_grouping *a, const struct xfp_grouping *b)
{
	return a->mode == b->mode && a->group == b->group && a->fine == b->fine;
}

bool xfp_group_row_init(struct xfp_group_row *row, const struct xfp_grouping *grouping)
{
	uint64_t groups = grouping->groups, values = groups * grouping->group;

	*row = (struct xfp_group_row){ .grouping = *grouping };
	if (grouping->mode == XFP_MODE_V2A) {
		row->buffer = xfp_aligned_new(xfp_scaled_row_bytes(grouping->cols, grouping->group, grouping->fine));
		if (row->buffer)
			xfp_scaled_row_init(&row->scaled, row->buffer, grouping->cols, grouping->group, grouping->fine);
		return row->buffer;
	}
	row->compact = (struct xfp_compact_groups){ .group = grouping->group,
						    .y = xfp_aligned_new(values * sizeof(float)),
						    .mark = xfp_aligned_new(values / 8),
						    .code = xfp_aligned_new(values),
						    .largest = xfp_aligned_new(groups * sizeof(float)),
						    .square = xfp_aligned_new(groups * sizeof(float)) };
	row->mark = xfp_aligned_new(values / 8);
	return row->compact.y && row->compact.mark && row->compact.code && row->compact.largest &&
	       row->compact.square && row->mark;
}

void xfp_group_row_free(struct xfp_group_row *row)
{
	free(row->buffer);
	free(row->mark);
	free(row->compact.y);
	free(row->compact.mark);
	free(row->compact.code);
	free(row->compact.largest);
	free(row->compact.square);
}

uint8_t xfp_group_row_byte(const float *x, uint64_t cols, uint64_t marks)
{
	return xfp_compact_row_byte(cols > marks ? xfp_encoder()->rows->norm(x, cols) / (double)(cols - marks) : 0);
}

void xfp_group_row_load(struct xfp_group_row *row, const float *x, const uint32_t *marked, uint64_t marks)
{
	const struct xfp_encoder *encoder = xfp_encoder();
	uint64_t cols = row->grouping.cols;

	row->x = x;
	row->marked = marked;
	row->marks = marks;
	if (row->grouping.mode == XFP_MODE_V2A) {
		xfp_scaled_row_load(&row->scaled, x, marked, marks);
		return;
	}
	for (uint64_t i = 0; i < marks; i++)
		row->mark[marked[i] / 16] |= (uint16_t)(1u << marked[i] % 16);
	row->row = xfp_group_row_byte(x, cols, marks);
	encoder->compact->load(&row->compact, 0, x, marks ? row->mark : NULL, cols, xfp_compact_row(row->row));
	for (uint64_t i = 0; i < marks; i++)
		row->mark[marked[i] / 16] = 0;
}

/* ---- libraries --------------------------------------------------------------------------------- */

unsigned xfp_library_published(const struct xfp_parameters *parameters)
{
	return parameters->libfit == XFP_LIBFIT_PUBLISHED ? parameters->lloyd_iterations : 0;
}

bool xfp_library_init(struct xfp_group_library *library, const struct xfp_candidate *candidate, unsigned published)
{
	*library = (struct xfp_group_library){ .candidate = candidate, .published = published };
	library->entries = xfp_aligned_new(((size_t)candidate->library << candidate->k) * sizeof(float));
	if (!library->entries)
		return false;
	if (candidate->mode == XFP_MODE_V2A)
		library->scaled = xfp_aligned_new(xfp_scaled_library_bytes(candidate->k, candidate->library));
	else
		library->compact = xfp_aligned_new(sizeof *library->compact);
	return library->scaled || library->compact;
}

void xfp_library_free(struct xfp_group_library *library)
{
	free(library->scaled);
	free(library->compact);
	free(library->entries);
}

bool xfp_library_code_init(struct xfp_library_code *code, const struct xfp_candidate *candidate)
{
	code->code = calloc(xfp_candidate_code(candidate), sizeof *code->code);
	code->hints = calloc(xfp_candidate_hints(candidate) + 1, sizeof *code->hints);
	return code->code && code->hints;
}

void xfp_library_code_free(struct xfp_library_code *code)
{
	free(code->code);
	free(code->hints);
}

void xfp_library_open(struct xfp_group_library *library, const struct xfp_library_code *stored)
{
	const struct xfp_candidate *c = library->candidate;

	if (c->mode == XFP_MODE_V2C) {
		xfp_compact_open(library->compact, c->k, c->group, c->library, stored->code);
		return;
	}
	xfp_decode_halves(stored->code, (size_t)c->library << c->k, library->entries);
	/* A hint is a struct of two floats. */
	xfp_scaled_open(library->scaled, c->k, c->library, stored->code,
			(const struct xfp_scaled_moments *)(const void *)stored->hints);
}

/* ---- codes ------------------------------------------------------------------------------------- */

bool xfp_group_codes_init(struct xfp_group_codes *codes, const struct xfp_grouping *grouping)
{
	bool scaled = grouping->mode == XFP_MODE_V2A;

	*codes = (struct xfp_group_codes){ .entry = xfp_aligned_new(grouping->groups),
					   .index = xfp_aligned_new(xfp_padded(grouping->groups * grouping->group)) };
	if (scaled) {
		codes->scale = xfp_aligned_new(grouping->groups * sizeof *codes->scale);
		codes->midpoint = xfp_aligned_new(grouping->groups * sizeof *codes->midpoint);
		codes->codebook =
			xfp_aligned_new((grouping->groups << (grouping->fine ? 6 : 4)) * sizeof *codes->codebook);
	}
	return codes->entry && codes->index && (!scaled || (codes->scale && codes->midpoint && codes->codebook));
}

void xfp_group_codes_free(struct xfp_group_codes *codes)
{
	free(codes->entry);
	free(codes->index);
	free(codes->scale);
	free(codes->midpoint);
	free(codes->codebook);
}

/* The published recipe: fit a group by itself, then find the nearest library entry to its codebook. */
static void publish(const struct xfp_group_library *library, const struct xfp_group_row *row,
		    struct xfp_group_codes *codes)
{
	const struct xfp_grouping *grouping = &row->grouping;
	unsigned k = library->candidate->k;

	xfp_scaled_published_row(k, library->published, row->x, grouping->cols, grouping->group, row->marked,
				 row->marks, codes->codebook, codes->scale, codes->midpoint);
	xfp_scaled_published_choose(k, library->candidate->library, library->entries, codes->codebook, grouping->groups,
				    codes->entry);
}

void xfp_group_encode(const struct xfp_group_library *library, const struct xfp_group_row *row,
		      struct xfp_group_codes *codes, float *value)
{
	const struct xfp_grouping *grouping = &row->grouping;
	const struct xfp_scaled_codes scaled = { codes->entry, codes->scale, codes->midpoint };

	if (grouping->mode == XFP_MODE_V2C) {
		xfp_encoder()->compact->assign(library->compact, &row->compact, 0, grouping->groups, codes->entry,
					       codes->index, NULL);
		return;
	}
	if (library->published)
		publish(library, row, codes);
	else
		xfp_scaled_fit_row(library->scaled, &row->scaled, &scaled);
	xfp_scaled_assign_row(library->scaled, &scaled, row->x, grouping->cols, grouping->group, codes->index, value);
}
