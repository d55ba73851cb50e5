/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/model_family.h"

#include <stdio.h>
#include <string.h>

#define MLP_EXPERTS                                                                                                    \
	.router = "mlp.gate.weight", .gate = "mlp.experts.%u.gate_proj.weight", .up = "mlp.experts.%u.up_proj.weight", \
	.down = "mlp.experts.%u.down_proj.weight", .gate_up_stack = "mlp.experts.gate_up_proj",                        \
	.down_stack = "mlp.experts.down_proj"
#define SHARED_EXPERTS                                                                                          \
	.shared_gate = "mlp.shared_experts.gate_proj.weight", .shared_up = "mlp.shared_experts.up_proj.weight", \
	.shared_down = "mlp.shared_experts.down_proj.weight"
#define SPARSE_MOE_EXPERTS                                                                         \
	.router = "block_sparse_moe.gate.weight", .gate = "block_sparse_moe.experts.%u.w1.weight", \
	.up = "block_sparse_moe.experts.%u.w3.weight", .down = "block_sparse_moe.experts.%u.w2.weight"

static const struct xfp_expert_names qwen_experts = {
	MLP_EXPERTS,
};
static const struct xfp_expert_names qwen_shared_experts = {
	MLP_EXPERTS,
	.shared_router = "mlp.shared_expert_gate.weight",
	.shared_gate = "mlp.shared_expert.gate_proj.weight",
	.shared_up = "mlp.shared_expert.up_proj.weight",
	.shared_down = "mlp.shared_expert.down_proj.weight",
};
static const struct xfp_expert_names mixtral_experts = {
	SPARSE_MOE_EXPERTS,
	.gate_up_stack = "mlp.experts.gate_up_proj",
	.down_stack = "mlp.experts.down_proj",
	.stack_router = "mlp.gate.weight",
};
static const struct xfp_expert_names glm_experts = {
	.correction = "mlp.gate.e_score_correction_bias",
	MLP_EXPERTS,
	SHARED_EXPERTS,
};
static const struct xfp_expert_names deepseek_v2_experts = {
	MLP_EXPERTS,
	SHARED_EXPERTS,
};
static const struct xfp_expert_names minimax_experts = {
	.correction = "block_sparse_moe.e_score_correction_bias",
	SPARSE_MOE_EXPERTS,
	.gate_up_stack = "mlp.experts.gate_up_proj",
	.down_stack = "mlp.experts.down_proj",
	.stack_router = "mlp.gate.weight",
	.stack_correction = "mlp.e_score_correction_bias",
};
static const struct xfp_expert_names gpt_oss_experts = {
	.router = "mlp.router.weight",
	.router_bias = "mlp.router.bias",
	.gate_up_stack = "mlp.experts.gate_up_proj",
	.down_stack = "mlp.experts.down_proj",
	.transposed = true,
	.interleaved = true,
	.gate_up_bias = "mlp.experts.gate_up_proj_bias",
	.down_bias = "mlp.experts.down_proj_bias",
};
static const struct xfp_expert_names ernie_experts = {
	.correction = "mlp.moe_statics.e_score_correction_bias",
	.correction_row = true,
	MLP_EXPERTS,
	SHARED_EXPERTS,
};
static const struct xfp_expert_keys local_keys = { .experts = "num_local_experts",
						   .experts_alias = "num_experts",
						   .per_token = "num_experts_per_tok" };
static const struct xfp_expert_keys routed_keys = { .experts = "n_routed_experts",
						    .experts_alias = "num_local_experts",
						    .per_token = "num_experts_per_tok",
						    .shared = "n_shared_experts" };
static const struct xfp_expert_keys deepseek_v2_keys = { .experts = "n_routed_experts",
							 .experts_alias = "num_experts",
							 .per_token = "num_experts_per_tok",
							 .shared = "n_shared_experts" };
