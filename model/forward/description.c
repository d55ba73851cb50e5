/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/description.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoints/config_json.h"
#include "model/forward/numbers.h"

#define MOST 0x1000000 /* of anything that is counted: 2^24 */

static const struct xfp_expert_names qwen_experts = { "mlp.gate.weight", "mlp.experts.%u.gate_proj.weight",
						      "mlp.experts.%u.up_proj.weight",
						      "mlp.experts.%u.down_proj.weight" };
static const struct xfp_expert_names mixtral_experts = { "block_sparse_moe.gate.weight",
							 "block_sparse_moe.experts.%u.w1.weight",
							 "block_sparse_moe.experts.%u.w3.weight",
							 "block_sparse_moe.experts.%u.w2.weight" };

enum window_rule {
	WINDOW_NEVER,
	WINDOW_ALWAYS,   /* sliding_window, of all layers, unless it is null */
	WINDOW_IF_USED,  /* likewise, if use_sliding_window */
	WINDOW_BY_LAYERS /* if use_sliding_window, of layers that layer_types or max_window_layers names */
};
enum bias_rule { BIAS_BY_CONFIG, BIAS_NEVER, BIAS_QKV };

/* What config.json leaves out because the family's code says it. */
static const struct known_family {
	const char *type;
	bool query_key_norm, mlp_bias; /* mlp_bias: config may ask for it */
	enum bias_rule bias;
	enum window_rule window;
	const struct xfp_expert_names *experts; /* NULL: none */
	bool renormalise;                       /* whatever config says */
	bool every_layer;                       /* all layers have experts */
	double theta;                           /* of positions, where config has none */
} families[] = {
	{ "llama", false, true, BIAS_BY_CONFIG, WINDOW_NEVER, NULL, false, false, 1e4 },
	{ "mistral", false, false, BIAS_NEVER, WINDOW_ALWAYS, NULL, false, false, 1e4 },
	{ "mixtral", false, false, BIAS_NEVER, WINDOW_ALWAYS, &mixtral_experts, true, true, 1e6 },
	{ "qwen2", false, false, BIAS_QKV, WINDOW_BY_LAYERS, NULL, false, false, 1e4 },
	{ "qwen3", true, false, BIAS_BY_CONFIG, WINDOW_BY_LAYERS, NULL, false, false, 1e4 },
	{ "qwen3_moe", true, false, BIAS_BY_CONFIG, WINDOW_IF_USED, &qwen_experts, false, false, 1e4 },
};

/* A config that is being read. After the first error, reading gives what is safe. */
struct config_fields {
	json_t *root;
	const char *where;
	enum xfp_status status;
	struct xfp_error *err;
};

static void wrong(struct config_fields *f, const char *key, const char *what)
{
	if (!f->status)
		f->status = xfp_fail(f->err, XFP_BAD_INPUT, "%s: %s %s", f->where, key, what);
}

static json_t *member(json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	return json_is_null(value) ? NULL : value;
}

/* A count from 1 on. `otherwise` 0: it must be there. */
static uint32_t count_of(struct config_fields *f, const char *key, uint32_t otherwise)
{
	json_t *value = member(f->root, key);

	if (!value && otherwise)
		return otherwise;
	if (json_is_integer(value) && json_integer_value(value) >= 1 && json_integer_value(value) <= MOST)
		return (uint32_t)json_integer_value(value);
	wrong(f, key,
	      value ? "is no count that a model can have" : "is missing; take the config that belongs to the model");
	return 1;
}

static bool flag_of(struct config_fields *f, const char *key, bool otherwise)
{
	json_t *value = member(f->root, key);

	if (value && !json_is_boolean(value))
		wrong(f, key, "is neither true nor false");
	return value ? json_is_true(value) : otherwise;
}

/* A finite number that is above 0. `otherwise` 0: it must be there. */
static double number_of(struct config_fields *f, json_t *object, const char *key, double otherwise)
{
	json_t *value = member(object, key);
	double number = json_number_value(value);

	if (!value && otherwise > 0)
		return otherwise;
	if (json_is_number(value) && number > 0 && number < 1e30)
		return number;
	wrong(f, key, value ? "is no number that it can be" : "is missing; take the config that belongs to the model");
	return 1;
}

/* ---- positions ---------------------------------------------------------------------------------- */

static double *factors_of(struct config_fields *f, json_t *object, const char *key, size_t count)
{
	json_t *list = member(object, key);
	double *factors;

	if (json_array_size(list) != count) {
		wrong(f, key, "does not have a number for each pair of a head");
		return NULL;
	}
	if (!(factors = calloc(count, sizeof *factors))) {
		f->status = xfp_no_memory_for(f->err, f->where);
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		factors[i] = json_number_value(json_array_get(list, i));
		if (!(factors[i] > 0 && factors[i] < 1e30))
			wrong(f, key, "has a number that cannot be a factor");
	}
	return factors;
}

