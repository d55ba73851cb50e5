/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contents of config.json, its defaults and refusals; and the size of the KV cache of such a model.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/evaluate/forecast.h"
#include "model/forward/kv_cache.h"
#include "model/forward/tensors.h"
#include "tests/unit/unit.h"

#define CONFIG 1024

static const char moe[] =
	"{\"model_type\": \"qwen3_moe\", \"hidden_size\": 8, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
	"\"num_key_value_heads\": 1, \"intermediate_size\": 8, \"vocab_size\": 13, \"max_position_embeddings\": 32, "
	"\"rms_norm_eps\": 1e-6, \"num_experts\": 5, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 6}";

static const char hybrid[] =
	"{\"model_type\": \"qwen3_next\", \"hidden_size\": 8, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, "
	"\"intermediate_size\": 8, \"vocab_size\": 13, \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-6, "
	"\"num_experts\": 5, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 6, \"head_dim\": 8, "
	"\"shared_expert_intermediate_size\": 6, \"linear_num_key_heads\": 2, \"linear_num_value_heads\": 4, "
	"\"linear_key_head_dim\": 4, \"linear_value_head_dim\": 6, \"linear_conv_kernel_dim\": 4}";

static const char windows[] =
	"{\"model_type\": \"gemma2\", \"hidden_size\": 8, \"num_hidden_layers\": 2, \"intermediate_size\": 8, "
	"\"layer_types\": [\"sliding_attention\", \"full_attention\"]}";

static const char latent[] =
	"{\"model_type\": \"deepseek_v3\", \"hidden_size\": 8, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, "
	"\"num_key_value_heads\": 2, \"intermediate_size\": 8, \"vocab_size\": 13, \"max_position_embeddings\": 32, "
	"\"rms_norm_eps\": 1e-6, \"n_routed_experts\": 8, \"num_experts_per_tok\": 2, \"moe_intermediate_size\": 6, "
	"\"n_group\": 4, \"topk_group\": 2, \"q_lora_rank\": 5, \"kv_lora_rank\": 6, \"qk_nope_head_dim\": 4, "
	"\"qk_rope_head_dim\": 2, \"v_head_dim\": 3}";