static const struct xfp_expert_keys ernie_keys = {
	.experts = "moe_num_experts",
	.experts_alias = "num_experts",
	.per_token = "moe_k",
	.per_token_alias = "num_experts_per_tok",
	.shared = "moe_num_shared_experts",
	.first_layer = "moe_layer_start_index",
	.last_layer = "moe_layer_end_index",
	.interval = "moe_layer_interval",
};
static const struct xfp_expert_names llama4_experts = {
	.router = "feed_forward.router.weight",
	.gate = "feed_forward.experts.%u.gate_proj.weight",
	.up = "feed_forward.experts.%u.up_proj.weight",
	.down = "feed_forward.experts.%u.down_proj.weight",
	.gate_up_stack = "feed_forward.experts.gate_up_proj",
	.down_stack = "feed_forward.experts.down_proj",
	.transposed = true,
	.shared_gate = "feed_forward.shared_expert.gate_proj.weight",
	.shared_up = "feed_forward.shared_expert.up_proj.weight",
	.shared_down = "feed_forward.shared_expert.down_proj.weight",
};
static const struct xfp_expert_keys llama4_keys = {
	.experts = "num_local_experts",
	.per_token = "num_experts_per_tok",
	.width = "intermediate_size",
	.layers = "moe_layers",
	.interval = "interleave_moe_layer_step",
};
static const struct xfp_router_rule llama4_router = { .sigmoid = true, .input = true };
static const struct xfp_router_rule ernie_router = { .min_sum = 1e-12, .min_sum_key = "moe_norm_min" };
static const struct xfp_router_rule glm_router = {
	.sigmoid = true, .group_top_two = true, .groups = 1, .groups_per_token = 1, .scale = 1, .min_sum = 1e-20
};
static const struct xfp_router_rule minimax_router = { .sigmoid = true };
static const struct xfp_router_rule deepseek_v3_router = {
	.sigmoid = true, .group_top_two = true, .groups = 8, .groups_per_token = 4, .scale = 2.5, .min_sum = 1e-20
};
static const struct xfp_router_rule glm_lite_router = {
	.sigmoid = true, .group_top_two = true, .groups = 1, .groups_per_token = 1, .scale = 1.8, .min_sum = 1e-20
};
static const struct xfp_router_rule deepseek_v2_router = { .by_method = true, .scale = 1 };
static const struct xfp_layer_norms output_norms = {
	.attention_output = "post_attention_layernorm.weight",
	.mlp_output = "post_feedforward_layernorm.weight",
};
static const struct xfp_layer_norms gemma_norms = {
	.attention = "input_layernorm.weight",
	.attention_output = "post_attention_layernorm.weight",
	.mlp = "pre_feedforward_layernorm.weight",
	.mlp_output = "post_feedforward_layernorm.weight",
};

/* The text models of multimodal Gemma 3 follow the same rules under either type. */
#define GEMMA3                                                                                       \
	.sizes = { .heads = 8,                                                                       \
		   .kv_heads = 4,                                                                    \
		   .head_dim = 256,                                                                  \
		   .vocabulary = 262208,                                                             \
		   .context = 131072,                                                                \
		   .epsilon = 1e-6 },                                                                \
	.norms = &gemma_norms, .query_key_norm = true, .norm_offset = 1, .tied = true,               \
	.activation_key = "hidden_activation", .activation = XFP_GELU_TANH, .scaled = true,          \
	.bias = XFP_BIAS_BY_CONFIG, .window = XFP_WINDOW_PATTERN, .window_size = 4096, .pattern = 6, \
	.pattern_key = true, .theta = 1e6, .local_theta = 1e4

