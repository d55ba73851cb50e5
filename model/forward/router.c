/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/router.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/forward/numbers.h"
#include "model/forward/parts.h"

/* Memory for one token, by expert. */
struct selection {
	float *correction; /* NULL: none */
	double *score;     /* by which experts are selected */
	bool *taken;
};

/* Turn logits into probabilities. */
static void softmax(float *logit, uint32_t count)
{
	double max = logit[0], sum = 0;

	for (uint32_t e = 0; e < count; e++)
		max = logit[e] > max ? logit[e] : max;
	for (uint32_t e = 0; e < count; e++)
		sum += xfp_exp(logit[e] - max);
	for (uint32_t e = 0; e < count; e++)
		logit[e] = (float)(xfp_exp(logit[e] - max) / sum);
}

/* The largest score that is not taken, of equal ones the first. The first if all are NaN. */
static uint32_t take_largest(const double *score, bool *taken, uint32_t count)
{
	uint32_t best = 0;

	while (taken[best])
		best++;
	for (uint32_t e = best + 1; e < count; e++) {
		if (!taken[e] && score[e] > score[best])
			best = e;
	}
	taken[best] = true;
	return best;
}

/* The largest score of a group, or the sum of its two largest. */
static double group_score(const double *score, uint32_t size, bool two)
{
	double first = -INFINITY, second = -INFINITY;

	for (uint32_t e = 0; e < size; e++) {
		if (score[e] > first) {
			second = first;
			first = score[e];
		} else if (score[e] > second) {
			second = score[e];
		}
	}
	return two ? (float)(first + second) : first;
}

/* Exclude the experts of all groups but the best. `groups` has memory for their scores, and `taken` for their flags. */
static void exclude_groups(const struct xfp_router *router, struct selection *selection, double *groups,
			   uint32_t experts)
{
	uint32_t size = experts / router->groups;

	for (uint32_t g = 0; g < router->groups; g++)
		groups[g] = group_score(selection->score + g * size, size, router->group_top_two);
	memset(selection->taken, 0, router->groups * sizeof *selection->taken);
	for (uint32_t i = 0; i < router->groups_per_token; i++)
		take_largest(groups, selection->taken, router->groups);
	for (uint32_t e = 0; e < experts; e++) {
		if (!selection->taken[e / size])
			selection->score[e] = -INFINITY;
	}
}

/* Replace the logits of one token by factors. Returns false if scores are not finite; but one logit of a softmax makes
 * all factors, and the activations, NaN. */
static bool select_experts(const struct xfp_description *d, struct selection *selection, float *weight)
{
	const struct xfp_router *router = &d->router;
	double sum = 0, scale = router->scale;

	if (!router->sigmoid)
		softmax(weight, d->experts);
	for (uint32_t e = 0; e < d->experts; e++) {
		/* Sigmoids of large logits are equal. */
		selection->score[e] = weight[e];
		if (router->sigmoid)
			weight[e] = (float)xfp_sigmoid(weight[e]);
		if (selection->correction)
			selection->score[e] = weight[e] + selection->correction[e];
		if ((router->sigmoid || selection->correction) && !isfinite(selection->score[e]))
			return false;
	}
	if (router->groups > 1)
		exclude_groups(router, selection, selection->score + d->experts, d->experts);
	memset(selection->taken, 0, d->experts * sizeof *selection->taken);
	for (uint32_t i = 0; i < d->experts_per_token; i++)
		sum += weight[take_largest(selection->score, selection->taken, d->experts)];
	sum = sum < router->min_sum ? router->min_sum : sum;
	for (uint32_t e = 0; e < d->experts; e++) {
		if (!selection->taken[e])
			weight[e] = 0;
		else if (weight[e] != 0)
			weight[e] = (float)((router->norm_topk ? (float)(weight[e] / sum) : weight[e]) * scale);
	}
	return true;
}

enum xfp_status xfp_forward_route(const struct xfp_forward *forward, uint32_t layer, const float *x, float *weights,
				  struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	const char *correction_name = xfp_correction_name(d->expert_names, forward->names->stacked);
	char tensor[XFP_TENSOR_NAME], bias[XFP_TENSOR_NAME], correction[XFP_TENSOR_NAME];
	struct xfp_linear_map router = { .input = XFP_INPUT_MLP,
					 .tensor = tensor,
					 .bias = d->expert_names->router_bias ? bias : NULL,
					 .rows = d->experts,
					 .cols = d->hidden };
	struct selection selection = { .score = calloc((size_t)d->experts + d->router.groups, sizeof *selection.score),
				       .taken = calloc(d->experts, sizeof *selection.taken) };
	float *numbers = xfp_floats(1, d->experts);
	enum xfp_status status = selection.score && selection.taken && numbers ? XFP_OK : xfp_no_memory(err);

	xfp_layer_tensor(tensor, forward->names, layer, xfp_router_name(d->expert_names, forward->names->stacked));
	if (d->expert_names->router_bias)
		xfp_layer_tensor(bias, forward->names, layer, d->expert_names->router_bias);
	if (!status && correction_name) {
		xfp_layer_tensor(correction, forward->names, layer, correction_name);
		status = xfp_forward_vector(forward, correction, d->experts, selection.correction = numbers, err);
	}
	if (!status)
		status = xfp_forward_map(forward, &router, x, forward->tokens, weights, err);
	for (size_t t = 0; !status && t < forward->tokens; t++)
		if (!select_experts(d, &selection, weights + t * d->experts))
			status = xfp_fail(err, XFP_BAD_INPUT, "%s: router scores of layer %u are not finite",
					  xfp_weights_path(forward->weights), (unsigned)layer);
	free(selection.score);
	free(selection.taken);
	free(numbers);
	return status;
}
