/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round.c - a round of products: they form batches, which are processed by blocks of rows.
 *
 * Products of the same expert form batches of as many vectors as kernels take at once; all linears of a call have the
 * same batches. First all threads prepare the vectors. Then each thread takes a block of a linear's rows, multiplies it
 * by all batches while it is in the cache, and sums the results in the order of the list. So results depend neither on
 * the division of work among threads nor on the other linears.
 */
#include "runtime/round.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "kernels/common/number.h"
#include "runtime/team.h"

#define DECODED_PRODUCTS 32     /* from this many products of an expert on, a block of rows is decoded first */
#define DECODED_BYTES (1 << 18) /* maximum of such a block */
#define MAX_ROWS 64             /* per block that several batches share in the cache */
#define MAX_ROWS_ALONE 256      /* per block that is read once */
#define MIN_ROWS 8

/* Products of one expert of a linear: numbers [first, first + count) in expert order. */
struct batch {
	struct xfp_matvec w;
	const struct xfp_linear *linear;
	uint32_t expert;
	unsigned first, count;
	size_t vectors; /* index of its prepared vectors */
	bool decoded;
};

/* Vectors that are prepared once, for the first batch that needs them and for others like it. */
struct vectors {
	const struct batch *batch;
	struct xfp_matvec_x x;
	void *buffer;
};

struct round {
	const struct xfp_multiplication *call;
	const struct xfp_product *products; /* products of this round */
	size_t count;
	uint64_t *order;       /* product numbers, ordered by expert */
	uint32_t *place;       /* position of each product in `order` */
	struct batch *batches; /* [linear][batch_count] */
	size_t batch_count;    /* per linear */
	struct vectors *vectors;
	size_t vectors_count;
	size_t block; /* rows per block */

	/* Offsets in each thread's own memory. */
	size_t sums_at, decoded_at, gathered_at;
	int failed; /* set by the first thread that fails, which alone writes the message */
	enum xfp_status status;
};

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- batches ----------------------------------------------------------------------------------- */

int xfp_compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sort products by expert; stable. */
static void order_by_expert(struct round *round)
{
	for (size_t i = 0; i < round->count; i++)
		round->order[i] = (uint64_t)round->products[i].expert << 32 | i;
	qsort(round->order, round->count, sizeof *round->order, xfp_compare_numbers);
	for (size_t i = 0; i < round->count; i++) {
		round->order[i] &= UINT32_MAX;
		round->place[round->order[i]] = (uint32_t)i;
	}
}

static uint32_t vector_of(const struct round *round, const struct batch *batch, unsigned m)
{
	return round->products[round->order[batch->first + m]].x;
}

static unsigned layout_of(const struct batch *batch)
{
	return batch->decoded ? 0 : batch->w.k;
}

/* Return the factors of a batch's columns; NULL if not balanced. */
static const float *factors_of(const struct batch *batch)
{
	return batch->linear->down ? batch->linear->down + batch->w.first_column : NULL;
}

/* The weights of other matrices have replaced the factors in the caches since they were last used. */
static void prefetch_factors(const struct batch *batch)
{
	const float *factors = factors_of(batch);

	for (size_t c = 0; factors && c < batch->w.cols; c += 16)
		__builtin_prefetch(factors + c);
}

/* Return the columns before the slice that the batch's matrix has. */
static size_t columns_before(const struct batch *batch)
{
	return batch->linear->slice.first_col - batch->w.first_column;
}

/* Return whether vectors are prepared in the same way for both. */
static bool same_vectors(const struct round *round, const struct batch *a, const struct batch *b)
{
	const float *factors = factors_of(a), *others = factors_of(b);

	if (a->count != b->count || layout_of(a) != layout_of(b) || a->w.cols != b->w.cols ||
	    columns_before(a) != columns_before(b))
		return false;
	for (unsigned m = 0; m < a->count; m++)
		if (vector_of(round, a, m) != vector_of(round, b, m))
			return false;
	return factors == others || (factors && others && !memcmp(factors, others, a->w.cols * sizeof *factors));
}

/* Find the vectors of a batch: those of the batch before it, those of another linear for the same products, or new. */
static void find_vectors(struct round *round, struct batch *batch)
{
	size_t number = (size_t)(batch - round->batches);

	if (number % round->batch_count && same_vectors(round, batch - 1, batch)) {
		batch->vectors = batch[-1].vectors;
		return;
	}
	for (size_t other = number % round->batch_count; other < number; other += round->batch_count)
		if (same_vectors(round, &round->batches[other], batch)) {
			batch->vectors = round->batches[other].vectors;
			return;
		}
	batch->vectors = round->vectors_count++;
	round->vectors[batch->vectors].batch = batch;
	prefetch_factors(batch);
}

static void add_batch(struct round *round, uint32_t expert, size_t first, size_t count, bool decoded)
{
	round->batches[round->batch_count++] = (struct batch){
		.expert = expert, .first = (unsigned)first, .count = (unsigned)count, .decoded = decoded
	};
}

