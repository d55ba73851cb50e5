/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/encode/scaled.h"

#include <string.h>

#include "kernels/common/number.h"

/* Divides a buffer into parts aligned to cache lines. Without a buffer, only computes the total size. */
struct parts {
	unsigned char *buffer;
	size_t used;
};

static void *part(struct parts *parts, size_t bytes)
{
	size_t at = parts->used;

	parts->used += (bytes + 63) / 64 * 64;
	return parts->buffer ? parts->buffer + at : NULL;
}

static size_t cells_of(bool fine)
{
	return fine ? 256 : 64;
}

/* ---- a row ---- */

static size_t lay_out_row(struct xfp_scaled_row *row, void *buffer, size_t cols, unsigned length, bool fine)
{
	struct parts parts = { buffer, 0 };
	size_t vectors = xfp_padded(cols) / XFP_LANES;

	row->cols = cols;
	row->groups = (cols + length - 1) / length;
	row->length = length;
	row->fine = fine;
	row->group = part(&parts, row->groups * sizeof *row->group);
	row->x = part(&parts, vectors * XFP_LANES * sizeof *row->x);
	row->keep = part(&parts, vectors * sizeof *row->keep);
	row->upto = part(&parts, row->groups * cells_of(fine) * sizeof *row->upto);
	return parts.used;
}

size_t xfp_scaled_row_bytes(size_t cols, unsigned length, bool fine)
{
	struct xfp_scaled_row row;

	return lay_out_row(&row, NULL, cols, length, fine);
}

void xfp_scaled_row_init(struct xfp_scaled_row *row, void *buffer, size_t cols, unsigned length, bool fine)
{
	lay_out_row(row, buffer, cols, length, fine);
	for (size_t g = 0; g < row->groups; g++) {
		struct xfp_scaled_group *group = &row->group[g];

		memset(group, 0, sizeof *group);
		group->x = row->x + g * length;
		group->keep = row->keep + g * (length / XFP_LANES);
		group->upto = row->upto + g * cells_of(fine);
		group->fine = fine;
	}
}

/* Set the bits of the unmarked among `count` weights, the first of which is column `first`. Returns their number. */
static unsigned keep_unmarked(uint16_t *keep, size_t count, size_t first, const uint32_t *marked, size_t marks)
{
	size_t vectors = xfp_padded(count) / XFP_LANES;

	memset(keep, 0xff, vectors * sizeof *keep);
	if (count % XFP_LANES)
		keep[vectors - 1] = (uint16_t)((1u << count % XFP_LANES) - 1);
	for (size_t i = 0; i < marks; i++) {
		size_t c = marked[i] - first;

		keep[c / XFP_LANES] &= (uint16_t) ~(1u << c % XFP_LANES);
	}
	return (unsigned)(count - marks);
}

/* Return the number of marks below `column`. */
static size_t marks_below(const uint32_t *marked, size_t marks, size_t column)
{
	size_t low = 0;

	while (low < marks) {
		size_t middle = low + (marks - low) / 2;

		if (marked[middle] < column)
			low = middle + 1;
		else
			marks = middle;
	}
	return low;
}

static void load_group(struct xfp_scaled_group *group, const float *x, float *centred, uint16_t *keep, size_t cols,
		       size_t first, unsigned length, const uint32_t *marked, size_t marks)
{
	size_t here = cols - first < length ? cols - first : length;

	group->vectors = (unsigned)(xfp_padded(here) / XFP_LANES);
	group->count = keep_unmarked(keep, here, first, marked, marks);
	xfp_encoder()->scaled->load(group, x + first, keep, centred);
}

void xfp_scaled_row_load(struct xfp_scaled_row *row, const float *x, const uint32_t *marked, size_t marks)
{
	for (size_t g = 0; g < row->groups; g++) {
		size_t first = g * row->length, here = 0;

		while (here < marks && marked[here] < first + row->length)
			here++;
		load_group(&row->group[g], x, row->x + first, row->keep + first / XFP_LANES, row->cols, first,
			   row->length, marked, here);
		marked += here;
		marks -= here;
	}
}

