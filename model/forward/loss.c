/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/loss.h"

#include <math.h>
#include <stdlib.h>

#include "model/forward/numbers.h"
#include "model/forward/parts.h"
#include "runtime/team.h"

#define LOGITS_BYTES 0x4000000 /* that are there at a time */

/* A softmax over the vocabulary that is taken up logit by logit, in order: what the largest so far is, and the sum of
 * e^(logit - largest). So it does not matter where parts of the vocabulary end. */
struct token_sum {
	double most, sum, wanted;
};

struct tally_task {
	const struct xfp_forward *forward;
	const uint32_t *ids;
	const float *logits;
	uint32_t first, count;
	struct token_sum *sums;
};

static void tally_token(void *context, unsigned thread, size_t t)
{
	const struct tally_task *task = context;
	const float *logits = task->logits + t * task->count;
	struct token_sum *s = &task->sums[t];

	(void)thread;
	if ((t + 1) % task->forward->length == 0)
		return;
	for (uint32_t v = 0; v < task->count; v++) {
		double logit = logits[v];

		if (logit > s->most) {
			s->sum = s->sum * xfp_exp(s->most - logit) + 1;
			s->most = logit;
		} else {
			s->sum += xfp_exp(logit - s->most);
		}
		if (task->first + v == task->ids[t + 1])
			s->wanted = logit;
	}
}

/* All of the vocabulary, for all tokens. */
static enum xfp_status tally(const struct xfp_forward *forward, const uint32_t *ids, const float *x,
			     struct token_sum *sums, struct xfp_error *err)
{
	uint32_t vocabulary = forward->description->vocabulary;
	size_t most = LOGITS_BYTES / sizeof(float) / forward->tokens;
	uint32_t part = most < 16 ? 16 : most < vocabulary ? (uint32_t)most : vocabulary;
	float *logits = xfp_floats(forward->tokens, part);
	enum xfp_status status = logits ? XFP_OK : xfp_no_memory(err);

	for (size_t t = 0; t < forward->tokens; t++)
		sums[t].most = -(double)INFINITY;
	for (uint32_t first = 0; !status && first < vocabulary; first += part) {
		struct tally_task task = { forward, ids, logits, first, part, sums };

		if (task.count > vocabulary - first)
			task.count = vocabulary - first;
		if ((status = xfp_forward_logits(forward, x, first, task.count, logits, err)) ||
		    (status = xfp_team_enter(forward->team, 0, 1, err)))
			break;
		xfp_team_run(forward->team, forward->tokens, tally_token, &task);
		xfp_team_leave(forward->team);
	}
	free(logits);
	return status;
}

static bool all_finite(const float *x, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!isfinite(x[i]))
			return false;
	}
	return true;
}

static enum xfp_status all_layers(const struct xfp_forward *forward, const uint32_t *ids,
				  void (*layers_done)(void *context, uint32_t layers), void *context, float *x,
				  struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	size_t size = forward->tokens * d->hidden;
	enum xfp_status status = xfp_forward_embed(forward, ids, x, err);

	if (!status && !all_finite(x, size))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: the word embedding has numbers that are not finite",
				xfp_weights_path(forward->weights));
	for (uint32_t layer = 0; !status && layer < d->layers; layer++) {
		if ((status = xfp_forward_layer(forward, layer, x, err)))
			break;
		if (!all_finite(x, size))
			return xfp_fail(
				err, XFP_BAD_INPUT,
				"%s: layer %u is the first that makes numbers that are not finite; verify the weights",
				xfp_weights_path(forward->weights), (unsigned)layer);
		if (layers_done)
			layers_done(context, layer + 1);
	}
	return status ? status : xfp_forward_norm(forward, x, err);
}

enum xfp_status xfp_forward_loss(const struct xfp_forward *forward, const uint32_t *ids,
				 void (*layers_done)(void *context, uint32_t layers), void *context,
				 struct xfp_loss *loss, struct xfp_error *err)
{
	float *x = xfp_floats(forward->tokens, forward->description->hidden);
	struct token_sum *sums = calloc(forward->tokens, sizeof *sums);
	enum xfp_status status = x && sums ? XFP_OK : xfp_no_memory(err);
	double sum = 0;

	if (!status && !(status = all_layers(forward, ids, layers_done, context, x, err)))
		status = tally(forward, ids, x, sums, err);
	if (!status) {
		for (size_t t = 0; t < forward->tokens; t++) {
			if ((t + 1) % forward->length)
				sum += sums[t].most - sums[t].wanted + xfp_log(sums[t].sum);
		}
		loss->predicted = forward->tokens - forward->sequences;
		loss->mean = sum / (double)loss->predicted;
		loss->perplexity = xfp_exp(loss->mean);
		if (!isfinite(loss->mean))
			status = xfp_fail(err, XFP_BAD_INPUT, "%s: the output head makes numbers that are not finite",
					  xfp_weights_path(forward->weights));
	}
	free(x);
	free(sums);
	return status;
}
