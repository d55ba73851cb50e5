/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/description_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text/text.h"

static void add_double(FILE *out, const char *name, double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof bits);
	fprintf(out, "%s %016" PRIx64 "\n", name, bits);
}

static void add_number(FILE *out, const char *name, uint64_t number)
{
	fprintf(out, "%s %" PRIu64 "\n", name, number);
}

static void add_name(FILE *out, const char *name, const char *value)
{
	fprintf(out, "%s %s\n", name, value ? value : "-");
}

static void add_rope(FILE *out, const struct xfp_rope *rope)
{
	add_number(out, "rope", rope->scaling);
	add_number(out, "dim", rope->dim);
	add_double(out, "theta", rope->theta);
	add_double(out, "factor", rope->factor);
	add_double(out, "original_context", rope->original_context);
	add_double(out, "low_frequency", rope->low_frequency);
	add_double(out, "high_frequency", rope->high_frequency);
	add_double(out, "beta_fast", rope->beta_fast);
	add_double(out, "beta_slow", rope->beta_slow);
	add_number(out, "truncate", rope->truncate);
	add_double(out, "attention", rope->attention);
	if (rope->first)
		add_number(out, "first", rope->first);
	if (rope->interleaved)
		add_number(out, "interleaved", rope->interleaved);
	for (uint32_t i = 0; rope->longer && i < rope->dim / 2; i++)
		add_double(out, "longer", rope->longer[i]);
	for (uint32_t i = 0; rope->shorter && i < rope->dim / 2; i++)
		add_double(out, "shorter", rope->shorter[i]);
}

static void add_expert_names(FILE *out, const struct xfp_expert_names *names)
{
	add_name(out, "router", names->router);
	if (names->router_bias)
		add_name(out, "router_bias", names->router_bias);
	if (names->correction)
		add_name(out, "correction", names->correction);
	add_name(out, "gate", names->gate);
	add_name(out, "up", names->up);
	add_name(out, "down", names->down);
	add_name(out, "gate_up_stack", names->gate_up_stack);
	add_name(out, "down_stack", names->down_stack);
	if (names->transposed)
		add_number(out, "transposed", names->transposed);
	if (names->interleaved)
		add_number(out, "interleaved", names->interleaved);
	if (names->gate_up_bias) {
		add_name(out, "gate_up_bias", names->gate_up_bias);
		add_name(out, "down_bias", names->down_bias);
	}
	add_name(out, "shared_router", names->shared_router);
	add_name(out, "shared_gate", names->shared_gate);
	add_name(out, "shared_up", names->shared_up);
	add_name(out, "shared_down", names->shared_down);
}

/* Lines that older versions did not write are written only for routers that they did not know. */
static void add_router(FILE *out, const struct xfp_router *router)
{
	if (router->sigmoid)
		add_number(out, "sigmoid", router->sigmoid);
	if (router->input)
		add_number(out, "router_input", router->input);
	if (router->min_sum > 0)
		add_double(out, "least_sum", router->min_sum);
	if (router->scale != 1)
		add_double(out, "router_scale", router->scale);
	if (router->groups > 1) {
		add_number(out, "groups", router->groups);
		add_number(out, "groups_per_token", router->groups_per_token);
		add_number(out, "group_by_two", router->group_top_two);
	}
}

static void add_delta(FILE *out, const struct xfp_delta *delta)
{
	add_number(out, "key_heads", delta->key_heads);
	add_number(out, "value_heads", delta->value_heads);
	add_number(out, "key_dim", delta->key_dim);
	add_number(out, "value_dim", delta->value_dim);
	add_number(out, "kernel", delta->kernel);
	add_number(out, "by_heads", delta->by_heads);
}

static void add_latent(FILE *out, const struct xfp_latent *latent, uint32_t value_dim)
{
	add_number(out, "query_rank", latent->query_rank);
	add_number(out, "kv_rank", latent->kv_rank);
	add_number(out, "plain_dim", latent->nope_dim);
	add_number(out, "value_dim", value_dim);
}

