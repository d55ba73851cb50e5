/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - write Hugging Face's config.json from GGUF metadata.
 *
 * Properties that llama.cpp has in its code instead of the file are written as in that code: whether routing weights
 * are normalized, the activation of an architecture, which layers use sliding-window attention.
 */
#include "checkpoints/gguf/config.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "checkpoints/format.h"
#include "checkpoints/note.h"

#define MAX_SIZE UINT32_MAX /* maximum of any size that is copied */

static const struct {
	const char *model_type, *class_, *activation;
} models[XFP_GGUF_ARCHITECTURES] = {
	[XFP_GGUF_LLAMA] = { "llama", "LlamaForCausalLM", "silu" },
	[XFP_GGUF_MIXTRAL] = { "mixtral", "MixtralForCausalLM", "silu" },
	[XFP_GGUF_QWEN2] = { "qwen2", "Qwen2ForCausalLM", "silu" },
	[XFP_GGUF_QWEN3] = { "qwen3", "Qwen3ForCausalLM", "silu" },
	[XFP_GGUF_QWEN3MOE] = { "qwen3_moe", "Qwen3MoeForCausalLM", "silu" },
	[XFP_GGUF_QWEN3NEXT] = { "qwen3_next", "Qwen3NextForCausalLM", "silu" },
	[XFP_GGUF_GEMMA] = { "gemma", "GemmaForCausalLM", "gelu_pytorch_tanh" },
	[XFP_GGUF_GEMMA2] = { "gemma2", "Gemma2ForCausalLM", "gelu_pytorch_tanh" },
	[XFP_GGUF_GEMMA3] = { "gemma3_text", "Gemma3ForCausalLM", "gelu_pytorch_tanh" },
	[XFP_GGUF_PHI3] = { "phi3", "Phi3ForCausalLM", "silu" },
	[XFP_GGUF_GPT_OSS] = { "gpt_oss", "GptOssForCausalLM", "silu" },
	[XFP_GGUF_GLM4MOE] = { "glm4_moe", "Glm4MoeForCausalLM", "silu" },
};

struct synthesized_config {
	struct xfp_gguf_model *m;
	FILE *out;
	enum xfp_status status; /* the first failure; nothing is written after it */
};

/* ---- fields ------------------------------------------------------------------------------------- */

static const struct xfp_gguf_value *value_of(const struct synthesized_config *w, const char *key)
{
	return xfp_gguf_find_in(&w->m->files[0].metadata, w->m->prefix, key);
}

static void field(struct synthesized_config *w, const char *name)
{
	fprintf(w->out, ",\n  \"%s\": ", name);
}

static void put_number(struct synthesized_config *w, const char *name, uint64_t number)
{
	field(w, name);
	fprintf(w->out, "%" PRIu64, number);
}

static void put_flag(struct synthesized_config *w, const char *name, bool flag)
{
	field(w, name);
	fputs(flag ? "true" : "false", w->out);
}

static void put_real(struct synthesized_config *w, const char *name, double number)
{
	field(w, name);
	xfp_gguf_print_real(w->out, number);
}

static void put_text(struct synthesized_config *w, const char *name, const char *text)
{
	field(w, name);
	fprintf(w->out, "\"%s\"", text);
}

/* Read a number that all layers share; if they differ, that of the first layer, with a note. Returns false if
 * missing. */
static bool number_of(struct synthesized_config *w, const char *key, uint64_t *number)
{
	const struct xfp_gguf_value *value = value_of(w, key);
	uint64_t other;

	if (w->status || !value || (value->array && !value->count))
		return false;
	if (!xfp_gguf_integer(value, 0, number) || *number > MAX_SIZE) {
		w->status = xfp_gguf_bad_key(w->m, key, "has an invalid value; download the file again");
		return false;
	}
	for (uint64_t i = 1; value->array && i < value->count; i++)
		if (xfp_gguf_integer(value, i, &other) && other != *number) {
			xfp_checkpoint_note(
				w->m->checkpoint,
				"metadata %s.%s: differs between layers, which config.json cannot express; the "
				"first layer's value is used",
				w->m->prefix, key);
			break;
		}
	return true;
}

static bool real_of(struct synthesized_config *w, const char *key, double *number)
{
	const struct xfp_gguf_value *value = value_of(w, key);

	if (w->status || !value)
		return false;
	if (!xfp_gguf_real(value, 0, number) || !isfinite(*number)) {
		w->status = xfp_gguf_bad_key(w->m, key, "is not a number; download the file again");
		return false;
	}
	return true;
}

static bool copy_number(struct synthesized_config *w, const char *name, const char *key)
{
	uint64_t number;

	if (!number_of(w, key, &number))
		return false;
	put_number(w, name, number);
	return true;
}