/* `whole`, with the first `from` replaced. */
static void replace(char config[CONFIG], const char *whole, const char *from, const char *to)
{
	const char *at = strstr(whole, from);

	assert_non_null(at);
	snprintf(config, CONFIG, "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
}

static struct xfp_description *read_well(const char *config)
{
	struct xfp_description *d;
	struct xfp_error err;

	if (xfp_description_read(config, "config.json", &d, &err))
		fail_msg("%s", err.text);
	return d;
}

static uint32_t first_window(const char *whole, const char *from, const char *to)
{
	struct xfp_description *d;
	char config[CONFIG];
	uint32_t window;

	replace(config, whole, from, to);
	d = read_well(config);
	window = d->layer[0].window;
	xfp_description_free(d);
	return window;
}

/* Defaults of published code for missing members; null means disabled. */
static void what_configs_leave_out(void **state)
{
	struct xfp_description *d;
	char config[CONFIG];

	(void)state;
	assert_int_equal(first_window(windows, "{", "{"), 4096);
	assert_int_equal(first_window(windows, "{", "{\"sliding_window\": 7, "), 7);
	assert_int_equal(first_window(windows, "{", "{\"sliding_window\": null, "), 0);
	assert_int_equal(first_window(moe, "{", "{"), 0);
	assert_int_equal(first_window(moe, "{", "{\"use_sliding_window\": true, "), 4096);
	assert_int_equal(first_window(moe, "qwen3_moe", "mistral"), 4096);
	assert_int_equal(first_window(moe, "qwen3_moe", "llama"), 0);
	assert_int_equal(first_window(moe, "qwen3_moe", "phi3"), 0);
	assert_int_equal(first_window(moe, "qwen3_moe\"", "qwen3\", \"use_sliding_window\": true"), 0);
	assert_int_equal(
		first_window(moe, "qwen3_moe\"", "qwen2\", \"use_sliding_window\": true, \"max_window_layers\": 0"),
		4096);
	replace(config, moe, "qwen3_moe", "qwen3");
	d = read_well(config);
	assert_int_equal(d->head_dim, 128);
	xfp_description_free(d);
	replace(config, latent, "\"v_head_dim\"",
		"\"n_shared_experts\": null, \"norm_topk_prob\": null, \"v_head_dim\"");
	d = read_well(config);
	assert_int_equal(d->shared_intermediate, 0);
	assert_false(d->router.norm_topk);
	xfp_description_free(d);
}

/* Keys of other families are ignored, as by transformers; other names of the same key are not. */
static void names_of_keys(void **state)
{
	static const struct {
		const char *type;
		uint32_t experts, per_token, rotated;
	} families[] = { { "deepseek_v3", 4, 2, 2 },
			 { "deepseek_v2", 6, 2, 2 },
			 { "glm4_moe_lite", 4, 2, 4 },
			 { "ernie4_5_moe", 6, 2, 4 },
			 { "qwen2_moe", 6, 2, 4 } };

	(void)state;
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		struct xfp_description *d;
		char config[CONFIG], whole[CONFIG];

		replace(whole, latent, "deepseek_v3", families[i].type);
		replace(config, whole, "\"n_group\": 4, \"topk_group\": 2",
			"\"num_experts\": 6, \"num_local_experts\": 4, \"moe_num_experts\": 3, \"moe_k\": 1, "
			"\"head_dim\": 4, \"n_group\": 1, \"topk_group\": 1, \"shared_expert_intermediate_size\": 2");
		d = read_well(config);
		assert_int_equal(d->experts, families[i].experts);
		assert_int_equal(d->experts_per_token, families[i].per_token);
		assert_int_equal(d->rope[0].dim, families[i].rotated);
		xfp_description_free(d);
	}
}