static void make_batches(struct round *round)
{
	order_by_expert(round);
	for (size_t first = 0, end; first < round->count; first = end) {
		uint32_t expert = round->products[round->order[first]].expert;

		for (end = first; end < round->count && round->products[round->order[end]].expert == expert;)
			end++;
		for (size_t at = first, some; at < end; at += some) {
			some = min(end - at, XFP_MAX_BATCH);
			add_batch(round, expert, at, some, end - first >= DECODED_PRODUCTS);
		}
	}
	/* The first linear's batches are the pattern, so they are completed last. */
	for (size_t i = round->call->linear_count * round->batch_count; i-- > 0;) {
		struct batch *batch = &round->batches[i];

		*batch = round->batches[i % round->batch_count];
		batch->linear = round->call->linears[i / round->batch_count];
		batch->decoded = !xfp_linear_matrix(batch->linear, batch->expert, &batch->w) || batch->decoded;
	}
	for (size_t i = 0; i < round->call->linear_count * round->batch_count; i++)
		find_vectors(round, &round->batches[i]);
}

/* ---- vectors ----------------------------------------------------------------------------------- */

/* Return the address of the batch's vectors, if they are at equal distances and need no zeros around them. */
static const uint8_t *in_place(const struct round *round, const struct batch *batch)
{
	const struct xfp_input *x = round->call->x;
	size_t first = vector_of(round, batch, 0);

	for (unsigned m = 1; m < batch->count; m++)
		if (vector_of(round, batch, m) != first + m)
			return NULL;
	return batch->w.cols == batch->linear->slice.cols
		       ? (const uint8_t *)x->data + first * x->stride * xfp_float_bytes(x->type)
		       : NULL;
}

/* Copy the batch's vectors one after the other, with zeros for columns outside the slice. */
static const void *gather(const struct round *round, const struct batch *batch, uint8_t *to)
{
	const struct xfp_input *x = round->call->x;
	size_t element = xfp_float_bytes(x->type), row = batch->w.cols * element;
	size_t before = columns_before(batch) * element, bytes = batch->linear->slice.cols * element;

	for (unsigned m = 0; m < batch->count; m++, to += row) {
		memset(to, 0, before);
		memcpy(to + before, (const uint8_t *)x->data + vector_of(round, batch, m) * x->stride * element, bytes);
		memset(to + before + bytes, 0, row - before - bytes);
	}
	return to - batch->count * row;
}

static void prepare(void *context, unsigned thread, size_t number)
{
	struct round *round = context;
	struct vectors *vectors = &round->vectors[number];
	const struct batch *batch = vectors->batch;
	uint8_t *own = xfp_team_own(round->call->team, thread);
	const void *x = in_place(round, batch);
	size_t stride = x ? round->call->x->stride : batch->w.cols;

	xfp_matvec_x_init(&vectors->x, layout_of(batch), batch->w.cols, batch->count, (int)round->call->x->type,
			  x ? x : gather(round, batch, own + round->gathered_at), stride, factors_of(batch),
			  vectors->buffer);
}

/* ---- rows -------------------------------------------------------------------------------------- */

