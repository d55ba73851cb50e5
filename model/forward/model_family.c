/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/model_family.h"

#include <stdio.h>
#include <string.h>

static const struct xfp_expert_names qwen_experts = {
	.router = "mlp.gate.weight",
	.gate = "mlp.experts.%u.gate_proj.weight",
	.up = "mlp.experts.%u.up_proj.weight",
	.down = "mlp.experts.%u.down_proj.weight",
};
static const struct xfp_expert_names mixtral_experts = {
	.router = "block_sparse_moe.gate.weight",
	.gate = "block_sparse_moe.experts.%u.w1.weight",
	.up = "block_sparse_moe.experts.%u.w3.weight",
	.down = "block_sparse_moe.experts.%u.w2.weight",
};

static const struct xfp_model_family families[] = {
	{ .type = "llama", .bias = XFP_BIAS_BY_CONFIG, .mlp_bias = true, .theta = 1e4 },
	{ .type = "mistral", .window = XFP_WINDOW_ALWAYS, .theta = 1e4 },
	{ .type = "mixtral",
	  .window = XFP_WINDOW_ALWAYS,
	  .experts = &mixtral_experts,
	  .renormalise = true,
	  .every_layer = true,
	  .theta = 1e6 },
	{ .type = "qwen2", .bias = XFP_BIAS_QKV, .window = XFP_WINDOW_BY_LAYERS, .theta = 1e4 },
	{ .type = "qwen3",
	  .query_key_norm = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .window = XFP_WINDOW_BY_LAYERS,
	  .theta = 1e4 },
	{ .type = "qwen3_moe",
	  .query_key_norm = true,
	  .bias = XFP_BIAS_BY_CONFIG,
	  .window = XFP_WINDOW_IF_USED,
	  .experts = &qwen_experts,
	  .theta = 1e4 },
};
#define FAMILIES (sizeof families / sizeof *families)

const struct xfp_model_family *xfp_model_family_find(const char *type)
{
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