static void add_sizes(FILE *out, const struct xfp_description *d)
{
	add_number(out, "hidden", d->hidden);
	add_number(out, "heads", d->heads);
	add_number(out, "kv_heads", d->kv_heads);
	add_number(out, "head_dim", d->head_dim);
	add_number(out, "intermediate", d->intermediate);
	add_number(out, "vocabulary", d->vocabulary);
	add_number(out, "context", d->context);
	add_number(out, "layers", d->layers);
	add_number(out, "experts", d->experts);
	add_number(out, "experts_per_token", d->experts_per_token);
	add_number(out, "expert_intermediate", d->expert_intermediate);
	add_number(out, "shared_intermediate", d->shared_intermediate);
}

static void add_computation(FILE *out, const struct xfp_description *d)
{
	add_double(out, "epsilon", d->epsilon);
	add_double(out, "norm_offset", d->norm_offset);
	add_number(out, "tied", d->tied);
	add_name(out, "attention_norm", d->norms->attention);
	add_name(out, "attention_output_norm", d->norms->attention_output);
	add_name(out, "mlp_norm", d->norms->mlp);
	add_name(out, "mlp_output_norm", d->norms->mlp_output);
	add_number(out, "query_key_norm", d->query_key_norm);
	add_number(out, "fused", d->fused);
	add_double(out, "word_scale", d->word_scale);
	add_double(out, "score_scale", d->score_scale);
	add_double(out, "score_cap", d->score_cap);
	add_double(out, "logit_cap", d->logit_cap);
	add_number(out, "activation", d->activation);
	add_number(out, "output_gate", d->output_gate);
	add_number(out, "qkv_bias", d->qkv_bias);
	add_number(out, "output_bias", d->output_bias);
	add_number(out, "mlp_bias", d->mlp_bias);
	add_number(out, "renormalise", d->router.norm_topk);
	if (d->joint_norm)
		add_number(out, "joint_norm", d->joint_norm);
	if (d->rotated_norm)
		add_number(out, "rotated_norm", d->rotated_norm);
	if (d->chunked)
		add_number(out, "chunked", d->chunked);
	if (strcmp(d->mlp, "mlp"))
		add_name(out, "mlp", d->mlp);
	if (d->temperature > 0) {
		add_double(out, "temperature", d->temperature);
		add_double(out, "temperature_floor", d->temperature_floor);
	}
	if (d->residual_scale != 1)
		add_double(out, "residual_scale", d->residual_scale);
	if (d->logit_divisor != 1)
		add_double(out, "logit_divisor", d->logit_divisor);
	if (d->sinks)
		add_number(out, "sinks", d->sinks);
	if (d->activation == XFP_CLAMPED_SWIGLU) {
		add_double(out, "swiglu_alpha", d->swiglu_alpha);
		add_double(out, "swiglu_limit", d->swiglu_limit);
	}
}

char *xfp_description_text(const struct xfp_description *d)
{
	struct xfp_text text;

	if (xfp_text_begin(&text)) {
		add_name(text.stream, "family", d->family);
		add_sizes(text.stream, d);
		add_computation(text.stream, d);
		if (d->expert_names) {
			add_expert_names(text.stream, d->expert_names);
			add_router(text.stream, &d->router);
		}
		for (uint32_t i = 0; i < d->ropes; i++)
			add_rope(text.stream, &d->rope[i]);
		add_delta(text.stream, &d->delta);
		if (d->latent.kv_rank)
			add_latent(text.stream, &d->latent, d->value_dim);
		if (d->encoder)
			add_number(text.stream, "token_types", d->token_types);
		for (uint32_t i = 0; i < d->layers; i++)
			fprintf(text.stream, "layer %" PRIu32 " %" PRIu32 " %d %d\n", d->layer[i].rope,
				d->layer[i].window, d->layer[i].delta, d->layer[i].experts);
	}
	return xfp_text_end(&text) ? text.bytes : NULL;
}
