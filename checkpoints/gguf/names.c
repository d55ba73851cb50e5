/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/gguf/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- architectures ------------------------------------------------------------------------------ */

static const char *const architectures[XFP_GGUF_ARCHITECTURES] = {
	[XFP_GGUF_LLAMA] = "llama", [XFP_GGUF_MIXTRAL] = "llama",     [XFP_GGUF_QWEN2] = "qwen2",
	[XFP_GGUF_QWEN3] = "qwen3", [XFP_GGUF_QWEN3MOE] = "qwen3moe", [XFP_GGUF_QWEN3NEXT] = "qwen3next",
	[XFP_GGUF_GEMMA] = "gemma", [XFP_GGUF_GEMMA2] = "gemma2",     [XFP_GGUF_GEMMA3] = "gemma3",
	[XFP_GGUF_PHI3] = "phi3",   [XFP_GGUF_GPT_OSS] = "gpt-oss",   [XFP_GGUF_GLM4MOE] = "glm4moe",
};

enum xfp_gguf_architecture xfp_gguf_architecture(const struct xfp_gguf_metadata *metadata, const char **name)
{
	const struct xfp_gguf_value *value = xfp_gguf_find(metadata, "general.architecture");
	uint64_t experts;

	*name = "";
	for (int i = 0; i < XFP_GGUF_ARCHITECTURES; i++)
		if (xfp_gguf_text_is(value, architectures[i])) {
			*name = architectures[i];
			if (i == XFP_GGUF_LLAMA &&
			    xfp_gguf_integer(xfp_gguf_find(metadata, "llama.expert_count"), 0, &experts) && experts)
				i = XFP_GGUF_MIXTRAL;
			return (enum xfp_gguf_architecture)i;
		}
	return XFP_GGUF_ARCHITECTURES;
}

/* ---- names -------------------------------------------------------------------------------------- */

#define OF(architecture) (1u << XFP_GGUF_##architecture)
#define GEMMAS (OF(GEMMA) | OF(GEMMA2) | OF(GEMMA3))
#define ALL (~0u)
/* Architectures with these names for the norms before and after the experts. */
#define POST (OF(GPT_OSS) | OF(GLM4MOE) | OF(QWEN3NEXT))

struct name_rule {
	unsigned of;
	const char *theirs, *ours; /* without .weight or .bias, which are kept; or with it, then ours is complete */
	enum xfp_gguf_transform transform;
};

/* Names outside of layers. */
static const struct name_rule tops[] = {
	{ ALL, "token_embd", "model.embed_tokens", XFP_GGUF_AS_IS },
	{ ALL, "output_norm", "model.norm", XFP_GGUF_NORM },
	{ ALL, "output", "lm_head", XFP_GGUF_AS_IS },
	{ ALL, "rope_freqs.weight", "rope_freqs.weight", XFP_GGUF_CONSUMED },
	{ OF(PHI3), "rope_factors_long.weight", "rope_factors_long.weight", XFP_GGUF_CONSUMED },
	{ OF(PHI3), "rope_factors_short.weight", "rope_factors_short.weight", XFP_GGUF_CONSUMED },
};

