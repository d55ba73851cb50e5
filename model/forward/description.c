/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/description.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoints/config_json.h"
#include "model/forward/fields.h"
#include "model/forward/model_family.h"
#include "model/forward/rope_read.h"

/* Whether the layer ignores positions: it is 0 in no_rope_layers, or every no_rope_layer_interval-th. */
static bool has_no_rope(struct xfp_fields *f, const struct xfp_model_family *family, uint32_t layer)
{
	json_t *list = xfp_field(f->root, "no_rope_layers");

	if (!family->no_rope)
		return false;
	if (!json_array_size(list))
		return (layer + 1) % xfp_field_count(f, "no_rope_layer_interval", family->no_rope) == 0;
	if (!json_is_integer(json_array_get(list, layer)))
		xfp_field_wrong(f, "no_rope_layers", "does not have 0 or 1 for each layer");
	return !json_integer_value(json_array_get(list, layer));
}

/* Whether the family's rule gives the layer a window, if there are windows at all. */
static bool has_window(struct xfp_fields *f, const struct xfp_model_family *family, uint32_t layer)
{
	json_t *types = xfp_field(f->root, "layer_types");
	const char *type = json_string_value(json_array_get(types, layer));
	const char *local = family->window == XFP_WINDOW_CHUNKS ? "chunked_attention" : "sliding_attention";

	if (family->never_window && type && strcmp(type, "full_attention") && xfp_field(f->root, "sliding_window"))
		xfp_field_wrong(f, "layer_types", "names windows, which are not supported in this family");
	if (family->window == XFP_WINDOW_NEVER)
		return false;
	if (family->window == XFP_WINDOW_ALWAYS || family->window == XFP_WINDOW_IF_USED)
		return true;
	if (types && (!type || (strcmp(type, local) && strcmp(type, "full_attention"))))
		xfp_field_wrong(f, "layer_types",
				family->window == XFP_WINDOW_CHUNKS
					? "does not name, for each layer, chunked_attention or full_attention"
					: "does not name, for each layer, sliding_attention or full_attention");
	if (type)
		return !strcmp(type, local);
	if (family->window == XFP_WINDOW_CHUNKS)
		return !has_no_rope(f, family, layer);
	if (family->window == XFP_WINDOW_BY_LAYERS)
		return layer >= xfp_field_count_or_zero(f, "max_window_layers", 28);
	if (family->window == XFP_WINDOW_BY_TYPES)
		return true;
	return (layer + 1) % (family->pattern_key ? xfp_field_count(f, "sliding_window_pattern", family->pattern)
						  : family->pattern) !=
	       0;
}

/* null disables the window, also if the family has a default. */
static uint32_t window_of(struct xfp_fields *f, const struct xfp_model_family *family)
{
	const char *key = family->window == XFP_WINDOW_CHUNKS ? "attention_chunk_size" : "sliding_window";
	bool asked = family->window == XFP_WINDOW_IF_USED || family->window == XFP_WINDOW_BY_LAYERS;

	if (family->window == XFP_WINDOW_NEVER || (asked && !xfp_field_flag(f, "use_sliding_window", false)))
		return 0;
	if (!json_object_get(f->root, key))
		return family->window_size;
	return xfp_field(f->root, key) ? xfp_field_count(f, key, 0) : 0;
}

/* Without layer_types, every full_attention_interval-th layer has full attention. */
static bool is_delta(struct xfp_fields *f, const struct xfp_model_family *family, uint32_t layer)
{
	json_t *types = xfp_field(f->root, "layer_types");
	const char *type = json_string_value(json_array_get(types, layer));

	if (!family->delta)
		return false;
	if (!types)
		return (layer + 1) % xfp_field_count(f, "full_attention_interval", 4) != 0;
	if (!type || (strcmp(type, "linear_attention") && strcmp(type, "full_attention")))
		xfp_field_wrong(f, "layer_types", "does not name, for each layer, linear_attention or full_attention");
	return type && !strcmp(type, "linear_attention");
}

