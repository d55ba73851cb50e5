/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/batches.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/multiply/panel.h"

int xfp_compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Sort products by expert; stable. */
static void order_by_expert(struct xfp_round *round)
{
	for (size_t i = 0; i < round->count; i++)
		round->order[i] = (uint64_t)round->products[i].expert << 32 | i;
	qsort(round->order, round->count, sizeof *round->order, xfp_compare_numbers);
	for (size_t i = 0; i < round->count; i++) {
		round->order[i] &= UINT32_MAX;
		round->place[round->order[i]] = (uint32_t)i;
	}
}

uint32_t xfp_batch_input(const struct xfp_round *round, const struct xfp_batch *batch, unsigned m)
{
	return round->products[round->order[batch->first + m]].x;
}

const float *xfp_batch_factors(const struct xfp_batch *batch)
{
	return batch->linear->down ? batch->linear->down + batch->w.first_column : NULL;
}

/* The weights of other matrices have replaced the factors in the caches since they were last used. */
static void prefetch_factors(const struct xfp_batch *batch)
{
	const float *factors = xfp_batch_factors(batch);

	for (size_t c = 0; factors && c < batch->w.cols; c += 16)
		__builtin_prefetch(factors + c);
}

size_t xfp_batch_columns_before(const struct xfp_batch *batch)
{
	return batch->linear->slice.first_col - batch->w.first_column;
}

/* Return whether vectors are prepared in the same way for both. */
static bool same_vectors(const struct xfp_round *round, const struct xfp_batch *a, const struct xfp_batch *b)
{
	const float *factors = xfp_batch_factors(a), *others = xfp_batch_factors(b);

	if (a->count != b->count || a->decoded != b->decoded || (!a->decoded && a->w.k != b->w.k) ||
	    a->w.cols != b->w.cols || xfp_batch_columns_before(a) != xfp_batch_columns_before(b))
		return false;
	for (unsigned m = 0; m < a->count; m++)
		if (xfp_batch_input(round, a, m) != xfp_batch_input(round, b, m))
			return false;
	return factors == others || (factors && others && !memcmp(factors, others, a->w.cols * sizeof *factors));
}

/* Find the vectors of a batch: those of the batch before it, those of another linear for the same products, or new. */
static void find_vectors(struct xfp_round *round, struct xfp_batch *batch)
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

static void add_batch(struct xfp_round *round, uint32_t expert, size_t first, size_t count, bool decoded)
{
	round->batches[round->batch_count++] = (struct xfp_batch){
		.expert = expert, .first = (unsigned)first, .count = (unsigned)count, .decoded = decoded
	};
}

void xfp_batches_make(struct xfp_round *round)
{
	order_by_expert(round);
	for (size_t first = 0, end; first < round->count; first = end) {
		uint32_t expert = round->products[round->order[first]].expert;

		for (end = first; end < round->count && round->products[round->order[end]].expert == expert;)
			end++;
		for (size_t at = first, some; at < end; at += some) {
			bool decoded = end - first >= xfp_decoded_products();
			size_t left = end - at;

			some = decoded ? xfp_panel_vectors(left) : left < XFP_MAX_BATCH ? left : XFP_MAX_BATCH;
			add_batch(round, expert, at, some, decoded);
		}
	}
	/* The first linear's batches are the pattern, so they are completed last. */
	for (size_t i = round->call->linear_count * round->batch_count; i-- > 0;) {
		struct xfp_batch *batch = &round->batches[i];

		*batch = round->batches[i % round->batch_count];
		batch->linear = round->call->linears[i / round->batch_count];
		batch->decoded = !xfp_linear_matrix(batch->linear, batch->expert, &batch->w) || batch->decoded;
	}
	for (size_t i = 0; i < round->call->linear_count * round->batch_count; i++)
		find_vectors(round, &round->batches[i]);
}
