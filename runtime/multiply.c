/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multiply.c - products of matrices and vectors: a list of products is processed in rounds of batches, by blocks of
 * rows.
 *
 * Rounds bound the memory of prepared vectors. In a round, products of the same expert form batches of as many vectors
 * as kernels take at once. First all threads prepare the vectors of the batches. Then each thread takes a block of
 * rows, multiplies it by all batches while it is in the cache, and sums the results in the order of the list. So
 * results do not depend on the division of work among threads.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "kernels/common/number.h"
#include "runtime/linear.h"
#include "runtime/team.h"

#define ROUND_PRODUCTS 256      /* minimum per round */
#define ROUND_BYTES (64 << 20)  /* of prepared vectors per round, unless the minimum or one y needs more */
#define DECODED_PRODUCTS 32     /* from this many products of an expert on, a block of rows is decoded first */
#define DECODED_BYTES (1 << 18) /* maximum of such a block */
#define MAX_ROWS 64             /* per block that several batches share in the cache */
#define MAX_ROWS_ALONE 256      /* per block that is read once */
#define MIN_ROWS 8

/* Products of one expert: numbers [first, first + count) in expert order. */
struct batch {
	struct xfp_matvec w;
	uint32_t expert;
	unsigned first, count;
	unsigned vectors; /* the batch that prepares them: this one, or an earlier one with the same vectors */
	bool decoded;
	struct xfp_matvec_x x;
	void *buffer;
};

struct round {
	const struct xfp_linear *linear;
	const struct xfp_product *products; /* products of this round */
	size_t count;
	const struct xfp_input *x;
	const struct xfp_output *y;
	uint64_t *order; /* product numbers, ordered by expert */
	uint32_t *place; /* position of each product in `order` */
	struct batch *batches;
	size_t batch_count;
	size_t block; /* rows per block */
	struct xfp_team *team;

	/* Offsets in each thread's own memory. */
	size_t sums_at, decoded_at, gathered_at;
	int failed; /* set by the first thread that fails, which alone writes `err` */
	enum xfp_status status;
	struct xfp_error *err;
};