static void configs_are_refused_by_member(void **state)
{
	static const struct {
		const char *config, *from, *to, *message;
	} changes[] = {
		{ moe, "qwen3_moe", "mamba", "models of type mamba" },
		{ moe, "\"vocab_size\": 13, ", "", "vocab_size is missing" },
		{ moe, "\"hidden_size\": 8", "\"hidden_size\": -8", "hidden_size is not a valid count" },
		{ moe, "\"num_key_value_heads\": 1", "\"num_key_value_heads\": 3",
		  "not a multiple of num_key_value_heads" },
		{ moe, "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 6", "more than there are experts" },
		{ moe, "\"rms_norm_eps\": 1e-6", "\"rms_norm_eps\": 1e-6, \"hidden_act\": \"relu\"",
		  "hidden_act is not supported; silu, gelu" },
		{ hybrid, "\"rms_norm_eps\": 1e-6", "\"rms_norm_eps\": 1e-6, \"partial_rotary_factor\": 0.4",
		  "partial_rotary_factor does not give an even number" },
		{ moe, "\"rms_norm_eps\": 1e-6",
		  "\"rms_norm_eps\": 1e-6, \"partial_rotary_factor\": 0.5, "
		  "\"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}",
		  "partial_rotary_factor is not 1; with scaled positions this family rotates whole heads" },
		{ moe, "\"rms_norm_eps\": 1e-6",
		  "\"rms_norm_eps\": 1e-6, \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 5}}",
		  "rope_parameters differs by kind of layer" },
		{ windows, "gemma2\"", "gemma3\", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}",
		  "rope_scaling has type, which this family ignores" },
		{ moe, "\"rms_norm_eps\": 1e-6", "\"rms_norm_eps\": 1e-6, \"per_layer_config\": {\"0\": {}}",
		  "per_layer_config is not supported" },
		{ windows, "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1",
		  "layer_types does not have an entry for each" },
		{ moe, "\"rms_norm_eps\": 1e-6", "\"rms_norm_eps\": 1e-6, \"rope_scaling\": \"linear\"",
		  "rope_scaling is not an object" },
		{ moe, "qwen3_moe\"", "phi3\", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2}",
		  "rope_type is neither default nor longrope" },
		{ moe, "\"rms_norm_eps\": 1e-6", "\"rms_norm_eps\": 1e-6, \"use_bidirectional_attention\": true",
		  "only causal attention is supported" },
		{ moe, "\"rms_norm_eps\": 1e-6",
		  "\"rms_norm_eps\": 1e-6, \"rope_scaling\": {\"type\": \"proportional\"}", "rope_type is none of" },
		{ moe, "\"rms_norm_eps\": 1e-6", "\"rms_norm_eps\": 1e-6, \"rope_scaling\": {\"type\": \"linear\"}",
		  "factor is missing" },
		{ moe, "\"rms_norm_eps\": 1e-6", "\"rms_norm_eps\": 1e-6, \"norm_topk_prob\": 3",
		  "neither true nor false" },
		{ moe, "\"rms_norm_eps\": 1e-6", "\"rms_norm_eps\": \"small\"", "rms_norm_eps is not a valid number" },
		{ windows, "\"sliding_attention\", ", "", "layer_types does not have an entry for each" },
		{ windows, "full_attention", "chunked_attention", "layer_types does not name, for each layer" },
		{ hybrid, "\"linear_num_value_heads\": 4", "\"linear_num_value_heads\": 3",
		  "not a multiple of linear_num" },
		{ hybrid, ", \"linear_conv_kernel_dim\": 4", "", "linear_conv_kernel_dim is missing" },
		{ hybrid, "\"vocab_size\"", "\"layer_types\": [\"linear_attention\"], \"vocab_size\"",
		  "layer_types does not have an entry for each" },
		{ hybrid, "\"vocab_size\"", "\"hidden_act\": \"gelu\", \"vocab_size\"",
		  "is not silu, the only activation" },
		{ latent, "\"n_group\": 4", "\"n_group\": 3",
		  "n_group does not divide the number of experts; use the" },
		{ latent, "\"n_group\": 4", "\"n_group\": 8", "n_group leaves groups of one expert" },
		{ latent, "\"topk_group\": 2", "\"topk_group\": 5",
		  "topk_group is more than there are groups; use the" },
		{ latent, "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 5",
		  "num_experts_per_tok is more than the experts of topk_group groups" },
		{ latent, "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 9",
		  "more than there are experts; use the" },
		{ latent, "\"n_group\": 4", "\"n_group\": 4, \"topk_method\": \"greedy\"",
		  "topk_method is not noaux_tc" },
		{ latent, "\"n_group\": 4", "\"n_group\": 4, \"topk_method\": 3", "topk_method is not noaux_tc" },
		{ latent, "\"n_group\": 4", "\"n_group\": 4, \"scoring_func\": \"softmax\"",
		  "scoring_func is not sigmoid" },
		{ latent, "deepseek_v3\"", "deepseek_v2\", \"scoring_func\": \"sigmoid\"",
		  "scoring_func is not softmax" },
		{ latent, "deepseek_v3\"", "deepseek_v2\", \"topk_method\": \"noaux_tc\"",
		  "topk_method is not supported; greedy and" },
		{ latent, "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 1",
		  "num_key_value_heads is not num_attention_heads, as latent attention requires; use the" },
		{ latent, "\"q_lora_rank\": 5, ", "", "q_lora_rank is missing; it is null if" },
		{ latent, "\"kv_lora_rank\": 6", "\"kv_lora_rank\": null", "kv_lora_rank is missing" },
		{ latent, "\"qk_rope_head_dim\": 2", "\"qk_rope_head_dim\": 3", "qk_rope_head_dim is odd" },
		{ latent, "\"qk_rope_head_dim\": 2", "\"qk_rope_head_dim\": 2, \"partial_rotary_factor\": 0.5",
		  "partial_rotary_factor is not supported; qk_rope_head_dim" },
		{ latent, "\"v_head_dim\": 3", "\"v_head_dim\": 3, \"routed_scaling_factor\": -1",
		  "routed_scaling_factor is not a valid number" },
		{ latent, "\"moe_intermediate_size\": 6",
		  "\"moe_intermediate_size\": 16777216, \"n_shared_experts\": 16777216",
		  "n_shared_experts is too large for the width of the experts; use the" },
		{ latent, "\"v_head_dim\": 3", "\"v_head_dim\": 3, \"mlp_bias\": true", "mlp_bias is true" },
		{ latent, "\"v_head_dim\": 3",
		  "\"v_head_dim\": 3, \"rope_scaling\": {\"type\": \"yarn\", \"factor\": 2, \"mscale\": \"1\"}",
		  "mscale is not a valid number" },
		{ latent, "\"v_head_dim\": 3",
		  "\"v_head_dim\": 3, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2, \"mscale_all_dim\": []}",
		  "mscale_all_dim is not a valid number" },
		{ latent, "deepseek_v3\"", "glm4_moe_lite\", \"mlp_layer_types\": [\"dense\"]",
		  "mlp_layer_types does not name, for each layer, dense or sparse" },
		{ moe, "qwen3_moe\"", "ernie4_5_moe\", \"moe_k\": 2, \"moe_num_experts\": 4, \"moe_norm_min\": 0",
		  "moe_norm_min is not a valid number" },
		{ moe, "qwen3_moe\"", "gpt_oss\", \"swiglu_limit\": 0", "swiglu_limit is not a valid number" },
		{ moe, "qwen3_moe\"", "smollm3\", \"sliding_window\": 4, \"layer_types\": [\"sliding_attention\"]",
		  "layer_types names windows, which are not supported" },
		{ moe, "qwen3_moe", "cohere2", "models of type cohere2 are not supported (convert and verify may" },
		{ hybrid, "\"shared_expert_intermediate_size\": 6, ", "",
		  "shared_expert_intermediate_size is missing" },
	};
	struct xfp_description *d;
	struct xfp_error err;

	(void)state;
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		char config[CONFIG];

		replace(config, changes[i].config, changes[i].from, changes[i].to);
		if (xfp_description_read(config, "config.json", &d, &err) != XFP_BAD_INPUT ||
		    !strstr(err.text, changes[i].message))
			fail_msg("\"%s\" instead of \"%s\"", err.text, changes[i].message);
		assert_null(d);
	}
}

