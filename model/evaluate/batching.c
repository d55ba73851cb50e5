/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batching.c - choose how many sequences pass through the models together. Results do not depend on it.
 */
#include "model/evaluate/batching.h"

#include "base/bytes.h"
#include "base/text/size.h"
#include "model/batching.h"
#include "model/evaluate/single.h"
#include "model/forward/memory.h"
#include "runtime/team.h"

#define MAX_LOGITS ((uint64_t)64 << 20)
#define MIN_LOGITS ((uint64_t)1 << 20)
#define RESERVE ((uint64_t)16 << 20) /* pages of libraries and of a bundle, and short-lived allocations */
#define TOKEN_BYTES 128              /* bytes: sums over the vocabulary */

static uint64_t activations(const struct xfp_evaluation *e, uint64_t copies, uint64_t sequences)
{
	return xfp_mul_sat(
		xfp_mul_sat(copies * e->evaluated.model.description->hidden * sizeof(float), e->tokens.length),
		sequences);
}

static uint64_t layer_bytes(const struct xfp_evaluation *e, const struct xfp_evaluated *model, uint64_t sequences)
{
	const struct xfp_forward_batch batch = { .arithmetic = e->request.fast ? XFP_FAST : XFP_REPRODUCIBLE,
						 .positions = e->tokens.length,
						 .tokens = e->request.single && model == &e->evaluated
								   ? 1
								   : xfp_mul_sat(sequences, e->tokens.length),
						 .threads = xfp_team_threads(e->team) };

	return xfp_forward_bytes(model->model.description, &batch);
}

/* Everything except the activations between layers. The model's layer computes the source's activations, too. */
static uint64_t needed(void *context, uint64_t sequences)
{
	const struct xfp_evaluation *e = context;
	uint64_t copies = xfp_evaluation_has_source(e) ? 2 : 1,
		 layer = layer_bytes(e, &e->evaluated, copies * sequences);
	uint64_t logits = xfp_add_sat(copies * MIN_LOGITS, sequences * e->tokens.length * TOKEN_BYTES);
	uint64_t source = xfp_evaluation_has_source(e) ? layer_bytes(e, &e->source, sequences) : 0;

	return xfp_add_sat(xfp_add_sat(activations(e, copies == 2 ? 3 : 1, sequences), layer > source ? layer : source),
			   logits);
}

enum xfp_status xfp_evaluation_batching(struct xfp_evaluation *e, struct xfp_error *err)
{
	uint64_t always = xfp_resident_bytes() + RESERVE +
			  xfp_evaluation_tokens(e) * (sizeof(struct xfp_token_loss) + sizeof(double)) +
			  (e->request.single ? xfp_single_bytes(e) : 0);
	uint64_t memory = e->request.memory ? e->request.memory : xfp_default_memory(),
		 copies = xfp_evaluation_has_source(e) ? 2 : 1;
	uint64_t streams = activations(e, copies, e->tokens.sequences), all = xfp_add_sat(always, needed(e, 1)), left;
	char given[32], wanted[32];

	if (e->request.memory && all > memory)
		return xfp_fail(err, XFP_FAILED,
				"--memory %s: one sequence of %zu tokens and some rows of each matrix need %s; "
				"allow that much, or use shorter sequences",
				xfp_size_text(memory, e->request.memory_binary, given), e->tokens.length,
				xfp_size_text_rounded_up(all, e->request.memory_binary, wanted));
	e->batching.spilled = xfp_add_sat(xfp_add_sat(always, streams), needed(e, e->tokens.sequences)) > memory;
	e->batching.sequences =
		e->batching.spilled
			? xfp_largest_batch(e->tokens.sequences, memory > always ? memory - always : 0, needed, e)
			: e->tokens.sequences;
	all = xfp_add_sat(xfp_add_sat(always, needed(e, e->batching.sequences)), e->batching.spilled ? 0 : streams);
	left = memory > all ? (memory - all) / copies : 0;
	e->batching.logits_bytes = MIN_LOGITS + (left < MAX_LOGITS ? left : MAX_LOGITS);
	return XFP_OK;
}
