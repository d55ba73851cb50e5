/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round.c - a round of products: they form batches, which are processed by blocks of rows.
 *
 * Products of the same expert form batches: of as many vectors as kernels take at once, to be multiplied by stored
 * rows; or, if there are many, panels, to be multiplied by rows that are decoded tile by tile (see panel.h). All
 * linears of a call have the same batches. First all threads prepare the vectors. Then each thread takes a block of a
 * linear's rows, multiplies it by all batches while it is in the cache, and sums the results in the order of the list.
 * So results depend neither on the division of work among threads nor on the other linears.
 */
#include "runtime/batches.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "kernels/common/number.h"
#include "runtime/team.h"
#include "runtime/tile.h"

#define MAX_ROWS 64        /* per block that several batches share in the cache */
#define MAX_ROWS_ALONE 256 /* per block that is read once */
#define MIN_ROWS 8

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- vectors ----------------------------------------------------------------------------------- */

static const uint8_t *data_of(const struct xfp_round *round, const struct xfp_batch *batch, unsigned m)
{
	const struct xfp_input *x = round->call->x;

	return (const uint8_t *)x->data + xfp_batch_input(round, batch, m) * x->stride * xfp_float_bytes(x->type);
}

/* Return the address of the batch's vectors, if they are at equal distances and need no zeros around them. */
static const uint8_t *in_place(const struct xfp_round *round, const struct xfp_batch *batch)
{
	for (unsigned m = 1; m < batch->count; m++)
		if (xfp_batch_input(round, batch, m) != xfp_batch_input(round, batch, 0) + m)
			return NULL;
	return batch->w.cols == batch->linear->slice.cols ? data_of(round, batch, 0) : NULL;
}

/* Copy the batch's vectors one after the other, with zeros for columns outside the slice. */
static const void *gather(const struct xfp_round *round, const struct xfp_batch *batch, uint8_t *to)
{
	size_t element = xfp_float_bytes(round->call->x->type), row = batch->w.cols * element;
	size_t before = xfp_batch_columns_before(batch) * element, bytes = batch->linear->slice.cols * element;

	for (unsigned m = 0; m < batch->count; m++, to += row) {
		memset(to, 0, before);
		memcpy(to + before, data_of(round, batch, m), bytes);
		memset(to + before + bytes, 0, row - before - bytes);
	}
	return to - batch->count * row;
}

/* Return the vectors of a batch's panel, including those that are zero. */
static size_t lanes_of(const struct xfp_batch *batch)
{
	return (size_t)xfp_panel_width(batch->count) * XFP_PANEL_LANES;
}

/* Pack sixteen vectors of a panel, from number `first` on, with zeros for columns outside the slice. */
static void pack(const struct xfp_round *round, const struct xfp_batch *batch, unsigned first, float *panel)
{
	const struct xfp_slice *slice = &batch->linear->slice;
	size_t lanes = lanes_of(batch), before = xfp_batch_columns_before(batch), after = before + slice->cols;
	unsigned count = (unsigned)min(batch->count - first, XFP_PANEL_LANES);
	const void *source[XFP_PANEL_LANES];

	for (unsigned m = 0; m < count; m++)
		source[m] = data_of(round, batch, first + m);
	for (size_t c = 0; c < batch->w.cols; c++)
		if (c < before || c >= after)
			memset(panel + c * lanes + first, 0, XFP_PANEL_LANES * sizeof *panel);
	xfp_panel_pack((int)round->call->x->type, source, count, slice->cols,
		       batch->linear->down ? batch->linear->down + slice->first_col : NULL,
		       panel + before * lanes + first, xfp_panel_width(batch->count));
}

/* Several threads may pack a panel: `number` counts sixteen vectors. */
static void prepare(void *context, unsigned thread, size_t number)
{
	struct xfp_round *round = context;
	struct xfp_vectors *vectors = &round->vectors[number / XFP_PANEL_WIDTH];
	const struct xfp_batch *batch = vectors->batch;
	unsigned first = number % XFP_PANEL_WIDTH * XFP_PANEL_LANES;
	uint8_t *own = xfp_team_own(round->call->team, thread);
	const void *x;

	if (batch->decoded) {
		if (first < batch->count)
			pack(round, batch, first, vectors->buffer);
	} else if (!first) {
		x = in_place(round, batch);
		xfp_matvec_x_init(&vectors->x, batch->w.k, batch->w.cols, batch->count, (int)round->call->x->type,
				  x ? x : gather(round, batch, own + round->gathered_at),
				  x ? round->call->x->stride : batch->w.cols, xfp_batch_factors(batch),
				  vectors->buffer);
	}
}

/* ---- rows -------------------------------------------------------------------------------------- */