static bool first_alone(void *context, const struct xfp_required_tensor *tensor)
{
	size_t *told = context;

	assert_string_equal(tensor->name, "model.embed_tokens.weight");
	assert_true(tensor->rank == 2 && tensor->shape[0] == 13);
	++*told;
	return false;
}

/* Numbers of a config may be large although the file is small: a loop over all of them would take days. */
static void all_ends_with_the_first_that_is_missing(void **state)
{
	static const struct xfp_tensor_names names = { .body = "model.", .head = "lm_head.weight" };
	char config[CONFIG], larger[CONFIG];
	struct xfp_description *d;
	size_t told = 0;

	(void)state;
	replace(config, moe, "\"num_experts\": 5", "\"num_experts\": 16777216");
	replace(larger, config, "\"num_hidden_layers\": 1", "\"num_hidden_layers\": 65536");
	d = read_well(larger);
	xfp_each_tensor(d, &names, first_alone, &told);
	assert_int_equal(told, 1);
	xfp_description_free(d);
}

/* Keys and values for the context, or for a shorter window; and the state of linear attention. */
static void the_past_has_its_size(void **state)
{
	static const char near[] = "{\"model_type\": \"mistral\", \"hidden_size\": 8, \"num_hidden_layers\": 2, "
				   "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"intermediate_size\": 8, "
				   "\"vocab_size\": 13, \"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-6, "
				   "\"sliding_window\": 7}";
	struct xfp_description *d = NULL;
	struct xfp_kv_cache *cache = NULL;
	struct xfp_error err;

	(void)state;
	assert_int_equal(xfp_description_read(near, "c", &d, &err), XFP_OK);
	assert_int_equal(xfp_kv_cache_bytes(d, 3, 20), 2 * 2 * 3 * 7 * 4 * sizeof(float));
	assert_int_equal(xfp_kv_cache_bytes(d, 3, 5), 2 * 2 * 3 * 5 * 4 * sizeof(float));
	assert_int_equal(xfp_kv_cache_open(d, 1, 33, &cache, &err), XFP_BAD_INPUT);
	assert_non_null(strstr(err.text, "33 tokens is longer than the model's, which is 32"));
	xfp_description_free(d);
	/* Two layers of two heads of keys, 4 long, and four of values, 6 long; three inputs of each channel. */
	assert_int_equal(xfp_description_read(hybrid, "c", &d, &err), XFP_OK);
	assert_int_equal(xfp_kv_cache_bytes(d, 3, 20), 2 * 3 * (4 * 4 * 6 * sizeof(double) + 3 * 40 * sizeof(float)));
	assert_int_equal(xfp_kv_cache_bytes(d, 3, 5), xfp_kv_cache_bytes(d, 3, 20));
	xfp_description_free(d);
}