static void read_delta(struct xfp_fields *f, const struct xfp_model_family *family, struct xfp_description *d)
{
	struct xfp_delta *delta = &d->delta;

	delta->key_heads = xfp_field_count(f, "linear_num_key_heads", 0);
	delta->value_heads = xfp_field_count(f, "linear_num_value_heads", 0);
	delta->key_dim = xfp_field_count(f, "linear_key_head_dim", 0);
	delta->value_dim = xfp_field_count(f, "linear_value_head_dim", 0);
	delta->kernel = xfp_field_count(f, "linear_conv_kernel_dim", 0);
	delta->by_heads = family->delta == XFP_DELTA_BY_HEADS;
	if (delta->value_heads % delta->key_heads)
		xfp_field_wrong(f, "linear_num_value_heads", "is not a multiple of linear_num_key_heads");
	if (d->activation != XFP_SILU)
		xfp_field_wrong(f, "hidden_act",
				"is not silu, the only activation of linear attention that is supported");
}

static bool listed(json_t *list, uint32_t number)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (json_integer_value(json_array_get(list, i)) == (json_int_t)number)
			return true;
	}
	return false;
}

/* Layers that have no experts although the family gives them to all. */
static bool is_dense(struct xfp_fields *f, const struct xfp_model_family *family, uint32_t layer)
{
	json_t *types = family->mlp_types ? xfp_field(f->root, "mlp_layer_types") : NULL;
	const char *type = json_string_value(json_array_get(types, layer));

	if (!family->leading_dense)
		return false;
	if (family->mlp_types && !types)
		return layer < family->leading;
	if (!family->mlp_types)
		return layer < xfp_field_count_or_zero(f, "first_k_dense_replace", family->leading);
	if (!type || (strcmp(type, "dense") && strcmp(type, "sparse")))
		xfp_field_wrong(f, "mlp_layer_types", "does not name, for each layer, dense or sparse");
	return type && !strcmp(type, "dense");
}

static bool has_experts(struct xfp_fields *f, const struct xfp_model_family *family, uint32_t layer)
{
	const struct xfp_expert_keys *keys = family->expert_keys;

	if (!family->experts)
		return false;
	if (keys && keys->layers && xfp_field(f->root, keys->layers))
		return listed(xfp_field(f->root, keys->layers), layer);
	if (keys && keys->interval) {
		json_t *last = keys->last_layer ? xfp_field(f->root, keys->last_layer) : NULL;
		bool to_end = !last || (json_is_integer(last) && json_integer_value(last) == -1);

		return (!keys->first_layer || layer >= xfp_field_count_or_zero(f, keys->first_layer, 1)) &&
		       (to_end || layer <= xfp_field_count_or_zero(f, keys->last_layer, 0)) &&
		       (layer + 1) % xfp_field_count(f, keys->interval, 1) == 0;
	}
	if (family->every_layer)
		return !is_dense(f, family, layer);
	return (layer + 1) % xfp_field_count(f, "decoder_sparse_step", 1) == 0 &&
	       !listed(xfp_field(f->root, "mlp_only_layers"), layer);
}

static bool is_grouped(struct xfp_fields *f)
{
	const char *method = json_string_value(xfp_field(f->root, "topk_method"));

	if (method && strcmp(method, "greedy") && strcmp(method, "group_limited_greedy"))
		xfp_field_wrong(f, "topk_method", "is not supported; greedy and group_limited_greedy are");
	return method && !strcmp(method, "group_limited_greedy");
}

/* A text that the config may omit. */
static void expect_text(struct xfp_fields *f, const char *key, const char *text, const char *otherwise)
{
	json_t *value = xfp_field(f->root, key);

	if (value && (!json_is_string(value) || strcmp(json_string_value(value), text)))
		xfp_field_wrong(f, key, otherwise);
}

static void read_router(struct xfp_fields *f, const struct xfp_model_family *family, const char *per_token,
			struct xfp_description *d)
{
	static const struct xfp_router_rule plain = { 0 };
	const struct xfp_router_rule *rule = family->router ? family->router : &plain;
	struct xfp_router *router = &d->router;