/* Names within layers, after "blk.N."; the first match is used. */
static const struct name_rule layers[] = {
	{ ALL, "attn_norm", "input_layernorm", XFP_GGUF_NORM },
	{ OF(QWEN3NEXT), "attn_qkv.weight", "linear_attn.in_proj_qkvz.weight", XFP_GGUF_LINEAR },
	{ OF(QWEN3NEXT), "attn_gate.weight", "", XFP_GGUF_CONSUMED },
	{ OF(PHI3), "attn_qkv", "self_attn.qkv_proj", XFP_GGUF_AS_IS },
	{ ALL, "attn_qkv", "self_attn.{p}_proj", XFP_GGUF_QKV },
	{ ALL, "attn_q", "self_attn.q_proj", XFP_GGUF_QUERY },
	{ ALL, "attn_k", "self_attn.k_proj", XFP_GGUF_KEY },
	{ ALL, "attn_v", "self_attn.v_proj", XFP_GGUF_AS_IS },
	{ ALL, "attn_output", "self_attn.o_proj", XFP_GGUF_AS_IS },
	{ ALL, "attn_q_norm", "self_attn.q_norm", XFP_GGUF_NORM },
	{ ALL, "attn_k_norm", "self_attn.k_norm", XFP_GGUF_NORM },
	{ OF(GPT_OSS), "attn_sinks.weight", "self_attn.sinks", XFP_GGUF_AS_IS },
	{ POST, "post_attention_norm", "post_attention_layernorm", XFP_GGUF_NORM },
	{ GEMMAS, "post_attention_norm", "post_attention_layernorm", XFP_GGUF_NORM },
	{ GEMMAS, "post_ffw_norm", "post_feedforward_layernorm", XFP_GGUF_NORM },
	{ OF(GEMMA2) | OF(GEMMA3), "ffn_norm", "pre_feedforward_layernorm", XFP_GGUF_NORM },
	{ ALL & ~POST, "ffn_norm", "post_attention_layernorm", XFP_GGUF_NORM },
	{ OF(PHI3), "ffn_up", "mlp.gate_up_proj", XFP_GGUF_AS_IS },
	{ ALL, "ffn_gate", "mlp.gate_proj", XFP_GGUF_AS_IS },
	{ ALL, "ffn_up", "mlp.up_proj", XFP_GGUF_AS_IS },
	{ ALL, "ffn_down", "mlp.down_proj", XFP_GGUF_AS_IS },

	{ OF(MIXTRAL), "ffn_gate_inp", "block_sparse_moe.gate", XFP_GGUF_AS_IS },
	{ OF(MIXTRAL), "ffn_gate_exps", "block_sparse_moe.experts.{e}.w1", XFP_GGUF_EXPERTS },
	{ OF(MIXTRAL), "ffn_up_exps", "block_sparse_moe.experts.{e}.w3", XFP_GGUF_EXPERTS },
	{ OF(MIXTRAL), "ffn_down_exps", "block_sparse_moe.experts.{e}.w2", XFP_GGUF_EXPERTS },
	/* Older files, without stacks of experts. */
	{ OF(MIXTRAL), "ffn_gate.{e}", "block_sparse_moe.experts.{e}.w1", XFP_GGUF_AS_IS },
	{ OF(MIXTRAL), "ffn_up.{e}", "block_sparse_moe.experts.{e}.w3", XFP_GGUF_AS_IS },
	{ OF(MIXTRAL), "ffn_down.{e}", "block_sparse_moe.experts.{e}.w2", XFP_GGUF_AS_IS },

	{ OF(GPT_OSS), "ffn_gate_inp", "mlp.router", XFP_GGUF_AS_IS },
	{ OF(GPT_OSS), "ffn_gate_exps.weight", "mlp.experts.gate_up_proj", XFP_GGUF_INTERLEAVED },
	{ OF(GPT_OSS), "ffn_up_exps.weight", "", XFP_GGUF_CONSUMED },
	{ OF(GPT_OSS), "ffn_gate_exps.bias", "mlp.experts.gate_up_proj_bias", XFP_GGUF_BIASES },
	{ OF(GPT_OSS), "ffn_up_exps.bias", "", XFP_GGUF_CONSUMED },
	{ OF(GPT_OSS), "ffn_down_exps.weight", "mlp.experts.down_proj", XFP_GGUF_TRANSPOSED },
	{ OF(GPT_OSS), "ffn_down_exps.bias", "mlp.experts.down_proj_bias", XFP_GGUF_AS_IS },

	{ ALL, "ffn_gate_inp", "mlp.gate", XFP_GGUF_AS_IS },
	{ ALL, "exp_probs_b.bias", "mlp.gate.e_score_correction_bias", XFP_GGUF_AS_IS },
	{ ALL, "ffn_gate_exps", "mlp.experts.{e}.gate_proj", XFP_GGUF_EXPERTS },
	{ ALL, "ffn_up_exps", "mlp.experts.{e}.up_proj", XFP_GGUF_EXPERTS },
	{ ALL, "ffn_down_exps", "mlp.experts.{e}.down_proj", XFP_GGUF_EXPERTS },
	{ ALL, "ffn_gate_up_exps", "mlp.experts.{e}.{p}_proj", XFP_GGUF_GATE_UP },
	{ OF(GLM4MOE), "ffn_gate_shexp", "mlp.shared_experts.gate_proj", XFP_GGUF_AS_IS },
	{ OF(GLM4MOE), "ffn_up_shexp", "mlp.shared_experts.up_proj", XFP_GGUF_AS_IS },
	{ OF(GLM4MOE), "ffn_down_shexp", "mlp.shared_experts.down_proj", XFP_GGUF_AS_IS },
	{ ALL, "ffn_gate_shexp", "mlp.shared_expert.gate_proj", XFP_GGUF_AS_IS },
	{ ALL, "ffn_up_shexp", "mlp.shared_expert.up_proj", XFP_GGUF_AS_IS },
	{ ALL, "ffn_down_shexp", "mlp.shared_expert.down_proj", XFP_GGUF_AS_IS },
	{ ALL, "ffn_gate_inp_shexp", "mlp.shared_expert_gate", XFP_GGUF_ROW },

	{ ALL, "ssm_in", "linear_attn.in_proj_qkvz", XFP_GGUF_AS_IS },
	{ ALL, "ssm_ba", "linear_attn.in_proj_ba", XFP_GGUF_AS_IS },
	{ ALL, "ssm_conv1d", "linear_attn.conv1d", XFP_GGUF_CONV },
	{ ALL, "ssm_dt.bias", "linear_attn.dt_bias", XFP_GGUF_AS_IS },
	{ ALL, "ssm_a", "linear_attn.A_log", XFP_GGUF_DECAY },
	{ ALL, "ssm_norm", "linear_attn.norm", XFP_GGUF_AS_IS },
	{ ALL, "ssm_out", "linear_attn.out_proj", XFP_GGUF_AS_IS },

	{ OF(GLM4MOE), "nextn.eh_proj", "eh_proj", XFP_GGUF_AS_IS },
	{ OF(GLM4MOE), "nextn.enorm", "enorm", XFP_GGUF_NORM },
	{ OF(GLM4MOE), "nextn.hnorm", "hnorm", XFP_GGUF_NORM },
	{ OF(GLM4MOE), "nextn.embed_tokens", "embed_tokens", XFP_GGUF_AS_IS },
	{ OF(GLM4MOE), "nextn.shared_head_head", "shared_head.head", XFP_GGUF_AS_IS },
	{ OF(GLM4MOE), "nextn.shared_head_norm", "shared_head.norm", XFP_GGUF_NORM },
};