static size_t type_bytes(enum xfp_float type)
{
	return type == XFP_FLOAT32 ? 4 : 2;
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* ---- batches ----------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sort products by expert; stable. */
static void order_by_expert(struct round *round)
{
	for (size_t i = 0; i < round->count; i++)
		round->order[i] = (uint64_t)round->products[i].expert << 32 | i;
	qsort(round->order, round->count, sizeof *round->order, by_value);
	for (size_t i = 0; i < round->count; i++) {
		round->order[i] &= UINT32_MAX;
		round->place[round->order[i]] = (uint32_t)i;
	}
}

static uint32_t vector_of(const struct round *round, const struct batch *batch, unsigned m)
{
	return round->products[round->order[batch->first + m]].x;
}

static bool same_vectors(const struct round *round, const struct batch *a, const struct batch *b)
{
	if (a->count != b->count || a->decoded != b->decoded || a->w.k != b->w.k)
		return false;
	for (unsigned m = 0; m < a->count; m++)
		if (vector_of(round, a, m) != vector_of(round, b, m))
			return false;
	return true;
}

static void add_batch(struct round *round, uint32_t expert, size_t first, size_t count, bool decoded)
{
	struct batch *batch = &round->batches[round->batch_count];

	*batch = (struct batch){ .expert = expert, .first = (unsigned)first, .count = (unsigned)count };
	batch->decoded = !xfp_linear_matrix(round->linear, expert, &batch->w) || decoded;
	batch->vectors = (unsigned)round->batch_count;
	if (round->batch_count && same_vectors(round, batch - 1, batch))
		batch->vectors = batch[-1].vectors;
	round->batch_count++;
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
}

/* ---- vectors ----------------------------------------------------------------------------------- */

static unsigned layout_of(const struct batch *batch)
{
	return batch->decoded ? 0 : batch->w.k;
}

/* Copy the batch's vectors one after the other, with zeros for columns outside the slice. */
static const void *gather(const struct round *round, const struct batch *batch, uint8_t *to)
{
	size_t element = type_bytes(round->x->type), row = batch->w.cols * element;
	size_t before = (round->linear->slice.first_col - batch->w.first_column) * element;
	size_t bytes = round->linear->slice.cols * element;

	for (unsigned m = 0; m < batch->count; m++, to += row) {
		memset(to, 0, before);
		memcpy(to + before,
		       (const uint8_t *)round->x->data + vector_of(round, batch, m) * round->x->stride * element,
		       bytes);
		memset(to + before + bytes, 0, row - before - bytes);
	}
	return to - batch->count * row;
}

static void prepare(void *context, unsigned thread, size_t number)
{
	struct round *round = context;
	struct batch *batch = &round->batches[number];
	const float *down = round->linear->down;

	if (batch->vectors != number)
		return;
	xfp_matvec_x_init(&batch->x, layout_of(batch), batch->w.cols, batch->count, (int)round->x->type,
			  gather(round, batch, (uint8_t *)xfp_team_own(round->team, thread) + round->gathered_at),
			  batch->w.cols, down ? down + batch->w.first_column : NULL, batch->buffer);
}

/* ---- rows -------------------------------------------------------------------------------------- */

static void fail(struct round *round, enum xfp_status status, const struct xfp_error *why)
{
	int none = 0;

	if (!__atomic_compare_exchange_n(&round->failed, &none, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	round->status = status;
	if (round->err)
		*round->err = *why;
}

/* Decode rows of a matrix to a matrix of f32. */
static bool decode(struct round *round, const struct batch *batch, size_t first, size_t rows, float *to,
		   struct xfp_matvec *w)
{
	struct xfp_error err = { XFP_OK, "" };
	enum xfp_status status =
		xfp_linear_decode(round->linear, batch->expert, &batch->w, first, rows, to, batch->w.cols, &err);

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

/* Multiply rows [first, first + rows) by all batches: sums[place][rows]. */
static bool multiply_block(struct round *round, size_t first, size_t rows, float *sums, float *decoded)
{
	struct xfp_matvec tile = { 0 };
	struct xfp_error err;

	for (size_t b = 0; b < round->batch_count; b++) {
		const struct batch *batch = &round->batches[b];
		const struct xfp_matvec_x *x = &round->batches[batch->vectors].x;
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
				      round->linear->bundle->path, xfp_printable(round->linear->name).text,
				      batch->expert, first, first + rows - 1),
			     &err);
			return false;
		}
	}
	return true;
}

/* Store the results of a block; products with the same y are summed at the first of them. */
static void put(const struct round *round, size_t first, size_t rows, float *sums)
{
	size_t element = type_bytes(round->y->type);

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
		xfp_from_float((int)round->y->type, sum, rows,
			       (uint8_t *)round->y->data + (product->y * round->y->stride + first) * element);
	}
}

static void multiply_rows(void *context, unsigned thread, size_t number)
{
	struct round *round = context;
	uint8_t *own = xfp_team_own(round->team, thread);
	float *sums = (float *)(void *)(own + round->sums_at), *decoded = (float *)(void *)(own + round->decoded_at);
	size_t first = number * round->block, rows = min(round->block, round->linear->slice.rows - first);

	if (!__atomic_load_n(&round->failed, __ATOMIC_RELAXED) &&
	    multiply_block(round, round->linear->slice.first_row + first, rows, sums, decoded))
		put(round, first, rows, sums);
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
	size_t rows = round->linear->slice.rows / (xfp_team_threads(round->team) * (size_t)4);
	size_t max = shares_rows(round) ? MAX_ROWS : MAX_ROWS_ALONE;

	rows = rows > max ? max : rows / MIN_ROWS * MIN_ROWS;
	return rows < MIN_ROWS ? MIN_ROWS : rows;
}