	expect_text(f, "scoring_func", rule->sigmoid ? "sigmoid" : "softmax",
		    rule->sigmoid ? "is not sigmoid, as this family requires"
				  : "is not softmax, as this family requires");
	if (rule->group_top_two)
		expect_text(f, "topk_method", "noaux_tc", "is not noaux_tc, as this family requires");
	router->sigmoid = rule->sigmoid;
	router->input = rule->input;
	router->min_sum = rule->min_sum;
	if (rule->min_sum_key)
		router->min_sum = xfp_field_number(f, f->root, rule->min_sum_key, rule->min_sum);
	router->norm_topk = family->norm_topk || (!family->never_norm_topk &&
						  xfp_field_flag(f, "norm_topk_prob", family->norm_topk_default));
	router->scale = rule->scale > 0 ? xfp_field_number(f, f->root, "routed_scaling_factor", rule->scale) : 1;
	router->groups = router->groups_per_token = 1;
	if (!rule->groups && !(rule->by_method && is_grouped(f)))
		return;
	router->group_top_two = rule->group_top_two;
	router->groups = xfp_field_count(f, "n_group", rule->groups);
	router->groups_per_token = xfp_field_count(f, "topk_group", rule->groups_per_token);
	if (d->experts % router->groups)
		xfp_field_wrong(f, "n_group", "does not divide the number of experts" XFP_OWN_CONFIG);
	else if (router->groups_per_token > router->groups)
		xfp_field_wrong(f, "topk_group", "is more than there are groups" XFP_OWN_CONFIG);
	else if (d->experts_per_token > d->experts / router->groups * router->groups_per_token)
		xfp_field_wrong(f, per_token, "is more than the experts of topk_group groups" XFP_OWN_CONFIG);
	else if (router->group_top_two && router->groups > 1 && d->experts / router->groups < 2)
		xfp_field_wrong(f, "n_group", "leaves groups of one expert, but two are compared" XFP_OWN_CONFIG);
}

/* The width of all shared experts, which are stored as one. A count of null means 0. */
static uint32_t read_shared_width(struct xfp_fields *f, const struct xfp_model_family *family,
				  const struct xfp_expert_keys *keys, uint32_t expert_width)
{
	bool none = keys->shared && json_is_null(json_object_get(f->root, keys->shared));
	uint64_t count = none           ? 0
			 : keys->shared ? xfp_field_count_or_zero(f, keys->shared, family->shared ? family->shared : 1)
					: 1;

	if (count * expert_width <= INT32_MAX)
		return (uint32_t)(count * expert_width);
	xfp_field_wrong(f, keys->shared, "is too large for the width of the experts" XFP_OWN_CONFIG);
	return 1;
}

/* The key, or its alias if the config has that. */
static const char *key_of(const struct xfp_fields *f, const char *key, const char *alias)
{
	return alias && xfp_field(f->root, alias) ? alias : key;
}

static void read_experts(struct xfp_fields *f, const struct xfp_model_family *family, struct xfp_description *d)
{
	static const struct xfp_expert_keys usual = { .experts = "num_experts", .per_token = "num_experts_per_tok" };
	const struct xfp_expert_keys *keys = family->expert_keys ? family->expert_keys : &usual;
	const char *experts = key_of(f, keys->experts, keys->experts_alias);
	const char *per_token = key_of(f, keys->per_token, keys->per_token_alias);

	d->experts = xfp_field_count(f, experts, 0);
	d->experts_per_token = xfp_field_count(f, per_token, 0);
	d->expert_intermediate = family->dense_width
					 ? d->intermediate
					 : xfp_field_count(f, keys->width ? keys->width : "moe_intermediate_size", 0);
	if (family->experts->shared_router)
		d->shared_intermediate = xfp_field_count(f, "shared_expert_intermediate_size", 0);
	else if (family->experts->shared_gate)
		d->shared_intermediate = read_shared_width(f, family, keys, d->expert_intermediate);
	d->expert_names = family->experts;
	if (d->experts_per_token > d->experts)
		xfp_field_wrong(f, per_token, "is more than there are experts" XFP_OWN_CONFIG);
	else
		read_router(f, family, per_token, d);
}

static void read_layers(struct xfp_fields *f, const struct xfp_model_family *family, struct xfp_description *d)
{
	json_t *types = xfp_field(f->root, "layer_types");
	bool typed = family->delta || (family->window != XFP_WINDOW_NEVER && family->window != XFP_WINDOW_ALWAYS &&
				       family->window != XFP_WINDOW_IF_USED);
	uint32_t window = window_of(f, family);

	if (typed && types && json_array_size(types) != d->layers)
		xfp_field_wrong(f, "layer_types", "does not have an entry for each of num_hidden_layers");
	for (uint32_t i = 0; i < d->layers; i++) {
		bool windowed = has_window(f, family, i);

		d->layer[i].window = windowed ? window : 0;
		d->layer[i].rope = (family->no_rope ? has_no_rope(f, family, i) : windowed) ? d->ropes - 1 : 0;
		d->layer[i].delta = is_delta(f, family, i);
		d->layer[i].experts = has_experts(f, family, i);
	}
}