/* Read a required number. */
static uint64_t need_number(struct synthesized_config *w, const char *name, const char *key)
{
	uint64_t number = 1;

	if (!w->status && !(w->status = xfp_gguf_read_number(w->m, key, 0, MAX_SIZE, &number)) &&
	    number_of(w, key, &number))
		put_number(w, name, number);
	return number;
}

static void copy_real(struct synthesized_config *w, const char *name, const char *key)
{
	double number;

	if (real_of(w, key, &number))
		put_real(w, name, number);
}

/* ---- properties derived from tensors ------------------------------------------------------------ */

/* "blk.LAYER.NAME" */
static const struct xfp_gguf_tensor *tensor_of(const struct synthesized_config *w, uint64_t layer, const char *name)
{
	const struct xfp_gguf_stored *stored;
	char full[64];

	snprintf(full, sizeof full, "blk.%" PRIu64 ".%s", layer, name);
	stored = xfp_gguf_stored(w->m, full);
	return stored ? stored->tensor : NULL;
}

static uint64_t vocabulary(const struct synthesized_config *w)
{
	const struct xfp_gguf_stored *embedding = xfp_gguf_stored(w->m, "token_embd.weight");
	uint64_t count;

	if (embedding && embedding->tensor->rank == 2)
		return embedding->tensor->shape[0];
	return xfp_gguf_integer(value_of(w, "vocab_size"), 0, &count) ? count : 0;
}

/* Return the dtype of most bytes, after unpacking. */
static const char *main_dtype(const struct synthesized_config *w)
{
	uint64_t bytes[XFP_DTYPES] = { 0 };

	for (uint32_t i = 0; i < w->m->stored_count; i++)
		bytes[w->m->stored[i].tensor->type->dtype] += w->m->stored[i].tensor->bytes;
	if (bytes[XFP_F16] >= bytes[XFP_BF16] && bytes[XFP_F16] >= bytes[XFP_F32] && bytes[XFP_F16])
		return "float16";
	return bytes[XFP_BF16] >= bytes[XFP_F32] && bytes[XFP_BF16] ? "bfloat16" : "float32";
}

static void put_token(struct synthesized_config *w, const char *name, const char *key)
{
	uint64_t token;

	if (xfp_gguf_integer(xfp_gguf_find(&w->m->files[0].metadata, key), 0, &token) && token <= MAX_SIZE)
		put_number(w, name, token);
}

/* Write the type of each layer. */
static void put_layer_types(struct synthesized_config *w,
			    bool (*full)(const struct synthesized_config *w, uint64_t layer), const char *other)
{
	field(w, "layer_types");
	for (uint64_t i = 0; i < w->m->layers; i++)
		fprintf(w->out, "%s\n    \"%s\"", i ? "," : "[", full(w, i) ? "full_attention" : other);
	fputs("\n  ]", w->out);
}

/* Return whether a layer has full attention instead of a sliding window: every n-th layer, by a key or by llama.cpp's
 * default for the architecture. */
static bool has_full_attention(const struct synthesized_config *w, uint64_t layer)
{
	const struct xfp_gguf_value *value = value_of(w, "attention.sliding_window_pattern");
	uint64_t every = w->m->architecture == XFP_GGUF_GEMMA3 ? 6 : 2;
	bool window;

	if (value && value->array && xfp_gguf_flag(value, layer, &window))
		return !window;
	if (value && !value->array && xfp_gguf_integer(value, 0, &every) && !every)
		return true;
	return (layer + 1) % every == 0;
}

/* The tensors of a Qwen3-Next layer show whether it has full or linear attention. */
static bool attends(const struct synthesized_config *w, uint64_t layer)
{
	return tensor_of(w, layer, "attn_q.weight") != NULL;
}

/* ---- architectures ------------------------------------------------------------------------------ */

static void put_attention_bias(struct synthesized_config *w)
{
	put_flag(w, "attention_bias", tensor_of(w, 0, "attn_q.bias") != NULL);
}

static void put_experts(struct synthesized_config *w, const char *count, const char *size)
{
	need_number(w, count, "expert_count");
	need_number(w, "num_experts_per_tok", "expert_used_count");
	if (size)
		need_number(w, size, "expert_feed_forward_length");
}

/* Write the number of layers without experts. */
static void put_dense_layers(struct synthesized_config *w)
{
	const char *comma = "";

	put_number(w, "decoder_sparse_step", 1);
	field(w, "mlp_only_layers");
	fputc('[', w->out);
	for (uint64_t i = 0; i < w->m->layers; i++)
		if (tensor_of(w, i, "ffn_up.weight")) {
			fprintf(w->out, "%s%" PRIu64, comma, i);
			comma = ", ";
		}
	fputc(']', w->out);
	put_flag(w, "norm_topk_prob", true);
}

