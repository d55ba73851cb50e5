/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feedback.c - batches of rows, group by group: sums over the columns of other groups, as products of matrices, then
 * the columns of the group.
 */
#include "kernels/feedback/feedback.h"

#include <string.h>

#include "kernels/common/number.h"
#include "kernels/feedback/feedback_set.h"

#define LANES ((size_t)XFP_LANES)
#define STEPS ((size_t)128) /* columns of a slab */
#define PASSED 4            /* tiles that a pass computes in turns */

const struct xfp_feedback_set *xfp_feedback_set(void)
{
	const struct xfp_encoder *encoder = xfp_encoder();

#ifdef XFP_X86
	if (encoder == &xfp_encoder_avx512)
		return &xfp_feedback_avx512;
	if (encoder == &xfp_encoder_avx2)
		return &xfp_feedback_avx2;
#endif
#ifdef XFP_AARCH64
	if (encoder == &xfp_encoder_neon)
		return &xfp_feedback_neon;
#endif
	(void)encoder;
	return &xfp_feedback_plain;
}

float xfp_feedback_marked(float target, float q, float row, float inverse, uint16_t *residual)
{
	const double max = 65504;
	const float value = q * row;
	double rest = (double)(target * row) - value;

	rest = rest < -max ? -max : rest > max ? max : rest;
	*residual = xfp_double_to_half(rest);
	return (value + xfp_half_to_float(*residual)) * inverse;
}

/* ---- memory ------------------------------------------------------------------------------------------------ */

/* Return the next `bytes` of a buffer, and add them to `used`. Without a buffer, only count. */
static void *part(uint8_t *buffer, size_t *used, size_t bytes)
{
	void *own = buffer ? buffer + *used : NULL;

	*used += (bytes + 63) / 64 * 64;
	return own;
}

static size_t lay_out(struct xfp_feedback_batch *b, const struct xfp_feedback *f, uint8_t *buffer, size_t rows)
{
	const size_t tiles = (rows + LANES - 1) / LANES, values = tiles * f->padded * LANES, size = f->group;
	size_t used = 0;

	b->feedback = f;
	b->rows = rows;
	b->tiles = tiles;
	b->y = part(buffer, &used, values * sizeof *b->y);
	b->error = part(buffer, &used, values * sizeof *b->error);
	b->target = part(buffer, &used, values * sizeof *b->target);
	b->index = part(buffer, &used, values);
	b->byte = part(buffer, &used, values / size);
	b->mark = part(buffer, &used, values / LANES * sizeof *b->mark);
	b->row = part(buffer, &used, tiles * LANES * sizeof *b->row);
	b->inverse = part(buffer, &used, tiles * LANES * sizeof *b->inverse);
	b->slab = part(buffer, &used, STEPS * size * sizeof *b->slab);
	b->sum = part(buffer, &used, tiles * size * LANES * sizeof *b->sum);
	b->wide = part(buffer, &used, STEPS * LANES * sizeof *b->wide);
	b->own = part(buffer, &used, size * size * sizeof *b->own);
	b->groups.group = f->group;
	b->groups.y = part(buffer, &used, LANES * size * sizeof *b->groups.y);
	b->groups.mark = part(buffer, &used, size * sizeof *b->groups.mark);
	b->groups.code = part(buffer, &used, LANES * size);
	b->groups.largest = part(buffer, &used, LANES * sizeof *b->groups.largest);
	b->groups.square = part(buffer, &used, LANES * sizeof *b->groups.square);
	return used;
}

size_t xfp_feedback_batch_bytes(const struct xfp_feedback *feedback, size_t rows)
{
	struct xfp_feedback_batch none;

	return lay_out(&none, feedback, NULL, rows);
}

void xfp_feedback_batch_init(struct xfp_feedback_batch *batch, const struct xfp_feedback *feedback, void *buffer,
			     size_t rows)
{
	memset(buffer, 0, lay_out(batch, feedback, buffer, rows));
}

/* Index of row `at` of the batch in an array that has `count` columns or groups per tile. */
static size_t place(size_t at, size_t which, size_t count)
{
	return (at / LANES * count + which) * LANES + at % LANES;
}