/* Multimodal models nest the text model under text_config, which may have a model_type of its own. */
static const struct xfp_model_family *find_family(struct xfp_fields *f)
{
	json_t *text = xfp_field(f->outer, "text_config");
	const char *type = json_string_value(xfp_field(f->outer, "model_type")), *inner;
	char list[XFP_MODEL_FAMILY_LIST];
	const struct xfp_model_family *family;

	f->root = json_is_object(text) ? text : f->outer;
	if ((inner = json_string_value(xfp_field(f->root, "model_type"))))
		type = inner;
	/* As in transformers, which does not do this for a nested text_config. */
	if (type && !strcmp(type, "mistral") && f->root == f->outer && json_object_get(f->root, "layer_types"))
		type = "ministral";
	if ((family = xfp_model_family_find(type)))
		return family;
	xfp_model_family_list(list);
	f->status = xfp_fail(
		f->err, XFP_BAD_INPUT,
		"%s: models of type %s are not supported (convert and verify may support them); supported types: %s",
		f->where, type ? type : "unknown", list);
	return NULL;
}

/* tie_word_embeddings of the config, or of its text_config. As in transformers, gemma3 and qwen3_5 ignore the latter,
 * since they nest text models of their own type. */
static bool is_tied(struct xfp_fields *f, bool otherwise)
{
	bool own = f->root != f->outer && xfp_model_family_find(json_string_value(xfp_field(f->outer, "model_type")));
	bool inner = xfp_field_flag(f, "tie_word_embeddings", otherwise);
	struct xfp_fields outer = *f;
	bool tied;

	outer.root = f->outer;
	tied = xfp_field_flag(&outer, "tie_word_embeddings", own ? otherwise : inner);
	f->status = f->status ? f->status : outer.status;
	return tied;
}

static enum xfp_activation activation_of(struct xfp_fields *f, const struct xfp_model_family *family)
{
	static const struct {
		const char *name;
		enum xfp_activation activation;
	} names[] = {
		{ "silu", XFP_SILU },          { "swish", XFP_SILU },
		{ "gelu", XFP_GELU },          { "gelu_pytorch_tanh", XFP_GELU_TANH },
		{ "gelu_new", XFP_GELU_TANH },
	};
	const char *key = family->activation_key ? family->activation_key : "hidden_act";
	const char *name = json_string_value(xfp_field(f->root, key));

	for (size_t i = 0; name && i < sizeof names / sizeof *names; i++) {
		if (!strcmp(name, names[i].name))
			return names[i].activation;
	}
	if (xfp_field(f->root, key))
		xfp_field_wrong(f, key, "is not supported; silu, gelu and gelu_pytorch_tanh are");
	return family->activation;
}

/* null disables the cap, also if the family has a default. */
static double cap_of(struct xfp_fields *f, const char *key, double otherwise)
{
	if (xfp_field(f->root, key))
		return xfp_field_number(f, f->root, key, 0);
	return json_object_get(f->root, key) ? 0 : otherwise;
}

static void read_scales(struct xfp_fields *f, const struct xfp_model_family *family, struct xfp_description *d)
{
	double scores = family->scaled ? xfp_field_number(f, f->root, "query_pre_attn_scalar", 256) : d->head_dim;

	d->word_scale = family->scaled || family->words_scaled ? (float)sqrt((double)d->hidden) : 1;
	d->score_scale = 1 / sqrt(scores);
	d->residual_scale = d->logit_divisor = 1;
	if (family->multiplied) {
		d->word_scale = (float)xfp_field_number(f, f->root, "embedding_multiplier", 1);
		d->score_scale = xfp_field_number(f, f->root, "attention_multiplier", 1);
		d->residual_scale = xfp_field_number(f, f->root, "residual_multiplier", 1);
		d->logit_divisor = xfp_field_number(f, f->root, "logits_scaling", 1);
	}
	d->score_cap = family->score_capped ? cap_of(f, "attn_logit_softcapping", family->default_cap) : 0;
	d->logit_cap = family->scaled ? cap_of(f, "final_logit_softcapping", family->default_logits) : 0;
}