static uint64_t head_width(struct synthesized_config *w)
{
	uint64_t width = 0, size, heads;

	if (xfp_gguf_integer(value_of(w, "attention.key_length"), 0, &width) && width)
		return width;
	return xfp_gguf_integer(value_of(w, "embedding_length"), 0, &size) &&
			       xfp_gguf_integer(value_of(w, "attention.head_count"), 0, &heads) && heads
		       ? size / heads
		       : 0;
}

/* Write the partial rotary factor. */
static void put_partial(struct synthesized_config *w)
{
	uint64_t rotary, width = head_width(w);

	if (width && number_of(w, "rope.dimension_count", &rotary))
		put_real(w, "partial_rotary_factor", (double)rotary / (double)width);
}

/* Write query_pre_attn_scalar, which differs in the largest model of a family. */
static void put_scalar(struct synthesized_config *w, uint64_t layers_of_largest)
{
	uint64_t size = 0, heads = 1, scalar = head_width(w);

	if (w->m->layers == layers_of_largest && xfp_gguf_integer(value_of(w, "embedding_length"), 0, &size) &&
	    xfp_gguf_integer(value_of(w, "attention.head_count"), 0, &heads) && heads)
		scalar = size / heads;
	put_number(w, "query_pre_attn_scalar", scalar);
}

static void put_gemma(struct synthesized_config *w)
{
	enum xfp_gguf_architecture a = w->m->architecture;

	put_text(w, "hidden_activation", models[a].activation);
	put_flag(w, "attention_bias", false);
	if (a == XFP_GGUF_GEMMA)
		return;
	put_scalar(w, a == XFP_GGUF_GEMMA2 ? 46 : 62);
	copy_real(w, "attn_logit_softcapping", "attn_logit_softcapping");
	copy_real(w, "final_logit_softcapping", "final_logit_softcapping");
	copy_number(w, "sliding_window", "attention.sliding_window");
	put_layer_types(w, has_full_attention, "sliding_attention");
	if (a == XFP_GGUF_GEMMA3) {
		double local = 10000;

		real_of(w, "rope.freq_base_swa", &local);
		put_real(w, "rope_local_base_freq", local);
	}
}

static void put_phi3(struct synthesized_config *w)
{
	uint64_t window;

	copy_number(w, "original_max_position_embeddings", "rope.scaling.original_context_length");
	put_partial(w);
	/* A window of 0 means no window. */
	if (number_of(w, "attention.sliding_window", &window) && window)
		put_number(w, "sliding_window", window);
}

static void put_gpt_oss(struct synthesized_config *w)
{
	put_experts(w, "num_local_experts", NULL);
	put_flag(w, "attention_bias", true);
	copy_number(w, "sliding_window", "attention.sliding_window");
	put_layer_types(w, has_full_attention, "sliding_attention");
	put_real(w, "swiglu_limit", 7);
}

static void put_qwen3_next(struct synthesized_config *w)
{
	uint64_t inner = 0, heads = 1;

	put_experts(w, "num_experts", "moe_intermediate_size");
	copy_number(w, "shared_expert_intermediate_size", "expert_shared_feed_forward_length");
	put_dense_layers(w);
	put_attention_bias(w);
	put_partial(w);
	need_number(w, "linear_conv_kernel_dim", "ssm.conv_kernel");
	need_number(w, "linear_key_head_dim", "ssm.state_size");
	need_number(w, "linear_num_key_heads", "ssm.group_count");
	heads = need_number(w, "linear_num_value_heads", "ssm.time_step_rank");
	if (number_of(w, "ssm.inner_size", &inner) && heads)
		put_number(w, "linear_value_head_dim", inner / heads);
	copy_number(w, "full_attention_interval", "full_attention_interval");
	put_layer_types(w, attends, "linear_attention");
}

static void put_glm4_moe(struct synthesized_config *w)
{
	bool shares = true;

	put_experts(w, "n_routed_experts", "moe_intermediate_size");
	copy_number(w, "n_shared_experts", "expert_shared_count");
	copy_number(w, "first_k_dense_replace", "leading_dense_block_count");
	copy_real(w, "routed_scaling_factor", "expert_weights_scale");
	xfp_gguf_flag(value_of(w, "expert_weights_norm"), 0, &shares);
	put_flag(w, "norm_topk_prob", shares);
	if (!copy_number(w, "n_group", "expert_group_count"))
		put_number(w, "n_group", 1);
	if (!copy_number(w, "topk_group", "expert_group_used_count"))
		put_number(w, "topk_group", 1);
	put_number(w, "num_nextn_predict_layers", w->m->drafts);
	put_flag(w, "use_qk_norm", tensor_of(w, 0, "attn_q_norm.weight") != NULL);
	put_attention_bias(w);
	put_partial(w);
}