void xfp_feedback_load(struct xfp_feedback_batch *batch, size_t at, const float *x, const uint16_t *marked, float row)
{
	const struct xfp_feedback *f = batch->feedback;
	const float inverse = 1 / row;

	batch->row[at] = row;
	batch->inverse[at] = inverse;
	for (size_t i = 0; i < f->padded; i++) {
		const size_t c = f->column[i];

		if (c >= f->cols)
			continue;
		batch->y[place(at, i, f->padded)] = x[c] * inverse;
		if (marked && marked[c / LANES] >> c % LANES & 1)
			batch->mark[at / LANES * f->padded + i] |= (uint16_t)(1u << at % LANES);
	}
}

/* ---- columns of a group -------------------------------------------------------------------------------------- */

/* Elements of rows [first, end) and of the group's columns, both in whole panels: slab[c / 16][j][c % 16]. Those above
 * the diagonal are stored at (c, j). */
static void load_slab(const struct xfp_feedback *f, const float *triangle, size_t group, size_t first, size_t end,
		      double *slab)
{
	const struct xfp_feedback_set *set = xfp_feedback_set();

	for (size_t c = group; c < group + f->group; c += LANES) {
		for (size_t j = first; j < end; j += LANES, slab += LANES * LANES) {
			const size_t next = j + LANES < c ? j + LANES : j;

			if (j > c)
				set->widen(triangle + xfp_triangle_at(f->padded, j, c), LANES * LANES, slab);
			else
				set->transpose(triangle + xfp_triangle_at(f->padded, c, j), slab,
					       triangle + xfp_triangle_at(f->padded, c, next));
		}
	}
}

/* Add the products with the errors of columns [first, end) to the sums of a group. */
static void add_columns(struct xfp_feedback_batch *batch, const float *triangle, size_t group, size_t first, size_t end)
{
	const struct xfp_feedback *f = batch->feedback;
	const struct xfp_feedback_set *set = xfp_feedback_set();

	for (size_t steps; first < end; first += steps) {
		steps = end - first < STEPS ? end - first : STEPS;
		load_slab(f, triangle, group, first, first + steps, batch->slab);
		for (size_t t = 0; t < batch->tiles; t++) {
			const float *error = batch->error + (t * f->padded + first) * LANES;
			const float *next = t + 1 < batch->tiles ? error + f->padded * LANES : NULL;

			set->widen(error, steps * LANES, batch->wide);
			for (size_t c = 0; c < f->group; c += LANES)
				set->multiply(steps, batch->slab + c * steps, batch->wide, XFP_LANES,
					      batch->sum + (t * f->group + c) * LANES, next);
		}
	}
}

/* The group from place `first` on in tile t. */
static struct xfp_feedback_group group_of(struct xfp_feedback_batch *batch, const struct xfp_compact_book *book,
					  size_t t, size_t first, const float *diagonal)
{
	const struct xfp_feedback *f = batch->feedback;
	const size_t at = t * f->padded + first;
	struct xfp_feedback_group g = {
		.book = book,
		.size = f->group,
		.sum = batch->sum + t * f->group * LANES,
		.own = batch->own,
		.diagonal = diagonal + first,
		.y = batch->y + at * LANES,
		.mark = batch->mark + at,
		.row = batch->row + t * LANES,
		.inverse = batch->inverse + t * LANES,
		.error = batch->error + at * LANES,
		.target = batch->target + at * LANES,
		.index = batch->index + at * LANES,
		.byte = batch->byte + (t * f->padded + first) / f->group * LANES,
	};

	/* Padding is last. */
	while (g.cols < g.size && f->column[first + g.cols] < f->cols)
		g.cols++;
	return g;
}

/* ---- feedback ------------------------------------------------------------------------------------------------ */

/* The search's input: targets of the group in storage order. */
static void load_targets(struct xfp_feedback_batch *batch, const struct xfp_feedback_group *g, const uint32_t *column)
{
	const struct xfp_compact_groups *to = &batch->groups;
	const size_t size = g->size, words = size / LANES;

	memset(to->y, 0, LANES * size * sizeof *to->y);
	memset(to->mark, 0xff, LANES * words * sizeof *to->mark);
	for (size_t c = 0; c < g->cols; c++) {
		const size_t own = column[c] % size;

		for (size_t lane = 0; lane < LANES; lane++) {
			if (g->mark[c] >> lane & 1)
				continue;
			to->y[lane * size + own] = (float)g->sum[c * LANES + lane];
			to->mark[lane * words + own / LANES] &= (uint16_t) ~(1u << own % LANES);
		}
	}
}