/* transformers ignores head_dim and num_key_value_heads here, but fails if the latter is not the number of heads. */
static void read_latent(struct xfp_fields *f, const struct xfp_model_family *family, struct xfp_description *d)
{
	struct xfp_latent *latent = &d->latent;
	bool alias = family->head_dim_rotated && xfp_field(f->root, "head_dim");

	latent->query_rank = xfp_field(f->root, "q_lora_rank") ? xfp_field_count(f, "q_lora_rank", 0) : 0;
	if (!json_object_get(f->root, "q_lora_rank"))
		xfp_field_wrong(f, "q_lora_rank", "is missing; it is null if queries are projected directly");
	latent->kv_rank = xfp_field_count(f, "kv_lora_rank", 0);
	latent->nope_dim = xfp_field_count(f, "qk_nope_head_dim", 0);
	d->head_dim = latent->nope_dim + xfp_field_count(f, alias ? "head_dim" : "qk_rope_head_dim", 0);
	d->value_dim = xfp_field_count(f, "v_head_dim", 0);
	if (d->kv_heads != d->heads)
		xfp_field_wrong(f, "num_key_value_heads",
				"is not num_attention_heads, as latent attention requires" XFP_OWN_CONFIG);
}

static void read_sizes(struct xfp_fields *f, const struct xfp_model_family *family, struct xfp_description *d)
{
	const struct xfp_default_sizes *sizes = &family->sizes;
	uint32_t head_dim;
	bool no_head_dim; /* null disables the family's default */

	d->hidden = xfp_field_count(f, "hidden_size", 0);
	d->heads = xfp_field_count(f, "num_attention_heads", sizes->heads);
	d->kv_heads = xfp_field_count(f, "num_key_value_heads", sizes->kv_heads ? sizes->kv_heads : d->heads);
	no_head_dim = json_is_null(json_object_get(f->root, "head_dim"));
	head_dim = sizes->head_dim && !no_head_dim ? sizes->head_dim : d->hidden / d->heads;
	if (family->latent)
		read_latent(f, family, d);
	else
		d->head_dim = d->value_dim = xfp_field_count(f, "head_dim", head_dim ? head_dim : 1);
	if (!family->every_layer || family->dense_width || family->leading_dense)
		d->intermediate = xfp_field_count(f, family->width ? family->width : "intermediate_size", 0);
	d->vocabulary = xfp_field_count(f, "vocab_size", sizes->vocabulary);
	d->context = xfp_field_count(f, "max_position_embeddings", sizes->context);
	d->epsilon = xfp_field_number(f, f->root, "rms_norm_eps", sizes->epsilon);
	if (d->heads % d->kv_heads)
		xfp_field_wrong(f, "num_attention_heads", "is not a multiple of num_key_value_heads" XFP_OWN_CONFIG);
}

/* Published configs have 4 for true. */
static bool tunes_temperature(struct xfp_fields *f)
{
	json_t *value = xfp_field(f->root, "attn_temperature_tuning");

	return json_is_integer(value) ? json_integer_value(value) != 0
				      : xfp_field_flag(f, "attn_temperature_tuning", true);
}

/* Biases of projections, by the family's rule. */
static void read_biases(struct xfp_fields *f, const struct xfp_model_family *family, struct xfp_description *d)
{
	bool by_config = family->bias == XFP_BIAS_BY_CONFIG || family->bias == XFP_BIAS_QKV_BY_CONFIG;
	const char *key = family->bias_key ? family->bias_key : "attention_bias";
	bool bias = by_config && xfp_field_flag(f, key, family->bias_unless);

	d->qkv_bias = bias || family->bias == XFP_BIAS_QKV;
	d->output_bias = family->output_bias_key ? xfp_field_flag(f, family->output_bias_key, false)
						 : bias && family->bias == XFP_BIAS_BY_CONFIG;
	d->mlp_bias = family->mlp_bias && xfp_field_flag(f, family->bias_key ? key : "mlp_bias", false);
	if (d->output_bias && family->bias_key && family->experts)
		xfp_field_wrong(f, key, "is true, which is not supported with experts");
	if (family->latent && xfp_field_flag(f, "mlp_bias", false))
		xfp_field_wrong(f, "mlp_bias", "is true; biases of experts are not supported in this family");
}