#define LATENT                                                                                                        \
	"\"q_lora_rank\": 1536, \"kv_lora_rank\": 512, \"qk_rope_head_dim\": 64, \"qk_nope_head_dim\": 128, "         \
	"\"v_head_dim\": 128, \"n_shared_experts\": 1, \"moe_intermediate_size\": 2048, \"num_experts_per_tok\": 8, " \
	"\"hidden_size\": 7168, \"intermediate_size\": 18432, \"num_hidden_layers\": 61"

/* Fill in DeepSeek-V3's config with that many dense layers. */
static struct xfp_description *deepseek_v3(unsigned dense)
{
	char config[CONFIG];

	snprintf(config, sizeof config,
		 "{\"model_type\": \"deepseek_v3\", \"max_position_embeddings\": 4096, \"rms_norm_eps\": 1e-6, " LATENT
		 ", \"num_attention_heads\": 128, \"num_key_value_heads\": 128, \"n_routed_experts\": 256, "
		 "\"first_k_dense_replace\": %u, \"vocab_size\": 129280}",
		 dense);
	return read_well(config);
}

/* Layers with experts after a dense one take longer, mostly to read weights; 60 layers like the first do not. */
static void a_forecast_follows_the_work_of_layers(void **state)
{
	struct xfp_evaluation e = { .tokens = { .sequences = 1, .length = 512 },
				    .batching.sequences = 1,
				    .progress = { .done = 1, .layer_seconds = 1 } };
	struct xfp_description *d;
	double seconds;

	(void)state;
	e.evaluated.model.description = d = deepseek_v3(3);
	seconds = xfp_evaluation_remaining(&e);
	assert_true(seconds > 150 && seconds < 220);
	xfp_description_free(d);
	e.evaluated.model.description = d = deepseek_v3(0);
	seconds = xfp_evaluation_remaining(&e);
	assert_true(seconds > 60 && seconds < 61);
	xfp_description_free(d);
}

/* Of models that are too large for tests: the list of required tensors has as many weights as were published, and so
 * have the products of a token. Layers of multi-token prediction do not count. */