/* Compute the memory that the round needs, and its layout. */
static void lay_out(struct round *round, size_t *shared, size_t *own)
{
	size_t gathered = 0, decoded = 0;

	*shared = 0;
	round->block = block_rows(round);
	for (size_t b = 0; b < round->batch_count; b++) {
		struct batch *batch = &round->batches[b];
		size_t row = batch->w.cols * sizeof(float);

		if (batch->decoded) {
			round->block = min(round->block, DECODED_BYTES / row + 1);
			decoded = decoded > row ? decoded : row;
		}
		if (batch->vectors != b)
			continue;
		*shared += xfp_align(xfp_matvec_x_bytes(layout_of(batch), batch->w.cols, batch->count), 64);
		gathered = gathered > batch->count * row ? gathered : batch->count * row;
	}
	round->sums_at = 0;
	round->decoded_at = xfp_align(round->count * round->block * sizeof(float), 64);
	round->gathered_at = 0; /* used before the sums are written */
	*own = round->decoded_at + decoded * round->block;
	*own = *own > gathered ? *own : gathered;
}

static void assign_buffers(struct round *round)
{
	uint8_t *at = xfp_team_shared(round->team);

	for (size_t b = 0; b < round->batch_count; b++) {
		struct batch *batch = &round->batches[b];

		if (batch->vectors != b)
			continue;
		batch->buffer = at;
		at += xfp_align(xfp_matvec_x_bytes(layout_of(batch), batch->w.cols, batch->count), 64);
	}
}

static enum xfp_status run_round(struct round *round)
{
	size_t rows = round->linear->slice.rows, shared, own;
	enum xfp_status status;

	round->batch_count = 0;
	make_batches(round);
	lay_out(round, &shared, &own);
	if ((status = xfp_team_enter(round->team, shared, own, round->err)))
		return status;
	assign_buffers(round);
	xfp_team_run(round->team, round->batch_count, prepare, round);
	xfp_team_run(round->team, (rows + round->block - 1) / round->block, multiply_rows, round);
	xfp_team_leave(round->team);
	return round->status;
}

/* ---- the calls --------------------------------------------------------------------------------- */

static enum xfp_status check_vectors(const struct xfp_linear *linear, const char *what, const void *data,
				     enum xfp_float type, size_t count, size_t stride, uint64_t elements,
				     struct xfp_error *err)
{
	if (type < XFP_FLOAT32 || type > XFP_BFLOAT16)
		return xfp_fail(err, XFP_USAGE, "%s: %s have an unknown type, %d", xfp_printable(linear->name).text,
				what, (int)type);
	if (count && !data)
		return xfp_fail(err, XFP_USAGE, "%s: the address of %s is NULL", xfp_printable(linear->name).text,
				what);
	if (count > 1 && stride < elements)
		return xfp_fail(err, XFP_USAGE,
				"%s: %zu %s have a stride of %zu elements, but %" PRIu64 " elements each",
				xfp_printable(linear->name).text, count, what, stride, elements);
	return XFP_OK;
}

static enum xfp_status check_call(const struct xfp_linear *linear, const struct xfp_product *products, size_t count,
				  const struct xfp_input *x, const struct xfp_output *y, struct xfp_error *err)
{
	enum xfp_status status;

	if ((status =
		     check_vectors(linear, "inputs", x->data, x->type, x->count, x->stride, linear->slice.cols, err)) ||
	    (status = check_vectors(linear, "outputs", y->data, y->type, y->count, y->stride, linear->slice.rows, err)))
		return status;
	for (size_t i = 0; i < count; i++)
		if (products[i].expert >= linear->experts || products[i].x >= x->count || products[i].y >= y->count)
			return xfp_fail(err, XFP_USAGE,
					"%s: product %zu names expert %" PRIu32 ", input %" PRIu32
					" and output %" PRIu32 "; there are %" PRIu32 ", %zu and %zu",
					xfp_printable(linear->name).text, i, products[i].expert, products[i].x,
					products[i].y, linear->experts, x->count, y->count);
	return XFP_OK;
}

/* Return the products of the next round: enough for a round, plus all others with the y of the last one. */
static size_t round_products(const struct xfp_linear *linear, const struct xfp_product *products, size_t count)
{
	size_t some = ROUND_BYTES / ((linear->slice.cols + 1024) * 12), end;

	end = min(min(count, UINT32_MAX), some > ROUND_PRODUCTS ? some : ROUND_PRODUCTS);
	while (end < count && products[end].y == products[end - 1].y)
		end++;
	return end;
}

