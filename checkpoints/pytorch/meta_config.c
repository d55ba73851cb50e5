/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meta_config.c - synthesize config.json from Meta's params.json and the tensors.
 *
 * params.json contains neither the context length nor, for Llama 3.1 and later, the scaling of rotary frequencies. Both
 * depend on the model, which its vocabulary and width identify.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "checkpoints/config_json.h"
#include "checkpoints/format.h"
#include "checkpoints/note.h"
#include "checkpoints/pytorch/meta.h"

#define PARAMS_MAX ((size_t)1 << 20)
#define NUMBER_MAX ((json_int_t)1 << 32)

static bool number(const json_t *root, const char *key, uint64_t *out)
{
	const json_t *value = json_object_get(root, key);

	if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > NUMBER_MAX)
		return false;
	*out = (uint64_t)json_integer_value(value);
	return true;
}

static double real(const json_t *root, const char *key, double otherwise)
{
	const json_t *value = json_object_get(root, key);

	return json_is_number(value) && json_number_value(value) > 0 ? json_number_value(value) : otherwise;
}

enum xfp_status xfp_meta_params_read(const struct xfp_listing *listing, struct xfp_meta_params *out,
				     struct xfp_error *err)
{
	struct xfp_meta_params p = { 0 };
	char *path = NULL, *text = NULL;
	struct xfp_place place;
	json_t *root = NULL;
	enum xfp_status status;
	size_t size;

	if (!xfp_listing_has(listing, "params.json"))
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s/params.json: missing; it contains the number of heads: download it",
				listing->folder);
	if ((status = xfp_listing_place(listing, "params.json", &place, &path, err)) ||
	    (status = xfp_place_slurp(&place, PARAMS_MAX, &text, &size, err)) ||
	    (status = xfp_config_json(text, path, &root, err)))
		goto done;
	if (!number(root, "dim", &p.dim) || !number(root, "n_layers", &p.layers) ||
	    !number(root, "n_heads", &p.heads)) {
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: dim, n_layers and n_heads must be numbers above 0; download it again", path);
		goto done;
	}
	p.kv_heads = p.heads;
	(void)number(root, "n_kv_heads", &p.kv_heads);
	if (!number(root, "head_dim", &p.head_dim))
		p.head_dim = p.dim % p.heads ? 0 : p.dim / p.heads;
	if (!p.head_dim || p.head_dim % 2) {
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: %" PRIu64 " heads do not divide a width of %" PRIu64 "; download it again", path,
				  p.heads, p.dim);
		goto done;
	}
	(void)(number(root, "max_seq_len", &p.longest) || number(root, "max_position_embeddings", &p.longest));
	p.norm_eps = real(root, "norm_eps", 1e-5);
	p.rope_theta = real(root, "rope_theta", 10000);
	p.scaled_rope = json_is_true(json_object_get(root, "use_scaled_rope"));
	p.rope_factor = real(root, "rope_scaling_factor", 0);
	*out = p;

done:
	json_decref(root);
	free(text);
	free(path);
	return status;
}

static const struct xfp_source_tensor *find(const struct xfp_checkpoint *c, const char *ending)
{
	for (uint32_t i = 0; i < c->tensor_count; i++) {
		size_t length = strlen(c->tensors[i].name), tail = strlen(ending);

		if (length >= tail && !strcmp(c->tensors[i].name + length - tail, ending))
			return &c->tensors[i];
	}
	return NULL;
}

/* Return the name of a dtype: "bfloat16" and so on. */
static const char *dtype_name(enum xfp_dtype dtype)
{
	return dtype == XFP_BF16 ? "bfloat16" : dtype == XFP_F16 ? "float16" : dtype == XFP_F64 ? "float64" : "float32";
}

/* Return the context length of the models that Meta published. */
static uint64_t longest(const struct xfp_meta_params *p, uint64_t vocabulary)
{
	if (p->longest)
		return p->longest;
	if (p->scaled_rope)
		return 131072;
	if (vocabulary >= 128000)
		return 8192;
	return p->norm_eps < 5e-6 ? 2048 : 4096;
}

/* Llama 3.1 multiplies wavelengths by 8, and the small models of 3.2 by 32. */
static json_t *rope_scaling(const struct xfp_meta_params *p)
{
	double factor = p->rope_factor > 0 ? p->rope_factor : p->dim <= 3072 ? 32 : 8;

	if (!p->scaled_rope)
		return NULL;
	return json_pack("{s:f, s:f, s:f, s:i, s:s}", "factor", factor, "high_freq_factor", 4.0, "low_freq_factor", 1.0,
			 "original_max_position_embeddings", 8192, "rope_type", "llama3");
}

/* Bump XFP_ALGORITHM_PYTORCH of cache/key.h if the output for the same parameters changes. */
enum xfp_status xfp_meta_make_config(const struct xfp_meta_params *p, struct xfp_checkpoint *c, struct xfp_error *err)
{
	const struct xfp_source_tensor *embedding = find(c, "embed_tokens.weight"), *gate = find(c, "gate_proj.weight");
	json_t *root;
	char *text;

	if (!embedding || !gate)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: the parts have no %s, so the model is incomplete; download them again", c->folder,
				embedding ? "feed_forward.w1.weight" : "tok_embeddings.weight");
	root = json_pack(
		"{s:[s], s:b, s:I, s:s, s:I, s:I, s:I, s:b, s:s, s:I, s:I, s:I, s:f, s:o*, s:f, s:b, s:s, s:I}",
		"architectures", "LlamaForCausalLM", "attention_bias", 0, "head_dim", (json_int_t)p->head_dim,
		"hidden_act", "silu", "hidden_size", (json_int_t)p->dim, "intermediate_size",
		(json_int_t)gate->shape[0], "max_position_embeddings", (json_int_t)longest(p, embedding->shape[0]),
		"mlp_bias", 0, "model_type", "llama", "num_attention_heads", (json_int_t)p->heads, "num_hidden_layers",
		(json_int_t)p->layers, "num_key_value_heads", (json_int_t)p->kv_heads, "rms_norm_eps", p->norm_eps,
		"rope_scaling", rope_scaling(p), "rope_theta", p->rope_theta, "tie_word_embeddings",
		!find(c, "lm_head.weight"), "torch_dtype", dtype_name(embedding->dtype), "vocab_size",
		(json_int_t)embedding->shape[0]);
	text = root ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(15)) : NULL;
	json_decref(root);
	if (!text || !(c->config = strdup(text))) {
		free(text);
		return xfp_no_memory_for(err, c->folder);
	}
	if (!p->longest)
		xfp_checkpoint_note(c,
				    "params.json contains no context length: config.json says %" PRIu64
				    ", that of the most similar model by Meta",
				    longest(p, embedding->shape[0]));
	return xfp_checkpoint_make(c, "config.json", text, strlen(text), err);
}