static void published_sizes_follow_from_configs(void **state)
{
	static const struct {
		const char *type, *config;
		double billions, active;
	} models[] = {
		{ "deepseek_v3",
		  LATENT ", \"num_attention_heads\": 128, \"num_key_value_heads\": 128, \"n_routed_experts\": 256, "
			 "\"first_k_dense_replace\": 3, \"vocab_size\": 129280",
		  671, 37 },
		{ "kimi_k2",
		  LATENT ", \"num_attention_heads\": 64, \"num_key_value_heads\": 64, \"n_routed_experts\": 384, "
			 "\"n_group\": 1, \"topk_group\": 1, \"first_k_dense_replace\": 1, \"vocab_size\": 163840",
		  1026, 32 },
		{ "gpt_oss",
		  "\"num_attention_heads\": 64, \"num_key_value_heads\": 8, \"head_dim\": 64, \"hidden_size\": 2880, "
		  "\"intermediate_size\": 2880, \"num_hidden_layers\": 36, \"num_local_experts\": 128, "
		  "\"num_experts_per_tok\": 4, \"vocab_size\": 201088, "
		  "\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 32, \"truncate\": false, "
		  "\"original_max_position_embeddings\": 4096}",
		  116.8, 5.1 },
		{ "glm4_moe",
		  "\"num_attention_heads\": 96, \"num_key_value_heads\": 8, \"head_dim\": 128, \"hidden_size\": 5120, "
		  "\"intermediate_size\": 12288, \"moe_intermediate_size\": 1536, \"num_hidden_layers\": 92, "
		  "\"n_routed_experts\": 160, \"n_shared_experts\": 1, \"first_k_dense_replace\": 3, "
		  "\"num_experts_per_tok\": 8, \"vocab_size\": 151552",
		  355, 32 },
		{ "minimax_m2",
		  "\"num_attention_heads\": 48, \"num_key_value_heads\": 8, \"head_dim\": 128, \"hidden_size\": 3072, "
		  "\"intermediate_size\": 1536, \"num_hidden_layers\": 62, \"num_local_experts\": 256, "
		  "\"num_experts_per_tok\": 8, \"vocab_size\": 200064",
		  230, 10 },
		{ "llama4_text",
		  "\"num_attention_heads\": 40, \"num_key_value_heads\": 8, \"head_dim\": 128, \"hidden_size\": 5120, "
		  "\"intermediate_size\": 8192, \"intermediate_size_mlp\": 16384, \"num_hidden_layers\": 48, "
		  "\"num_local_experts\": 128, \"interleave_moe_layer_step\": 2, \"num_experts_per_tok\": 1, "
		  "\"vocab_size\": 202048",
		  400, 16.2 }, /* 17 with the word embedding */
	};

	(void)state;
	for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
		char config[CONFIG];
		struct xfp_description *d;
		double all, active;

		snprintf(config, sizeof config,
			 "{\"model_type\": \"%s\", \"max_position_embeddings\": 4096, \"rms_norm_eps\": 1e-6, %s}",
			 models[i].type, models[i].config);
		d = read_well(config);
		active = (double)d->vocabulary * d->hidden;
		all = 2 * active;
		for (uint32_t layer = 0; layer < d->layers; layer++) {
			struct xfp_layer_shape shape = xfp_layer_shape(d, layer);

			all += (double)xfp_layer_reads(d, &shape, UINT64_MAX);
			active += (double)xfp_layer_products(d, &shape);
			assert_int_equal(xfp_layer_reads(d, &shape, 1), xfp_layer_products(d, &shape));
		}
		if (fabs(all / 1e9 / models[i].billions - 1) > .015 || fabs(active / 1e9 / models[i].active - 1) > .05)
			fail_msg("%s: %.2f and %.3f billions", models[i].type, all / 1e9, active / 1e9);
		xfp_description_free(d);
	}
}

PROGRAM("test_description")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_configs_leave_out),
		cmocka_unit_test(names_of_keys),
		cmocka_unit_test(configs_are_refused_by_member),
		cmocka_unit_test(all_ends_with_the_first_that_is_missing),
		cmocka_unit_test(the_past_has_its_size),
		cmocka_unit_test(published_sizes_follow_from_configs),
		cmocka_unit_test(a_forecast_follows_the_work_of_layers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