static enum xfp_status run_rounds(struct round *round, const struct xfp_product *products, size_t count)
{
	enum xfp_status status = XFP_OK;

	for (size_t done = 0; !status && done < count; done += round->count) {
		round->products = products + done;
		round->count = round_products(round->linear, products + done, count - done);
		round->order = malloc(round->count * sizeof *round->order);
		round->place = malloc(round->count * sizeof *round->place);
		round->batches = malloc(round->count * sizeof *round->batches);
		status = round->order && round->place && round->batches ? run_round(round) : xfp_no_memory(round->err);
		free(round->order);
		free(round->place);
		free(round->batches);
	}
	return status;
}

/* Sort the list by y; stable. Returns NULL if memory ran out. */
static struct xfp_product *order_by_y(const struct xfp_product *products, size_t count)
{
	struct xfp_product *ordered = malloc(count * sizeof *ordered);
	uint64_t *order = malloc(count * sizeof *order);

	for (size_t i = 0; order && i < count; i++)
		order[i] = (uint64_t)products[i].y << 32 | i;
	if (order)
		qsort(order, count, sizeof *order, by_value);
	for (size_t i = 0; order && ordered && i < count; i++)
		ordered[i] = products[order[i] & UINT32_MAX];
	if (!order) {
		free(ordered);
		ordered = NULL;
	}
	free(order);
	return ordered;
}

static bool in_order(const struct xfp_product *products, size_t count)
{
	size_t i = 1;

	while (i < count && products[i].y >= products[i - 1].y)
		i++;
	return i >= count;
}

static enum xfp_status run_list(struct round *round, const struct xfp_product *products, size_t count)
{
	struct xfp_product *ordered = NULL;
	bool alone = !round->team;
	enum xfp_status status = XFP_OK;

	if (!in_order(products, count) && !(ordered = order_by_y(products, count)))
		return xfp_no_memory(round->err);
	if (!alone || !(status = xfp_team_start(1, &round->team, round->err)))
		status = run_rounds(round, ordered ? ordered : products, count);
	if (alone)
		xfp_team_end(round->team);
	free(ordered);
	return status;
}

/* Multiply by a copy of the list, which stays as checked, or by one expert if the list is NULL. */
static enum xfp_status run(struct round *round, const struct xfp_product *products, uint32_t expert, size_t count)
{
	struct xfp_product few[XFP_MAX_BATCH], *list = few;
	enum xfp_status status;

	if (count > XFP_MAX_BATCH && !(list = malloc(count * sizeof *list)))
		return xfp_no_memory(round->err);
	for (size_t i = 0; i < count; i++)
		list[i] = products ? products[i] : (struct xfp_product){ expert, (uint32_t)i, (uint32_t)i, 1 };
	status = check_call(round->linear, list, count, round->x, round->y, round->err);
	if (!status && count && round->linear->slice.rows)
		status = run_list(round, list, count);
	if (list != few)
		free(list);
	return status;
}

enum xfp_status xfp_multiply_experts(struct xfp_team *team, const struct xfp_linear *linear,
				     const struct xfp_product *products, size_t count, const struct xfp_input *x,
				     const struct xfp_output *y, struct xfp_error *err)
{
	if (count > UINT32_MAX || (count && !products))
		return xfp_fail(err, XFP_USAGE, "%s: the list of %zu products is too long, or NULL",
				xfp_printable(linear->name).text, count);
	return run(&(struct round){ .linear = linear, .x = x, .y = y, .team = team, .err = err }, products, 0, count);
}

enum xfp_status xfp_multiply(struct xfp_team *team, const struct xfp_linear *linear, uint32_t expert, size_t count,
			     const struct xfp_input *x, const struct xfp_output *y, struct xfp_error *err)
{
	if (count > x->count || count > y->count || count > UINT32_MAX)
		return xfp_fail(err, XFP_USAGE, "%s: cannot multiply %zu vectors; there are %zu inputs and %zu outputs",
				xfp_printable(linear->name).text, count, x->count, y->count);
	return run(&(struct round){ .linear = linear, .x = x, .y = y, .team = team, .err = err }, NULL, expert, count);
}