static void fail(struct xfp_round *round, enum xfp_status status, const struct xfp_error *why)
{
	int none = 0;

	if (!__atomic_compare_exchange_n(&round->failed, &none, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	round->status = status;
	if (round->call->err)
		*round->call->err = *why;
}

/* A thread's memory for a block of rows. */
struct row_block {
	size_t first, rows;
	float *sums; /* [place][rows] */
	float *tile;
	float *panel_sums; /* [rows][panel_stride], of all panels of an expert */
	size_t panel_stride;
};

/* Copy the sums of a panel. If a float can represent the unit, a power of two, the product of floats is the same. */
static void put_panel(const struct xfp_batch *batch, const struct row_block *block, const float *from)
{
	float *to = block->sums + batch->first * block->rows, unit = (float)batch->w.unit;
	bool exact = unit == batch->w.unit;

	for (size_t m = 0; m < batch->count; m++, to += block->rows)
		for (size_t r = 0; r < block->rows; r++) {
			float sum = from[r * block->panel_stride + m];

			to[r] = exact ? sum * unit : (float)(sum * batch->w.unit);
		}
}

/* Multiply a block of rows by `count` panels of one expert. */
static bool multiply_decoded(struct xfp_round *round, const struct xfp_batch *batch, size_t count,
			     const struct row_block *block)
{
	xfp_panel_fn *multiply = xfp_matvec_set()->panel;
	size_t cols = batch->w.cols, part = xfp_panel_part(cols);
	struct xfp_tile_rows rows;
	struct xfp_error err = { XFP_OK, "" };
	enum xfp_status status =
		xfp_tile_begin(&rows, batch->linear, batch->expert, &batch->w, block->first, block->rows, &err);
	float *sums;

	for (size_t c = 0, some; !status && c < cols; c += some) {
		some = min(cols - c, XFP_TILE_COLUMNS);
		status = xfp_tile_decode(&rows, c, some, block->tile, &err);
		sums = block->panel_sums;
		for (size_t b = 0; !status && b < count; sums += lanes_of(&batch[b++])) {
			const float *panel = round->vectors[batch[b].vectors].buffer;

			multiply(block->tile, block->rows, some, part, panel + c * lanes_of(&batch[b]),
				 xfp_panel_width(batch[b].count), c > 0, sums, block->panel_stride);
		}
	}
	if (status)
		fail(round, status, &err);
	sums = block->panel_sums;
	for (size_t b = 0; !status && b < count; sums += lanes_of(&batch[b++]))
		put_panel(&batch[b], block, sums);
	return !status;
}

static bool multiply_stored(struct xfp_round *round, const struct xfp_batch *batch, const struct row_block *block)
{
	struct xfp_error err;

	if (xfp_matvec_rows(&batch->w, &round->vectors[batch->vectors].x, block->first, block->rows, false,
			    block->sums + batch->first * block->rows, block->rows))
		return true;
	fail(round,
	     xfp_fail(&err, XFP_BAD_INPUT,
		      "%s: damaged: unit %s, expert %" PRIu32 ", rows %zu to %zu: outliers outside the matrix, "
		      "or an invalid codebook number; copy or convert it again",
		      batch->linear->bundle->path, xfp_printable(batch->linear->name).text, batch->expert, block->first,
		      block->first + block->rows - 1),
	     &err);
	return false;
}

/* Multiply a block of a linear's rows by all its batches. */
static bool multiply_block(struct xfp_round *round, const struct xfp_batch *batches, const struct row_block *block)
{
	bool good = true;

	for (size_t b = 0, end; good && b < round->batch_count; b = end) {
		const struct xfp_batch *batch = &batches[b];

		for (end = b + 1; batch->decoded && end < round->batch_count && batches[end].expert == batch->expert;)
			end++;
		good = batch->decoded ? multiply_decoded(round, batch, end - b, block)
				      : multiply_stored(round, batch, block);
	}
	return good;
}

/* Store the results of a block; products with the same y are summed at the first of them. */
static void put(const struct xfp_round *round, const struct xfp_output *y, size_t first, size_t rows, float *sums)
{
	size_t element = xfp_float_bytes(y->type);

	for (size_t i = 0, end; i < round->count; i = end) {
		const struct xfp_product *product = &round->products[i];
		float *sum = sums + round->place[i] * rows;

		for (size_t r = 0; product->weight != 1 && r < rows; r++)
			sum[r] *= product->weight;
		for (end = i + 1; end < round->count && round->products[end].y == product->y; end++) {
			const float *more = sums + round->place[end] * rows;

			for (size_t r = 0; r < rows; r++)
				sum[r] += round->products[end].weight * more[r];
		}
		xfp_from_float((int)y->type, sum, rows,
			       (uint8_t *)y->data + (product->y * y->stride + first) * element);
	}
}

static size_t blocks_of(const struct xfp_round *round, size_t linear)
{
	return (round->call->linears[linear]->slice.rows + round->block - 1) / round->block;
}

/* Blocks are numbered through all linears. */
static void multiply_rows(void *context, unsigned thread, size_t number)
{
	struct xfp_round *round = context;
	uint8_t *own = xfp_team_own(round->call->team, thread);
	struct row_block block = { .sums = (float *)(void *)(own + round->sums_at),
				   .tile = (float *)(void *)(own + round->tile_at),
				   .panel_sums = (float *)(void *)(own + round->panel_sums_at),
				   .panel_stride = round->panel_stride };
	const struct xfp_slice *slice;
	size_t linear = 0, first;

	for (; number >= blocks_of(round, linear); linear++)
		number -= blocks_of(round, linear);
	slice = &round->call->linears[linear]->slice;
	first = number * round->block;
	block.first = slice->first_row + first;
	block.rows = min(round->block, slice->rows - first);
	if (!__atomic_load_n(&round->failed, __ATOMIC_RELAXED) &&
	    multiply_block(round, round->batches + linear * round->batch_count, &block))
		put(round, &round->call->y[linear], first, block.rows, block.sums);
}

/* ---- a round ----------------------------------------------------------------------------------- */

/* Return whether several batches use the same expert, and so the same rows. */
static bool shares_rows(const struct xfp_round *round)
{
	for (size_t b = 1; b < round->batch_count; b++)
		if (round->batches[b].expert == round->batches[b - 1].expert)
			return true;
	return false;
}

/* Return the rows per block: few enough that all threads stay busy until the end. */
static size_t block_rows(const struct xfp_round *round, bool decoded)
{
	size_t max = decoded ? XFP_TILE_MAX_ROWS : shares_rows(round) ? MAX_ROWS : MAX_ROWS_ALONE;
	size_t rows = 0, unit = decoded ? XFP_TILE_ROWS : MIN_ROWS;

	for (size_t i = 0; i < round->call->linear_count; i++)
		rows += round->call->linears[i]->slice.rows;
	rows /= xfp_team_threads(round->call->team) * (size_t)4;
	rows = rows > max ? max : rows / unit * unit;
	return rows < unit ? unit : rows;
}

static size_t buffer_bytes(const struct xfp_vectors *vectors)
{
	const struct xfp_batch *batch = vectors->batch;

	return xfp_align(batch->decoded ? batch->w.cols * lanes_of(batch) * sizeof(float)
					: xfp_matvec_x_bytes(batch->w.k, batch->w.cols, batch->count),
			 64);
}

/* Compute the memory that the round needs, and its layout. */
static void lay_out(struct xfp_round *round, size_t *shared, size_t *own)
{
	size_t gathered = 0, lanes = 0, tile = 0;

	*shared = 0;
	for (size_t b = 0; b < round->call->linear_count * round->batch_count; b++) {
		const struct xfp_batch *batch = &round->batches[b];

		if (!batch->decoded)
			continue;
		lanes = b % round->batch_count && batch[-1].expert == batch->expert ? lanes : 0;
		lanes += lanes_of(batch);
		tile = XFP_TILE_FLOATS * sizeof(float);
		if (lanes >= round->panel_stride)
			round->panel_stride = lanes + XFP_PANEL_LANES; /* for the reason of XFP_TILE_STRIDE */
	}
	for (size_t v = 0; v < round->vectors_count; v++) {
		const struct xfp_batch *batch = round->vectors[v].batch;
		size_t bytes = batch->decoded ? 0 : batch->count * batch->w.cols * sizeof(float);

		*shared += buffer_bytes(&round->vectors[v]);
		gathered = gathered > bytes ? gathered : bytes;
	}
	round->block = block_rows(round, tile);
	round->sums_at = 0;
	round->tile_at = xfp_align(round->count * round->block * sizeof(float), 64);
	round->panel_sums_at = round->tile_at + tile;
	round->gathered_at = 0; /* used before the sums are written */
	*own = round->panel_sums_at + round->block * round->panel_stride * sizeof(float);
	*own = *own > gathered ? *own : gathered;
}

static void assign_buffers(struct xfp_round *round)
{
	uint8_t *at = xfp_team_shared(round->call->team);

	for (size_t v = 0; v < round->vectors_count; v++) {
		round->vectors[v].buffer = at;
		at += buffer_bytes(&round->vectors[v]);
	}
}

static enum xfp_status run(struct xfp_round *round)
{
	struct xfp_team *team = round->call->team;
	size_t shared, own, blocks = 0;
	enum xfp_status status;

	xfp_batches_make(round);
	lay_out(round, &shared, &own);
	if ((status = xfp_team_enter(team, shared, own, round->call->err)))
		return status;
	assign_buffers(round);
	for (size_t i = 0; i < round->call->linear_count; i++)
		blocks += blocks_of(round, i);
	xfp_team_run(team, round->vectors_count * XFP_PANEL_WIDTH, prepare, round);
	xfp_team_run(team, blocks, multiply_rows, round);
	xfp_team_leave(team);
	return round->status;
}

enum xfp_status xfp_round_run(const struct xfp_multiplication *call, const struct xfp_product *products, size_t count)
{
	struct xfp_round round = { .call = call, .products = products, .count = count };
	enum xfp_status status = XFP_FAILED;

	round.order = malloc(count * sizeof *round.order);
	round.place = malloc(count * sizeof *round.place);
	round.batches = malloc(call->linear_count * count * sizeof *round.batches);
	round.vectors = malloc(call->linear_count * count * sizeof *round.vectors);
	if (round.order && round.place && round.batches && round.vectors)
		status = run(&round);
	else
		xfp_no_memory(call->err);
	free(round.order);
	free(round.place);
	free(round.batches);
	free(round.vectors);
	return status;
}
