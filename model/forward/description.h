/* SPDX-License-Identifier: Apache-2.0 */
/*
 * description.h - what a model computes, from its config.json: what families differ in, as data.
 *
 * forward.h computes whatever a description says and knows no family by name.
 */
#ifndef XFP_DESCRIPTION_H
#define XFP_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"

/* How positions beyond those of training are brought into range. */
enum xfp_rope_scaling { XFP_ROPE_DEFAULT, XFP_ROPE_LINEAR, XFP_ROPE_LLAMA3, XFP_ROPE_YARN, XFP_ROPE_LONGROPE };

struct xfp_rope {
	enum xfp_rope_scaling scaling;
	uint32_t dim; /* elements of a head that turn: pairs (i, i + dim / 2) */
	double theta, factor;
	double original_context;
	double low_frequency, high_frequency; /* llama3 */
	double beta_fast, beta_slow;          /* yarn */
	bool truncate;                        /* yarn */
	double attention;                     /* what sines and cosines are multiplied by */
	double *longer, *shorter;             /* longrope: dim / 2 factors beyond original_context, and up to it */
};

/* Names of a layer's experts, %u being the number of one. NULL: there is no such tensor in any model of the family. */
struct xfp_expert_names {
	const char *router, *gate, *up, *down;
	const char *gate_up_stack, *down_stack; /* all experts in one tensor, [expert][rows][cols] */
	/* The expert that all tokens go through, and how much of it they take. */
	const char *shared_router, *shared_gate, *shared_up, *shared_down;
};

/* Linear attention by the gated delta rule. */
struct xfp_delta {
	size_t key_heads, value_heads; /* heads of values share those of keys, and of queries, with their neighbours */
	size_t key_dim, value_dim;     /* of a head */
	size_t kernel;                 /* inputs that the convolution takes */
	bool by_heads;                 /* rows of what makes its inputs are in_proj_qkvz and in_proj_ba, head by head */
};

#define XFP_ROPES 2 /* at most, of one model */

/* Norms of a layer: of what attention and the MLP take, and, unless NULL, of what they make. */
struct xfp_layer_norms {
	const char *attention, *attention_output, *mlp, *mlp_output;
};

/* GELU by erf, or by tanh, which comes near. */
enum xfp_activation { XFP_SILU, XFP_GELU, XFP_GELU_TANH };

struct xfp_layer {
	uint32_t rope;   /* which of the description's positions */
	uint32_t window; /* positions that a position sees, itself among them; 0: all before it */
	bool delta;      /* linear attention */
	bool experts;
};

struct xfp_description {
	const char *family;
	uint32_t hidden, heads, kv_heads, head_dim, intermediate, vocabulary, context, layers;
	double epsilon;
	double norm_offset; /* what is added to the weights of norms: 0 or 1 */
	bool tied;          /* the output head is the word embedding */
	const struct xfp_layer_norms *norms;
	bool query_key_norm; /* of each head, before positions */
	bool fused;          /* queries, keys and values are rows of one tensor, and so are gate and up */
	double word_scale;   /* what the embedding of a word is multiplied by, rounded to f32 */
	double score_scale;  /* what products of queries and keys are multiplied by */
	/* x becomes cap tanh(x / cap); 0: it stays x. */
	double score_cap, logit_cap;
	enum xfp_activation activation;
	bool output_gate; /* behind each head of queries the projection has one of gates */
	bool qkv_bias, output_bias, mlp_bias;
	uint32_t experts, experts_per_token, expert_intermediate, shared_intermediate; /* 0: none is shared */
	bool renormalise; /* weights of the chosen experts come to 1 */
	const struct xfp_expert_names *expert_names;
	uint32_t ropes;
	struct xfp_rope rope[XFP_ROPES];
	struct xfp_delta delta; /* of the layers that have it */
	struct xfp_layer *layer;
};

/* Of the convolution: queries, keys and values of all heads. */
static inline size_t xfp_delta_channels(const struct xfp_delta *delta)
{
	return 2 * delta->key_heads * delta->key_dim + delta->value_heads * delta->value_dim;
}

/* `where` names the config in messages. XFP_BAD_INPUT for a family, or anything else, that is not computed here. */
enum xfp_status xfp_description_read(const char *config, const char *where, struct xfp_description **out,
				     struct xfp_error *err);
void xfp_description_free(struct xfp_description *description); /* NULL is fine */

#endif