static const struct xfp_model_family families[] = {
	{ .type = "llama", .bias = XFP_BIAS_BY_CONFIG, .mlp_bias = true, .theta = 1e4 },
	{ .type = "mistral", .window = XFP_WINDOW_ALWAYS, .window_size = 4096, .theta = 1e4 },
	{ .type = "ministral", .window = XFP_WINDOW_BY_TYPES, .window_size = 4096, .theta = 1e4 },
	{ .type = "mixtral",
	  .window = XFP_WINDOW_ALWAYS,
	  .experts = &mixtral_experts,
	  .expert_keys = &local_keys,
	  .norm_topk = true,
	  .every_layer = true,
	  .dense_width = true,
	  .theta = 1e6 },
	{ .type = "qwen2", .bias = XFP_BIAS_QKV, .window = XFP_WINDOW_BY_LAYERS, .window_size = 4096, .theta = 1e4 },
	{ .type = "qwen3",
	  .sizes = { .head_dim = 128 },
	  .query_key_norm = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .window = XFP_WINDOW_BY_LAYERS,
	  .window_size = 4096,
	  .theta = 1e4 },
	{ .type = "qwen3_moe",
	  .query_key_norm = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .window = XFP_WINDOW_IF_USED,
	  .window_size = 4096,
	  .experts = &qwen_experts,
	  .expert_keys = &local_keys,
	  .theta = 1e4 },
	{ .type = "phi3",
	  .fused = true,
	  .window = XFP_WINDOW_ALWAYS,
	  .theta = 1e4,
	  .partial_rotary = 1,
	  .original_context = 4096,
	  .only_longrope = true },
	{ .type = "gemma2",
	  .sizes = { .heads = 8,
		     .kv_heads = 4,
		     .head_dim = 256,
		     .vocabulary = 256000,
		     .context = 8192,
		     .epsilon = 1e-6 },
	  .norms = &gemma_norms,
	  .norm_offset = 1,
	  .tied = true,
	  .activation_key = "hidden_activation",
	  .activation = XFP_GELU_TANH,
	  .scaled = true,
	  .score_capped = true,
	  .default_cap = 50,
	  .default_logits = 30,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .window = XFP_WINDOW_PATTERN,
	  .window_size = 4096,
	  .pattern = 2,
	  .theta = 1e4 },
	{ .type = "gemma3", GEMMA3 },
	{ .type = "gemma3_text", GEMMA3 },
	{ .type = "qwen3_next",
	  .sizes = { .head_dim = 256 },
	  .query_key_norm = true,
	  .norm_offset = 1,
	  .output_gate = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .experts = &qwen_shared_experts,
	  .norm_topk_default = true,
	  .theta = 1e4,
	  .partial_rotary = 0.25,
	  .delta = XFP_DELTA_BY_HEADS },
	{ .type = "qwen3_5",
	  .sizes = { .head_dim = 256 },
	  .query_key_norm = true,
	  .norm_offset = 1,
	  .output_gate = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .theta = 1e4,
	  .partial_rotary = 0.25,
	  .delta = XFP_DELTA_BY_KINDS },
	{ .type = "qwen3_5_moe",
	  .sizes = { .head_dim = 256 },
	  .query_key_norm = true,
	  .norm_offset = 1,
	  .output_gate = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .experts = &qwen_shared_experts,
	  .norm_topk = true,
	  .every_layer = true,
	  .theta = 1e4,
	  .partial_rotary = 0.25,
	  .delta = XFP_DELTA_BY_KINDS },
	{ .type = "glm4_moe",
	  .norm_by_config = true,
	  .bias = XFP_BIAS_QKV_BY_CONFIG,
	  .experts = &glm_experts,
	  .expert_keys = &routed_keys,
	  .router = &glm_router,
	  .norm_topk_default = true,
	  .every_layer = true,
	  .leading_dense = true,
	  .leading = 1,
	  .mtp_layers = true,
	  .theta = 1e4,
	  .partial_rotary = 0.5 },
	{ .type = "minimax_m2",
	  .sizes = { .head_dim = 128 },
	  .query_key_norm = true,
	  .joint_norm = true,
	  .experts = &minimax_experts,
	  .expert_keys = &local_keys,
	  .router = &minimax_router,
	  .norm_topk = true,
	  .every_layer = true,
	  .dense_width = true,
	  .theta = 5e6,
	  .partial_rotary = 1,
	  .rotary_dim = true },
	{ .type = "gpt_oss",
	  .sizes = { .head_dim = 64 },
	  .alpha = 1.702,
	  .limit = 7,
	  .sinks = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .bias_unless = true,
	  .window = XFP_WINDOW_PATTERN,
	  .window_size = 128,
	  .pattern = 2,
	  .experts = &gpt_oss_experts,
	  .expert_keys = &local_keys,
	  .norm_topk = true,
	  .every_layer = true,
	  .dense_width = true,
	  .theta = 1.5e5,
	  .needs_rope = true },
	{ .type = "deepseek_v2",
	  .latent = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .experts = &deepseek_v2_experts,
	  .expert_keys = &deepseek_v2_keys,
	  .router = &deepseek_v2_router,
	  .shared = 2,
	  .never_norm_topk = true,
	  .every_layer = true,
	  .leading_dense = true,
	  .theta = 1e4,
	  .interleaved = true },
	{ .type = "deepseek_v3",
	  .latent = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .experts = &glm_experts,
	  .expert_keys = &routed_keys,
	  .router = &deepseek_v3_router,
	  .norm_topk_default = true,
	  .every_layer = true,
	  .leading_dense = true,
	  .leading = 3,
	  .mtp_layers = true,
	  .theta = 1e4 },
	{ .type = "glm4_moe_lite",
	  .latent = true,
	  .head_dim_rotated = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .experts = &glm_experts,
	  .expert_keys = &routed_keys,
	  .router = &glm_lite_router,
	  .norm_topk_default = true,
	  .every_layer = true,
	  .leading_dense = true,
	  .leading = 1,
	  .mlp_types = true,
	  .mtp_layers = true,
	  .theta = 1e4 },
	{ .type = "ernie4_5",
	  .sizes = { .head_dim = 128 },
	  .tied = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .bias_key = "use_bias",
	  .mlp_bias = true,
	  .theta = 5e5,
	  .interleaved = true },
	{ .type = "ernie4_5_moe",
	  .tied = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .bias_key = "use_bias",
	  .experts = &ernie_experts,
	  .expert_keys = &ernie_keys,
	  .shared = 2,
	  .router = &ernie_router,
	  .norm_topk = true,
	  .theta = 5e5,
	  .interleaved = true },
	{ .type = "llama4_text",
	  .sizes = { .head_dim = 128 },
	  .rotated_norm = true,
	  .temperature = true,
	  .mlp = "feed_forward",
	  .width = "intermediate_size_mlp",
	  .bias = XFP_BIAS_BY_CONFIG,
	  .window = XFP_WINDOW_CHUNKS,
	  .window_size = 8192,
	  .experts = &llama4_experts,
	  .expert_keys = &llama4_keys,
	  .router = &llama4_router,
	  .theta = 5e5,
	  .no_rope = 4,
	  .interleaved = true },
	{ .type = "qwen2_moe",
	  .bias = XFP_BIAS_QKV_BY_CONFIG,
	  .bias_key = "qkv_bias",
	  .bias_unless = true,
	  .never_window = true,
	  .experts = &qwen_shared_experts,
	  .theta = 1e4 },
	{ .type = "gemma",
	  .sizes = { .head_dim = 256 },
	  .tied = true,
	  .activation_key = "hidden_act",
	  .activation = XFP_GELU_TANH,
	  .words_scaled = true,
	  .norm_offset = 1,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .theta = 1e4 },
	{ .type = "granite", .multiplied = true, .bias = XFP_BIAS_BY_CONFIG, .mlp_bias = true, .theta = 1e4 },
	{ .type = "smollm3",
	  .tied = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .mlp_bias = true,
	  .never_window = true,
	  .theta = 2e6,
	  .no_rope = 4 },
	{ .type = "seed_oss",
	  .sizes = { .head_dim = 128 },
	  .bias = XFP_BIAS_QKV_BY_CONFIG,
	  .bias_unless = true,
	  .output_bias_key = "attention_out_bias",
	  .mlp_bias = true,
	  .theta = 1e4 },
	{ .type = "olmo2",
	  .norms = &output_norms,
	  .query_key_norm = true,
	  .joint_norm = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .theta = 1e4 },
	{ .type = "bert", .encoder = true, .sizes = { .epsilon = 1e-12 }, .activation = XFP_GELU },
};

/* Other types of the same models: those that multimodal models give their text models, and Kimi's. */
static const struct {
	const char *type, *family;
} text_types[] = {
	{ "qwen3_5_text", "qwen3_5" },
	{ "qwen3_5_moe_text", "qwen3_5_moe" },
	{ "kimi_k2", "deepseek_v3" },
};
#define FAMILIES (sizeof families / sizeof *families)

const struct xfp_model_family *xfp_model_family_find(const char *type)
{
	for (size_t i = 0; type && i < sizeof text_types / sizeof *text_types; i++) {
		if (!strcmp(type, text_types[i].type))
			type = text_types[i].family;
	}
	for (size_t i = 0; type && i < FAMILIES; i++) {
		if (!strcmp(type, families[i].type))
			return &families[i];
	}
	return NULL;
}

void xfp_model_family_list(char text[XFP_MODEL_FAMILY_LIST])
{
	size_t length = 0;

	for (size_t i = 0; i < FAMILIES && length < XFP_MODEL_FAMILY_LIST; i++)
		length += (size_t)snprintf(text + length, XFP_MODEL_FAMILY_LIST - length, "%s%s",
					   !i                 ? ""
					   : i + 1 < FAMILIES ? ", "
							      : " and ",
					   families[i].type);
}