static void fail(struct round *round, enum xfp_status status, const struct xfp_error *why)
{
	int none = 0;

	if (!__atomic_compare_exchange_n(&round->failed, &none, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	round->status = status;
	if (round->call->err)
		*round->call->err = *why;
}

/* Decode rows of a matrix to a matrix of f32. */
static bool decode(struct round *round, const struct batch *batch, size_t first, size_t rows, float *to,
		   struct xfp_matvec *w)
{
	struct xfp_error err = { XFP_OK, "" };
	enum xfp_status status =
		xfp_linear_decode(batch->linear, batch->expert, &batch->w, first, rows, to, batch->w.cols, &err);

	*w = (struct xfp_matvec){ .mode = XFP_MATVEC_F32,
				  .rows = rows,
				  .cols = batch->w.cols,
				  .unit = batch->w.unit,
				  .index = (const uint8_t *)to };
	xfp_matvec_set_row_layout(w);
	if (status)
		fail(round, status, &err);
	return !status;
}

/* Multiply rows [first, first + rows) of a linear by all its batches: sums[place][rows]. */
static bool multiply_block(struct round *round, const struct batch *batches, size_t first, size_t rows, float *sums,
			   float *decoded)
{
	struct xfp_matvec tile = { 0 };
	struct xfp_error err;

	for (size_t b = 0; b < round->batch_count; b++) {
		const struct batch *batch = &batches[b];
		const struct xfp_matvec_x *x = &round->vectors[batch->vectors].x;
		float *y = sums + batch->first * rows;

		if (batch->decoded) {
			if ((!b || batch[-1].expert != batch->expert) &&
			    !decode(round, batch, first, rows, decoded, &tile))
				return false;
			xfp_matvec_rows(&tile, x, 0, rows, false, y, rows);
		} else if (!xfp_matvec_rows(&batch->w, x, first, rows, false, y, rows)) {
			fail(round,
			     xfp_fail(&err, XFP_BAD_INPUT,
				      "%s: damaged: unit %s, expert %" PRIu32
				      ", rows %zu to %zu: outliers outside the matrix, "
				      "or an invalid codebook number; copy or convert it again",
				      batch->linear->bundle->path, xfp_printable(batch->linear->name).text,
				      batch->expert, first, first + rows - 1),
			     &err);
			return false;
		}
	}
	return true;
}

/* Store the results of a block; products with the same y are summed at the first of them. */
static void put(const struct round *round, const struct xfp_output *y, size_t first, size_t rows, float *sums)
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

static size_t blocks_of(const struct round *round, size_t linear)
{
	return (round->call->linears[linear]->slice.rows + round->block - 1) / round->block;
}

/* Blocks are numbered through all linears. */
static void multiply_rows(void *context, unsigned thread, size_t number)
{
	struct round *round = context;
	uint8_t *own = xfp_team_own(round->call->team, thread);
	float *sums = (float *)(void *)(own + round->sums_at), *decoded = (float *)(void *)(own + round->decoded_at);
	const struct xfp_slice *slice;
	size_t linear = 0, first, rows;

	for (; number >= blocks_of(round, linear); linear++)
		number -= blocks_of(round, linear);
	slice = &round->call->linears[linear]->slice;
	first = number * round->block;
	rows = min(round->block, slice->rows - first);
	if (!__atomic_load_n(&round->failed, __ATOMIC_RELAXED) &&
	    multiply_block(round, round->batches + linear * round->batch_count, slice->first_row + first, rows, sums,
			   decoded))
		put(round, &round->call->y[linear], first, rows, sums);
}

/* ---- a round ----------------------------------------------------------------------------------- */

/* Return whether several batches use the same expert, and so the same rows. */
static bool shares_rows(const struct round *round)
{
	for (size_t b = 1; b < round->batch_count; b++)
		if (round->batches[b].expert == round->batches[b - 1].expert)
			return true;
	return false;
}

/* Return the rows per block: few enough that all threads stay busy until the end. */
static size_t block_rows(const struct round *round)
{
	size_t rows = 0, max = shares_rows(round) ? MAX_ROWS : MAX_ROWS_ALONE;

	for (size_t i = 0; i < round->call->linear_count; i++)
		rows += round->call->linears[i]->slice.rows;
	rows /= xfp_team_threads(round->call->team) * (size_t)4;
	rows = rows > max ? max : rows / MIN_ROWS * MIN_ROWS;
	return rows < MIN_ROWS ? MIN_ROWS : rows;
}

static size_t buffer_bytes(const struct vectors *vectors)
{
	const struct batch *batch = vectors->batch;

	return xfp_align(xfp_matvec_x_bytes(layout_of(batch), batch->w.cols, batch->count), 64);
}

/* Compute the memory that the round needs, and its layout. */
static void lay_out(struct round *round, size_t *shared, size_t *own)
{
	size_t gathered = 0, decoded = 0;

	*shared = 0;
	round->block = block_rows(round);
	for (size_t b = 0; b < round->call->linear_count * round->batch_count; b++) {
		size_t row = round->batches[b].w.cols * sizeof(float);

		if (!round->batches[b].decoded)
			continue;
		round->block = min(round->block, DECODED_BYTES / row + 1);
		decoded = decoded > row ? decoded : row;
	}
	for (size_t v = 0; v < round->vectors_count; v++) {
		const struct batch *batch = round->vectors[v].batch;
		size_t bytes = batch->count * batch->w.cols * sizeof(float);

		*shared += buffer_bytes(&round->vectors[v]);
		gathered = gathered > bytes ? gathered : bytes;
	}
	round->sums_at = 0;
	round->decoded_at = xfp_align(round->count * round->block * sizeof(float), 64);
	round->gathered_at = 0; /* used before the sums are written */
	*own = round->decoded_at + decoded * round->block;
	*own = *own > gathered ? *own : gathered;
}

static void assign_buffers(struct round *round)
{
	uint8_t *at = xfp_team_shared(round->call->team);

	for (size_t v = 0; v < round->vectors_count; v++) {
		round->vectors[v].buffer = at;
		at += buffer_bytes(&round->vectors[v]);
	}
}

static enum xfp_status run(struct round *round)
{
	struct xfp_team *team = round->call->team;
	size_t shared, own, blocks = 0;
	enum xfp_status status;

	make_batches(round);
	lay_out(round, &shared, &own);
	if ((status = xfp_team_enter(team, shared, own, round->call->err)))
		return status;
	assign_buffers(round);
	for (size_t i = 0; i < round->call->linear_count; i++)
		blocks += blocks_of(round, i);
	xfp_team_run(team, round->vectors_count, prepare, round);
	xfp_team_run(team, blocks, multiply_rows, round);
	xfp_team_leave(team);
	return round->status;
}

enum xfp_status xfp_round_run(const struct xfp_multiplication *call, const struct xfp_product *products, size_t count)
{
	struct round round = { .call = call, .products = products, .count = count };
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
