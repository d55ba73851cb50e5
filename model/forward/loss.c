/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/loss.h"

#include <math.h>
#include <stdlib.h>

#include "model/forward/numbers.h"
#include "model/forward/parts.h"
#include "runtime/team.h"

#define MIN_PART 16 /* least rows of the head for one pass over the tokens */

/* A softmax over the vocabulary, accumulated logit by logit, in order: the maximum so far, and the sum of e^(logit -
 * maximum). So the division of the vocabulary into parts does not matter. */
struct token_sum {
	double max, sum, wanted;
	double difference; /* of a source: c in loss.h */
	uint32_t best;
	bool broken; /* a logit is not finite, which the sums may not show */
};

struct tally_task {
	const struct xfp_forward *forward;
	const uint32_t *ids;
	const float *logits, *source_logits; /* NULL without a source */
	uint32_t first, count;
	struct token_sum *sums, *source_sums;
};

static void add_logit(struct token_sum *s, double logit, double difference, uint32_t v, uint32_t wanted)
{
	s->broken = s->broken || !isfinite(logit);
	if (logit > s->max) {
		double less = xfp_exp(s->max - logit);

		s->sum = s->sum * less + 1;
		s->difference = s->difference * less + difference;
		s->max = logit;
		s->best = v;
	} else {
		double part = xfp_exp(logit - s->max);

		s->sum += part;
		s->difference += part * difference;
	}
	if (v == wanted)
		s->wanted = logit;
}

static void tally_token(void *context, unsigned thread, size_t t)
{
	const struct tally_task *task = context;
	const float *logits = task->logits + t * task->count;
	const float *source = task->source_logits ? task->source_logits + t * task->count : NULL;

	(void)thread;
	if ((t + 1) % task->forward->length == 0)
		return;
	for (uint32_t v = 0; v < task->count; v++) {
		add_logit(&task->sums[t], logits[v], 0, task->first + v, task->ids[t + 1]);
		if (source)
			add_logit(&task->source_sums[t], source[v], (double)source[v] - logits[v], task->first + v,
				  task->ids[t + 1]);
	}
}

static double log_of_sum(const struct token_sum *s)
{
	return s->max + xfp_log(s->sum);
}

static enum xfp_status check_finite(const struct token_sum *s, const struct xfp_forward *forward, struct xfp_error *err)
{
	if (!s->broken)
		return XFP_OK;
	return xfp_fail(err, XFP_BAD_INPUT, "%s: logits are not finite; verify the weights",
			xfp_weights_path(forward->weights));
}

static enum xfp_status compute_losses(const struct tally_task *task, const struct xfp_forward *source,
				      struct xfp_token_loss *losses, struct xfp_error *err)
{
	for (size_t t = 0; t < task->forward->tokens; t++) {
		const struct token_sum *s = &task->sums[t], *of_source = &task->source_sums[t];
		double divergence;
		enum xfp_status status;

		if ((t + 1) % task->forward->length == 0)
			continue;
		if ((status = check_finite(s, task->forward, err)) ||
		    (source && (status = check_finite(of_source, source, err))))
			return status;
		losses[t] = (struct xfp_token_loss){ .nats = log_of_sum(s) - s->wanted };
		if (!source)
			continue;
		divergence = of_source->difference / of_source->sum - log_of_sum(of_source) + log_of_sum(s);
		losses[t].source_nats = log_of_sum(of_source) - of_source->wanted;
		losses[t].divergence = divergence > 0 ? divergence : 0; /* rounding may make it negative */
		losses[t].agrees = of_source->best == s->best;
	}
	return XFP_OK;
}

static enum xfp_status logits_of(const struct xfp_last_activations *last, uint32_t first, uint32_t count, float *logits,
				 struct xfp_error *err)
{
	struct xfp_forward one = *last->forward;
	enum xfp_status status = XFP_OK;

	if (!last->single)
		return xfp_forward_logits(last->forward, last->x, first, count, logits, err);
	one.tokens = 1;
	for (size_t t = 0; !status && t < last->forward->tokens; t++)
		status = xfp_forward_logits(&one, last->x + t * one.description->hidden, first, count,
					    logits + t * count, err);
	return status;
}