/* ---- a sample ---- */

size_t xfp_scaled_sample_count(size_t groups, unsigned size)
{
	size_t least = size > 32 ? (size_t)16 * size : 512, most = 4096, count = groups / 32;

	count = count > most ? most : count < least ? least : count;
	return count < groups ? count : groups;
}

static size_t lay_out_sample(struct xfp_scaled_sample *sample, void *buffer, size_t count, bool fine)
{
	struct parts parts = { buffer, 0 };

	sample->count = count;
	sample->fine = fine;
	sample->group = part(&parts, count * sizeof *sample->group);
	sample->upto = part(&parts, count * cells_of(fine) * sizeof *sample->upto);
	sample->order = part(&parts, count * sizeof *sample->order);
	sample->key = part(&parts, count * sizeof *sample->key);
	return parts.used;
}

size_t xfp_scaled_sample_bytes(size_t count, bool fine)
{
	struct xfp_scaled_sample sample;

	return lay_out_sample(&sample, NULL, count, fine);
}

void xfp_scaled_sample_init(struct xfp_scaled_sample *sample, void *buffer, size_t count, bool fine)
{
	lay_out_sample(sample, buffer, count, fine);
	for (size_t i = 0; i < count; i++) {
		memset(&sample->group[i], 0, sizeof *sample->group);
		sample->group[i].upto = sample->upto + i * cells_of(fine);
		sample->group[i].fine = fine;
	}
}

void xfp_scaled_sample_set(struct xfp_scaled_sample *sample, size_t number, const float *x, size_t cols, size_t first,
			   unsigned length, const uint32_t *marked, size_t marks)
{
	float centred[XFP_SCALED_MAX_GROUP];
	uint16_t keep[XFP_SCALED_MAX_GROUP / XFP_LANES];
	size_t from = marks_below(marked, marks, first), to = marks_below(marked, marks, first + length);

	load_group(&sample->group[number], x, centred, keep, cols, first, length, marks ? marked + from : NULL,
		   to - from);
}

/* ---- a row with a given library ---- */

uint16_t xfp_scaled_half(double value)
{
	uint16_t half = xfp_double_to_half(value);

	return (half & 0x7c00) == 0x7c00 ? (uint16_t)((half & 0x8000) | 0x7bff) : half;
}

void xfp_scaled_fit_row(const struct xfp_scaled_library *library, const struct xfp_scaled_row *row,
			const struct xfp_scaled_codes *codes)
{
	const struct xfp_scaled_encoder *encoder = xfp_encoder()->scaled;

	for (size_t g = 0; g < row->groups; g++) {
		struct xfp_scaled_fit fit;

		encoder->search(library, &row->group[g], &fit);
		codes->entry[g] = (uint8_t)fit.entry;
		codes->scale[g] = xfp_scaled_half((double)fit.scale);
		codes->midpoint[g] = xfp_scaled_half((double)fit.midpoint);
	}
}

void xfp_scaled_assign_row(const struct xfp_scaled_library *library, const struct xfp_scaled_codes *codes,
			   const float *x, size_t cols, unsigned length, uint8_t *index, float *value)
{
	const struct xfp_scaled_encoder *encoder = xfp_encoder()->scaled;

	for (size_t first = 0, g = 0; first < cols; first += length, g++)
		encoder->assign(library->k, xfp_scaled_entry(library, codes->entry[g]),
				xfp_half_to_float(codes->scale[g]), xfp_half_to_float(codes->midpoint[g]), x + first,
				cols - first < length ? cols - first : length, index ? index + first : NULL,
				value ? value + first : NULL);
	if (value)
		memset(value + cols, 0, (xfp_padded(cols) - cols) * sizeof *value);
}