/* Names of the first multi-token prediction layer that belong to all of them. */
static const struct name_rule drafts[] = {
	{ OF(QWEN3NEXT), "nextn.eh_proj", "mtp.fc", XFP_GGUF_AS_IS },
	{ OF(QWEN3NEXT), "nextn.enorm", "mtp.pre_fc_norm_embedding", XFP_GGUF_NORM },
	{ OF(QWEN3NEXT), "nextn.hnorm", "mtp.pre_fc_norm_hidden", XFP_GGUF_NORM },
	{ OF(QWEN3NEXT), "nextn.shared_head_norm", "mtp.norm", XFP_GGUF_NORM },
};

/* Parse a number without sign and leading zeros; returns NULL if there is none. */
static const char *parse_number(const char *text, uint64_t *number)
{
	const char *end = text + strspn(text, "0123456789");

	if (end == text || end - text > 9 || (*text == '0' && end != text + 1))
		return NULL;
	*number = strtoull(text, NULL, 10);
	return end;
}

/* Match the beginning of a name with a rule, in which {e} is any number; returns the rest, or NULL. */
static const char *match(const char *rule, const char *name, uint64_t *expert)
{
	const char *mark = strstr(rule, "{e}");
	size_t length = mark ? (size_t)(mark - rule) : strlen(rule);

	if (strncmp(rule, name, length) != 0)
		return NULL;
	return mark ? parse_number(name + length, expert) : name + length;
}