/* The whole vocabulary, for all tokens. */
static enum xfp_status tally(const struct xfp_last_activations *model, const struct xfp_last_activations *source,
			     uint32_t part, struct tally_task *task, float *logits, float *source_logits,
			     struct xfp_error *err)
{
	const struct xfp_forward *forward = model->forward;
	uint32_t vocabulary = forward->description->vocabulary;
	enum xfp_status status = XFP_OK;

	for (size_t t = 0; t < forward->tokens; t++)
		task->sums[t].max = task->source_sums[t].max = -(double)INFINITY;
	task->logits = logits;
	task->source_logits = source_logits;
	for (task->first = 0; !status && task->first < vocabulary; task->first += part) {
		task->count = vocabulary - task->first < part ? vocabulary - task->first : part;
		if ((status = logits_of(model, task->first, task->count, logits, err)) ||
		    (source && (status = logits_of(source, task->first, task->count, source_logits, err))) ||
		    (status = xfp_team_enter(forward->team, 0, 1, err)))
			break;
		xfp_team_run(forward->team, forward->tokens, tally_token, task);
		xfp_team_leave(forward->team);
	}
	return status;
}

enum xfp_status xfp_token_losses(const struct xfp_last_activations *model, const struct xfp_last_activations *source,
				 const uint32_t *ids, size_t logits_bytes, struct xfp_token_loss *losses,
				 struct xfp_error *err)
{
	const struct xfp_forward *forward = model->forward;
	uint32_t vocabulary = forward->description->vocabulary;
	size_t max = logits_bytes / sizeof(float) / forward->tokens;
	uint32_t part = max < MIN_PART ? MIN_PART : max < vocabulary ? (uint32_t)max : vocabulary;
	float *logits = xfp_floats(forward->tokens, part), *source_logits = NULL;
	struct tally_task task = { .forward = forward, .ids = ids };
	enum xfp_status status = XFP_OK;

	task.sums = calloc(forward->tokens, sizeof *task.sums);
	task.source_sums = calloc(forward->tokens, sizeof *task.source_sums);
	if (source)
		source_logits = xfp_floats(forward->tokens, part);
	if (!logits || !task.sums || !task.source_sums || (source && !source_logits))
		status = xfp_no_memory(err);
	if (!status && !(status = xfp_forward_norm(forward, model->x, err)) && source)
		status = xfp_forward_norm(source->forward, source->x, err);
	if (!status)
		status = tally(model, source, part, &task, logits, source_logits, err);
	if (!status)
		status = compute_losses(&task, source ? source->forward : NULL, losses, err);
	free(logits);
	free(source_logits);
	free(task.sums);
	free(task.source_sums);
	return status;
}

int xfp_compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

enum xfp_status xfp_loss_of(const struct xfp_token_loss *losses, size_t sequences, size_t length, struct xfp_loss *loss,
			    struct xfp_error *err)
{
	size_t count = 0;
	double *divergence = malloc(sequences * length * sizeof *divergence), nats = 0, source = 0, difference = 0,
	       same = 0;

	if (!divergence)
		return xfp_no_memory(err);
	for (size_t t = 0; t < sequences * length; t++) {
		if ((t + 1) % length == 0)
			continue;
		nats += losses[t].nats;
		source += losses[t].source_nats;
		difference += losses[t].divergence;
		same += losses[t].agrees;
		divergence[count++] = losses[t].divergence;
	}
	qsort(divergence, count, sizeof *divergence, xfp_compare_doubles);
	*loss = (struct xfp_loss){ .predicted = count,
				   .mean = nats / (double)count,
				   .perplexity = xfp_exp(nats / (double)count),
				   .source_mean = source / (double)count,
				   .source_perplexity = xfp_exp(source / (double)count),
				   .divergence = difference / (double)count,
				   .divergence_99 = divergence[(count * 99 + 99) / 100 - 1],
				   .divergence_most = divergence[count - 1],
				   .agreement = same / (double)count };
	free(divergence);
	return XFP_OK;
}