static void read_norms(struct xfp_fields *f, const struct xfp_model_family *family, struct xfp_description *d)
{
	static const struct xfp_layer_norms two = { .attention = "input_layernorm.weight",
						    .mlp = "post_attention_layernorm.weight" };

	d->norms = family->norms ? family->norms : &two;
	d->norm_offset = family->norm_offset;
	d->query_key_norm =
		family->query_key_norm || (family->norm_by_config && xfp_field_flag(f, "use_qk_norm", false));
	d->joint_norm = family->joint_norm;
	d->rotated_norm = family->rotated_norm && xfp_field_flag(f, "use_qk_norm", true);
}

static void read_activation(struct xfp_fields *f, const struct xfp_model_family *family, struct xfp_description *d)
{
	d->activation = activation_of(f, family);
	if (family->limit <= 0)
		return;
	d->activation = XFP_CLAMPED_SWIGLU;
	d->swiglu_alpha = xfp_field_number(f, f->root, "swiglu_alpha", family->alpha);
	d->swiglu_limit = xfp_field_number(f, f->root, "swiglu_limit", family->limit);
}

static void refuse_variants(struct xfp_fields *f, const struct xfp_model_family *family)
{
	if (family->never_window && xfp_field_flag(f, "use_sliding_window", false))
		xfp_field_wrong(f, "use_sliding_window", "is true, which is not supported in this family");
	if (xfp_field(f->root, "per_layer_config"))
		xfp_field_wrong(f, "per_layer_config", "is not supported; layers must not differ in other sizes");
	if (xfp_field_flag(f, "use_bidirectional_attention", false))
		xfp_field_wrong(f, "use_bidirectional_attention", "is true; only causal attention is supported");
}

static void read_all(struct xfp_fields *f, const struct xfp_model_family *family, struct xfp_description *d)
{
	d->family = family->type;
	read_sizes(f, family, d);
	d->tied = is_tied(f, family->tied);
	d->fused = family->fused;
	d->sinks = family->sinks;
	d->output_gate = family->output_gate;
	d->mtp_layers = family->mtp_layers;
	d->chunked = family->window == XFP_WINDOW_CHUNKS;
	d->mlp = family->mlp ? family->mlp : "mlp";
	if (family->temperature && tunes_temperature(f)) {
		d->temperature = xfp_field_number(f, f->root, "attn_scale", 0.1);
		d->temperature_floor = xfp_field_number(f, f->root, "floor_scale", 8192);
	}
	read_norms(f, family, d);
	read_activation(f, family, d);
	read_biases(f, family, d);
	refuse_variants(f, family);
	if (family->experts)
		read_experts(f, family, d);
	read_scales(f, family, d);
	if (family->delta)
		read_delta(f, family, d);
	xfp_ropes_read(f, family, d);
	read_layers(f, family, d);
}

enum xfp_status xfp_description_read(const char *config, const char *where, struct xfp_description **out,
				     struct xfp_error *err)
{
	struct xfp_fields f = { .where = where, .err = err };
	struct xfp_description *d = NULL;
	const struct xfp_model_family *family;

	*out = NULL;
	if (!config)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: has no config.json, which describes the model", where);
	if ((f.status = xfp_config_json(config, where, &f.outer, err)))
		return f.status;
	if (!(family = find_family(&f)))
		goto done;
	d = calloc(1, sizeof *d);
	if (d)
		d->layers = xfp_field_count(&f, "num_hidden_layers", 0);
	if (!d || !(d->layer = calloc(d->layers, sizeof *d->layer))) {
		f.status = xfp_no_memory_for(err, where);
		goto done;
	}
	if (family->encoder)
		xfp_encoder_read(&f, family, activation_of(&f, family), d);
	else
		read_all(&f, family, d);
done:
	json_decref(f.outer);
	if (f.status)
		xfp_description_free(d);
	else
		*out = d;
	return f.status;
}

void xfp_description_free(struct xfp_description *description)
{
	if (!description)
		return;
	for (size_t i = 0; i < XFP_ROPES; i++) {
		free(description->rope[i].longer);
		free(description->rope[i].shorter);
	}
	free(description->layer);
	free(description);
}