static void put_own(struct synthesized_config *w)
{
	switch (w->m->architecture) {
	case XFP_GGUF_LLAMA:
		put_attention_bias(w);
		put_flag(w, "mlp_bias", tensor_of(w, 0, "ffn_up.bias") != NULL);
		break;
	case XFP_GGUF_MIXTRAL:
		put_experts(w, "num_local_experts", NULL);
		break;
	case XFP_GGUF_QWEN3:
		put_attention_bias(w);
		break;
	case XFP_GGUF_QWEN3MOE:
		put_experts(w, "num_experts", "moe_intermediate_size");
		put_dense_layers(w);
		put_attention_bias(w);
		break;
	case XFP_GGUF_QWEN3NEXT:
		put_qwen3_next(w);
		break;
	case XFP_GGUF_GEMMA:
	case XFP_GGUF_GEMMA2:
	case XFP_GGUF_GEMMA3:
		put_gemma(w);
		break;
	case XFP_GGUF_PHI3:
		put_phi3(w);
		break;
	case XFP_GGUF_GPT_OSS:
		put_gpt_oss(w);
		break;
	case XFP_GGUF_GLM4MOE:
		put_glm4_moe(w);
		break;
	default:
		break;
	}
}

/* ---- all ---------------------------------------------------------------------------------------- */

static void put_sizes(struct synthesized_config *w)
{
	enum xfp_gguf_architecture a = w->m->architecture;

	put_number(w, "vocab_size", vocabulary(w));
	need_number(w, "hidden_size", "embedding_length");
	/* gpt-oss has the expert size in this key. */
	if (a == XFP_GGUF_GPT_OSS && value_of(w, "expert_feed_forward_length"))
		need_number(w, "intermediate_size", "expert_feed_forward_length");
	else
		copy_number(w, "intermediate_size", "feed_forward_length");
	put_number(w, "num_hidden_layers", w->m->layers);
	need_number(w, "num_attention_heads", "attention.head_count");
	copy_number(w, "num_key_value_heads", "attention.head_count_kv");
	copy_number(w, "head_dim", "attention.key_length");
	copy_number(w, "max_position_embeddings", "context_length");
	copy_real(w, "rms_norm_eps", "attention.layer_norm_rms_epsilon");
	put_text(w, "hidden_act", models[a].activation);
}

static void put_rope(struct synthesized_config *w)
{
	double theta = 10000;

	real_of(w, "rope.freq_base", &theta);
	put_real(w, "rope_theta", theta);
	if (!w->status)
		w->status = xfp_gguf_rope_scaling(w->m, theta, w->out);
}

enum xfp_status xfp_gguf_make_config(struct xfp_gguf_model *m)
{
	struct xfp_checkpoint *c = m->checkpoint;
	struct synthesized_config w = { .m = m };
	struct xfp_text text;
	char *copy;

	if (m->architecture == XFP_GGUF_ARCHITECTURES)
		return XFP_OK;
	if (!(w.out = xfp_text_begin(&text)))
		return xfp_no_memory_for(m->err, c->folder);
	fprintf(w.out, "{\n  \"architectures\": [\n    \"%s\"\n  ],\n  \"model_type\": \"%s\"",
		models[m->architecture].class_, models[m->architecture].model_type);
	put_sizes(&w);
	put_rope(&w);
	put_own(&w);
	put_flag(&w, "tie_word_embeddings", !xfp_gguf_stored(m, "output.weight"));
	put_text(&w, "torch_dtype", main_dtype(&w));
	put_token(&w, "bos_token_id", "tokenizer.ggml.bos_token_id");
	put_token(&w, "eos_token_id", "tokenizer.ggml.eos_token_id");
	put_token(&w, "pad_token_id", "tokenizer.ggml.padding_token_id");
	/* Default ids of special tokens may exceed the vocabulary. */
	if (m->architecture == XFP_GGUF_PHI3 &&
	    !xfp_gguf_find(&m->files[0].metadata, "tokenizer.ggml.padding_token_id")) {
		field(&w, "pad_token_id");
		fputs("null", w.out);
	}
	fputs("\n}\n", w.out);
	if (!xfp_text_end(&text))
		return xfp_no_memory_for(m->err, c->folder);
	if (w.status || !(copy = strdup(text.bytes))) {
		free(text.bytes);
		return w.status ? w.status : xfp_no_memory_for(m->err, c->folder);
	}
	c->config = copy;
	return xfp_checkpoint_make(c, "config.json", text.bytes, text.size, m->err);
}
