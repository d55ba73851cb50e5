/* SPDX-License-Identifier: Apache-2.0 */
#include "model/sample.h"

#include <stdbool.h>

#include "model/forward/numbers.h"

/* e^-46 of the largest probability is below the resolution of the random numbers. */
#define NOTHING 46

/* Each bit of x changes about half of the result's bits. */
static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
	return x ^ x >> 32;
}

double xfp_random_uniform(uint64_t seed, uint64_t sequence, uint64_t position)
{
	uint64_t x = mixed(seed + 0x9e3779b97f4a7c15);

	x = mixed((x ^ sequence) + 0x9e3779b97f4a7c15);
	x = mixed((x ^ position) + 0x9e3779b97f4a7c15);
	return (double)(x >> 11) * 0x1p-53;
}

static uint32_t largest(const float *logits, uint32_t vocabulary)
{
	uint32_t best = 0;

	for (uint32_t v = 1; v < vocabulary; v++) {
		if (logits[v] > logits[best])
			best = v;
	}
	return best;
}

/* ---- the most probable tokens, by a heap -------------------------------------------------------- */

static bool before(const struct xfp_token_candidate *a, const struct xfp_token_candidate *b)
{
	return a->weight > b->weight || (a->weight == b->weight && a->id < b->id);
}

static void sink(struct xfp_token_candidate *heap, size_t count, size_t at)
{
	struct xfp_token_candidate moved = heap[at];

	for (size_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &moved))
			break;
		heap[at] = heap[child];
	}
	heap[at] = moved;
}

/* Move the most probable of the remaining tokens to the end of the heap. */
static double pop(struct xfp_token_candidate *heap, size_t count)
{
	struct xfp_token_candidate top = heap[0];

	heap[0] = heap[count - 1];
	heap[count - 1] = top;
	sink(heap, count - 1, 0);
	return top.weight;
}

/* Move the kept tokens to the end, the most probable last, and return their count. `weight` is the sum of all weights,
 * and becomes that of the kept ones. */
static size_t keep(const struct xfp_sampling *s, struct xfp_token_candidate *heap, size_t count, double *weight)
{
	size_t max = s->top_k && s->top_k < count ? s->top_k : count, popped = 0, kept = 0;
	double wanted = *weight, sum = 0;

	for (size_t i = count / 2; i-- > 0;)
		sink(heap, count, i);
	if (max < count) {
		for (wanted = 0; popped < max; popped++)
			wanted += pop(heap, count - popped);
	}
	wanted *= s->top_p;
	for (; kept < max && (!kept || sum < wanted); kept++)
		sum += kept < popped ? heap[count - 1 - kept].weight : pop(heap, count - kept);
	*weight = sum;
	return kept;
}

uint32_t xfp_sample(const struct xfp_sampling *s, uint64_t sequence, uint64_t position, const float *logits,
		    uint32_t vocabulary, struct xfp_token_candidate *candidates)
{
	uint32_t best = largest(logits, vocabulary);
	size_t count = 0, kept;
	double weight = 0, drawn;

	if (s->temperature <= 0)
		return best;
	for (uint32_t v = 0; v < vocabulary; v++) {
		double less = ((double)logits[v] - logits[best]) / s->temperature;

		if (less > -NOTHING)
			candidates[count++] = (struct xfp_token_candidate){ xfp_exp(less), v };
	}
	for (size_t i = count; i-- > 0;)
		weight += candidates[i].weight;
	kept = s->top_k || s->top_p < 1 ? keep(s, candidates, count, &weight) : count;
	drawn = xfp_random_uniform(s->seed, sequence, position) * weight;
	for (size_t i = 0; i + 1 < kept; i++) {
		drawn -= candidates[count - 1 - i].weight;
		if (drawn < 0)
			return candidates[count - 1 - i].id;
	}
	return candidates[count - kept].id;
}