/* 0.1 m log(factor) + 1, the temperature of attention that yarn gives a longer context. */
static double yarn_scale(double factor, double m)
{
	return factor <= 1 ? 1 : 0.1 * m * xfp_log(factor) + 1;
}

static void read_yarn(struct config_fields *f, json_t *object, struct xfp_rope *rope)
{
	double scale = json_number_value(member(object, "mscale"));
	double all = json_number_value(member(object, "mscale_all_dim"));
	json_t *truncate = member(object, "truncate");

	rope->beta_fast = number_of(f, object, "beta_fast", 32);
	rope->beta_slow = number_of(f, object, "beta_slow", 1);
	rope->truncate = !json_is_false(truncate);
	if (scale > 0 && all > 0)
		rope->attention = yarn_scale(rope->factor, scale) / yarn_scale(rope->factor, all);
	else
		rope->attention = yarn_scale(rope->factor, 1);
}

static void read_longrope(struct config_fields *f, json_t *object, struct xfp_rope *rope)
{
	rope->longer = factors_of(f, object, "long_factor", rope->dim / 2);
	rope->shorter = factors_of(f, object, "short_factor", rope->dim / 2);
	if (rope->factor > 1)
		rope->attention = sqrt(1 + xfp_log(rope->factor) / xfp_log(rope->original_context));
}

/* Either rope_parameters, which hold all of it, or rope_theta and rope_scaling. */
static void read_rope(struct config_fields *f, const struct xfp_description *d, double theta, struct xfp_rope *rope)
{
	static const char *const names[] = { "default", "linear", "llama3", "yarn", "longrope" };
	json_t *object = member(f->root, "rope_parameters"), *original;
	const char *type;
	size_t i = 0;

	if (!object)
		object = member(f->root, "rope_scaling");
	type = json_string_value(member(object, "rope_type"));
	if (!type)
		type = json_string_value(member(object, "type"));
	while (type && i < sizeof names / sizeof *names && strcmp(type, names[i]))
		i++;
	if (i == sizeof names / sizeof *names) {
		wrong(f, "rope_type",
		      "is none of default, linear, llama3, yarn and longrope, which can be computed here");
		return;
	}
	rope->scaling = (enum xfp_rope_scaling)i;
	rope->dim = d->head_dim;
	rope->attention = 1;
	rope->theta = number_of(f, member(object, "rope_theta") ? object : f->root, "rope_theta", theta);
	original = member(object, "original_max_position_embeddings") ? object : f->root;
	rope->original_context = number_of(f, original, "original_max_position_embeddings", d->context);
	if (rope->scaling == XFP_ROPE_DEFAULT)
		return;
	rope->factor =
		number_of(f, object, "factor", rope->scaling < XFP_ROPE_YARN ? 0 : d->context / rope->original_context);
	if (rope->scaling == XFP_ROPE_LLAMA3) {
		rope->low_frequency = number_of(f, object, "low_freq_factor", 0);
		rope->high_frequency = number_of(f, object, "high_freq_factor", 0);
		if (rope->high_frequency <= rope->low_frequency)
			wrong(f, "high_freq_factor", "is not above low_freq_factor");
	}
	if (rope->scaling == XFP_ROPE_YARN)
		read_yarn(f, object, rope);
	if (rope->scaling == XFP_ROPE_LONGROPE)
		read_longrope(f, object, rope);
	if (member(object, "attention_factor"))
		rope->attention = number_of(f, object, "attention_factor", 0);
}

/* ---- layers ------------------------------------------------------------------------------------- */

static bool listed(json_t *list, uint32_t number)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (json_integer_value(json_array_get(list, i)) == (json_int_t)number)
			return true;
	}
	return false;
}

static uint32_t window_of(struct config_fields *f, const struct known_family *family, uint32_t layer)
{
	json_t *types = member(f->root, "layer_types");
	const char *type = json_string_value(json_array_get(types, layer));

	if (family->window == WINDOW_NEVER || !member(f->root, "sliding_window"))
		return 0;
	if (family->window != WINDOW_ALWAYS && !flag_of(f, "use_sliding_window", false))
		return 0;
	if (family->window == WINDOW_BY_LAYERS) {
		if (type && strcmp(type, "sliding_attention") && strcmp(type, "full_attention"))
			wrong(f, "layer_types", "has kinds of attention that are not computed here");
		if (type ? strcmp(type, "sliding_attention") != 0 : layer < count_of(f, "max_window_layers", 28))
			return 0;
	}
	return count_of(f, "sliding_window", 0);
}