static const struct name_rule *find(const struct name_rule *rules, size_t count, unsigned of, const char *name,
				    const char **ending, uint64_t *expert)
{
	for (size_t i = 0; i < count; i++) {
		*ending = rules[i].of & of ? match(rules[i].theirs, name, expert) : NULL;
		if (*ending && (!**ending || !strcmp(*ending, ".weight") || !strcmp(*ending, ".bias")))
			return &rules[i];
	}
	return NULL;
}

#define FIND(rules, name) find(rules, sizeof(rules) / sizeof *(rules), of, name, &ending, &place.expert)

/* Return whether norms have 1 added in all but these. */
static bool is_shifted(enum xfp_gguf_architecture architecture)
{
	return architecture == XFP_GGUF_GEMMA || architecture == XFP_GGUF_GEMMA2 || architecture == XFP_GGUF_GEMMA3 ||
	       architecture == XFP_GGUF_QWEN3NEXT;
}

static void settle(struct xfp_gguf_place *place, enum xfp_gguf_architecture architecture)
{
	bool interleaved = architecture == XFP_GGUF_LLAMA || architecture == XFP_GGUF_MIXTRAL;

	if (place->transform == XFP_GGUF_NORM && !is_shifted(architecture))
		place->transform = XFP_GGUF_AS_IS;
	if ((place->transform == XFP_GGUF_QUERY || place->transform == XFP_GGUF_KEY) && !interleaved)
		place->transform = XFP_GGUF_AS_IS;
}

struct xfp_gguf_place xfp_gguf_place(enum xfp_gguf_architecture architecture, uint64_t count, const char *name)
{
	struct xfp_gguf_place place = { .transform = XFP_GGUF_UNKNOWN, .layer = UINT64_MAX, .expert = UINT64_MAX };
	unsigned of = architecture < XFP_GGUF_ARCHITECTURES ? 1u << architecture : 0;
	const char *ending = "", *rest, *before = "";
	const struct name_rule *rule = NULL;
	char layer[64] = "";

	if (strncmp(name, "blk.", 4) != 0) {
		rule = FIND(tops, name);
	} else if ((rest = parse_number(name + 4, &place.layer)) && *rest == '.') {
		bool draft = architecture == XFP_GGUF_QWEN3NEXT && place.layer >= count;

		if (draft && place.layer == count)
			rule = FIND(drafts, rest + 1);
		if (!rule && (rule = FIND(layers, rest + 1))) {
			before = draft ? "mtp.layers." : "model.layers.";
			snprintf(layer, sizeof layer, "%" PRIu64 ".", draft ? place.layer - count : place.layer);
		}
	}
	if (!rule) {
		snprintf(place.name, sizeof place.name, "%s", name);
		return place;
	}
	place.transform = rule->transform;
	settle(&place, architecture);
	if (strstr(rule->theirs, "{e}")) {
		const char *mark = strstr(rule->ours, "{e}");

		snprintf(place.name, sizeof place.name, "%s%s%.*s%" PRIu64 "%s%s", before, layer,
			 (int)(mark - rule->ours), rule->ours, place.expert, mark + 3, ending);
	} else {
		snprintf(place.name, sizeof place.name, "%s%s%s%s", before, layer, rule->ours, ending);
	}
	return place;
}