void xfp_feedback_encode(struct xfp_feedback_batch *batch, const struct xfp_compact_book *book, unsigned tried)
{
	const struct xfp_feedback *f = batch->feedback;
	const struct xfp_feedback_set *set = xfp_feedback_set();
	const size_t size = f->group;

	for (size_t first = 0; first < f->padded; first += size) {
		for (size_t t = 0; t < batch->tiles; t++)
			set->widen(batch->y + (t * f->padded + first) * LANES, size * LANES,
				   batch->sum + t * size * LANES);
		add_columns(batch, f->factor, first, 0, first);
		load_slab(f, f->factor, first, first, first + size, batch->own);
		for (size_t t = 0; t < batch->tiles; t++) {
			const struct xfp_feedback_group g = group_of(batch, book, t, first, f->pivot);
			uint8_t byte[XFP_COMPACT_TRIED + 1][XFP_LANES];

			load_targets(batch, &g, f->column + first);
			xfp_encoder()->compact->propose(book, &batch->groups, 0, LANES, byte);
			set->encode(&g, (const uint8_t(*)[XFP_LANES])byte + (tried > 1), tried);
		}
	}
}

void xfp_feedback_pass(struct xfp_feedback_batch *batch, const struct xfp_compact_book *book)
{
	const struct xfp_feedback *f = batch->feedback;
	const struct xfp_feedback_set *set = xfp_feedback_set();
	const size_t size = f->group;

	for (size_t first = 0; first < f->padded; first += size) {
		memset(batch->sum, 0, batch->tiles * size * LANES * sizeof *batch->sum);
		add_columns(batch, f->h, first, 0, first);
		add_columns(batch, f->h, first, first + size, f->padded);
		load_slab(f, f->h, first, first, first + size, batch->own);
		for (size_t t = 0, count; t < batch->tiles; t += count) {
			struct xfp_feedback_group g[PASSED];

			for (count = 0; count < PASSED && t + count < batch->tiles; count++)
				g[count] = group_of(batch, book, t + count, first, f->diagonal);
			set->pass(g, count);
		}
	}
}

/* ---- results ------------------------------------------------------------------------------------------------- */

void xfp_feedback_store(const struct xfp_feedback_batch *batch, size_t at, const struct xfp_compact_book *book,
			uint8_t *byte, uint8_t *index, uint16_t *residual)
{
	const struct xfp_compact_library *l = &book->library;
	const struct xfp_feedback *f = batch->feedback;
	const size_t groups = f->padded / f->group;

	for (size_t g = 0; g < groups; g++)
		byte[f->column[g * f->group] / f->group] = batch->byte[place(at, g, groups)];
	for (size_t i = 0; i < f->padded; i++) {
		const size_t c = f->column[i], own = place(at, i, f->padded);
		const uint8_t code = byte[c / f->group];

		index[c] = batch->index[own];
		if (batch->mark[at / LANES * f->padded + i] >> at % LANES & 1)
			xfp_feedback_marked(batch->target[own],
					    l->entry[code >> l->ratio_bits][index[c]] *
						    l->ratio[code & (l->ratios - 1)],
					    batch->row[at], batch->inverse[at], &residual[c]);
	}
}

uint8_t xfp_feedback_sample(const struct xfp_feedback_batch *batch, size_t at, size_t group,
			    const struct xfp_compact_groups *sample, size_t to, uint8_t *index)
{
	const struct xfp_feedback *f = batch->feedback;
	const size_t size = f->group, groups = f->padded / size;
	uint16_t *mark = sample->mark + to * size / LANES;
	size_t g = 0;

	while (f->column[g * size] / size != group)
		g++;
	memset(mark, 0xff, size / 8);
	for (size_t i = g * size; i < (g + 1) * size; i++) {
		const size_t own = place(at, i, f->padded), c = f->column[i] % size;
		const bool marked =
			f->column[i] >= f->cols || batch->mark[at / LANES * f->padded + i] >> at % LANES & 1;

		sample->y[to * size + c] = marked ? 0 : batch->target[own];
		sample->code[to * size + c] = !marked;
		index[c] = batch->index[own];
		if (!marked)
			mark[c / LANES] &= (uint16_t) ~(1u << c % LANES);
	}
	return batch->byte[place(at, g, groups)];
}