static void read_layers(struct config_fields *f, const struct known_family *family, struct xfp_description *d)
{
	uint32_t step = family->experts && !family->every_layer ? count_of(f, "decoder_sparse_step", 1) : 1;
	json_t *dense = member(f->root, "mlp_only_layers");

	for (uint32_t i = 0; i < d->layers; i++) {
		d->layer[i].window = window_of(f, family, i);
		d->layer[i].experts =
			family->experts && (i + 1) % step == 0 && (family->every_layer || !listed(dense, i));
	}
}

static void read_experts(struct config_fields *f, const struct known_family *family, struct xfp_description *d)
{
	/* Published configs have the first, those that newer code writes the second. */
	d->experts = count_of(f, member(f->root, "num_experts") ? "num_experts" : "num_local_experts", 0);
	d->chosen = count_of(f, "num_experts_per_tok", 0);
	d->expert_intermediate = family->every_layer ? d->intermediate : count_of(f, "moe_intermediate_size", 0);
	d->renormalise = family->renormalise || flag_of(f, "norm_topk_prob", false);
	d->expert_names = family->experts;
	if (d->chosen > d->experts)
		wrong(f, "num_experts_per_tok", "is more than there are experts");
}

static const struct known_family *find_family(struct config_fields *f)
{
	const char *type = json_string_value(member(f->root, "model_type"));

	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		if (type && !strcmp(type, families[i].type))
			return &families[i];
	}
	f->status = xfp_fail(f->err, XFP_BAD_INPUT,
			     "%s: models of type %s cannot be computed here; llama, mistral, mixtral, qwen2, qwen3 and "
			     "qwen3_moe can",
			     f->where, type ? type : "unknown");
	return NULL;
}

static void read_all(struct config_fields *f, const struct known_family *family, struct xfp_description *d)
{
	const char *activation = json_string_value(member(f->root, "hidden_act"));
	bool bias = family->bias == BIAS_BY_CONFIG && flag_of(f, "attention_bias", false);

	d->family = family->type;
	d->hidden = count_of(f, "hidden_size", 0);
	d->heads = count_of(f, "num_attention_heads", 0);
	d->kv_heads = count_of(f, "num_key_value_heads", d->heads);
	d->head_dim = count_of(f, "head_dim", d->hidden / d->heads ? d->hidden / d->heads : 1);
	d->intermediate = count_of(f, "intermediate_size", 0);
	d->vocabulary = count_of(f, "vocab_size", 0);
	d->context = count_of(f, "max_position_embeddings", 0);
	d->epsilon = number_of(f, f->root, "rms_norm_eps", 0);
	d->tied = flag_of(f, "tie_word_embeddings", false);
	d->query_key_norm = family->query_key_norm;
	d->qkv_bias = bias || family->bias == BIAS_QKV;
	d->output_bias = bias;
	d->mlp_bias = family->mlp_bias && flag_of(f, "mlp_bias", false);
	if (activation && strcmp(activation, "silu"))
		wrong(f, "hidden_act", "is not silu, which alone is computed here");
	if (d->heads % d->kv_heads)
		wrong(f, "num_attention_heads", "is no multiple of num_key_value_heads");
	if (d->head_dim % 2)
		wrong(f, "head_dim", "is odd; positions turn pairs");
	if (family->experts)
		read_experts(f, family, d);
	read_rope(f, d, family->theta, &d->rope);
	read_layers(f, family, d);
}

enum xfp_status xfp_description_read(const char *config, const char *where, struct xfp_description **out,
				     struct xfp_error *err)
{
	struct config_fields f = { .where = where, .err = err };
	struct xfp_description *d = NULL;
	const struct known_family *family;

	*out = NULL;
	if (!config)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: has no config.json, which says what the model computes",
				where);
	if ((f.status = xfp_config_json(config, where, &f.root, err)))
		return f.status;
	if (!(family = find_family(&f)))
		goto done;
	d = calloc(1, sizeof *d);
	if (d)
		d->layers = count_of(&f, "num_hidden_layers", 0);
	if (!d || !(d->layer = calloc(d->layers, sizeof *d->layer))) {
		f.status = xfp_no_memory_for(err, where);
		goto done;
	}
	read_all(&f, family, d);
done:
	json_decref(f.root);
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
	free(description->rope.longer);
	free(description->rope.shorter);
	free(description->layer);
	free(description);
}
