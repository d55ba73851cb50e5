/* SPDX-License-Identifier: Apache-2.0 */
/*
 * description.h - the architecture of a model, read from its config.json. Differences between families are data here.
 *
 * forward.h computes any description and knows no family by name.
 */
#ifndef XFP_DESCRIPTION_H
#define XFP_DESCRIPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"

/* RoPE scaling: how positions beyond the training context are brought into range. */
enum xfp_rope_scaling { XFP_ROPE_DEFAULT, XFP_ROPE_LINEAR, XFP_ROPE_LLAMA3, XFP_ROPE_YARN, XFP_ROPE_LONGROPE };

struct xfp_rope {
	enum xfp_rope_scaling scaling;
	uint32_t dim, first; /* rotated elements of a head: [first, first + dim); dim 0: no positions */
	bool interleaved;    /* in pairs (2 i, 2 i + 1), not (i, i + dim / 2) */
	double theta, factor;
	double original_context;
	double low_frequency, high_frequency; /* llama3 */
	double beta_fast, beta_slow;          /* yarn */
	bool truncate;                        /* yarn */
	double attention;                     /* factor of sines and cosines */
	double *longer, *shorter;             /* longrope: dim / 2 factors beyond original_context, and up to it */
};

/* Names of a layer's experts; %u stands for the expert's number. NULL if the family has no such tensor. */
struct xfp_expert_names {
	const char *router, *gate, *up, *down;
	const char *router_bias; /* added to the logits */
	const char *correction;  /* added to the scores by which experts are selected, not to their factors, */
	bool correction_row;     /* [1][experts] */
	const char *gate_up_stack, *down_stack;      /* all experts in one tensor, [expert][rows][cols], */
	bool transposed;                             /* or [expert][cols][rows]; */
	bool interleaved;                            /* rows of gate and up take turns */
	const char *stack_router, *stack_correction; /* next to stacks, if named differently there */
	const char *gate_up_bias, *down_bias;        /* of the stacks: [expert][rows] */
	/* The shared expert, which every token passes through, and the router that weighs it, or NULL. */
	const char *shared_router, *shared_gate, *shared_up, *shared_down;
};

/* Multi-head latent attention: queries, and keys with values, are projections of normalized vectors of `query_rank` and
 * `kv_rank` elements. The first `nope_dim` elements of a head are not rotated; those after them are, and all heads
 * share those of keys. */
struct xfp_latent {
	uint32_t query_rank; /* 0: queries are projected directly */
	uint32_t kv_rank;    /* 0: no latent attention */
	uint32_t nope_dim;
};

/* How a router selects experts (router.h). */
struct xfp_router {
	bool sigmoid;                      /* scores are sigmoids of logits, not their softmax */
	bool norm_topk;                    /* the factors of a token's experts sum to 1, */
	double min_sum;                    /* if the sum of their scores is at least this */
	double scale;                      /* of the factors */
	uint32_t groups, groups_per_token; /* experts are selected in the best groups; 1: no groups */
	bool input;                        /* factors scale the inputs of experts, not their outputs */
	bool group_top_two;                /* a group's score is the sum of its two largest scores, not the largest */
};

/* Linear attention (gated delta rule). */
struct xfp_delta {
	size_t key_heads, value_heads; /* consecutive value heads share one head of keys and queries */
	size_t key_dim, value_dim;     /* per head */
	size_t kernel;                 /* width of the convolution */
	bool by_heads; /* fused projections in_proj_qkvz and in_proj_ba, with rows grouped by key head */
};

#define XFP_ROPES 2 /* at most, per model */

/* Norms of a layer: of the inputs and the outputs of attention and MLP; NULL: none. */
struct xfp_layer_norms {
	const char *attention, *attention_output, *mlp, *mlp_output;
};

/* GELU is exact (erf) or the tanh approximation. XFP_CLAMPED_SWIGLU is gate sigmoid(alpha gate) (up + 1), with gate at
 * most the limit, and up between -limit and limit. */
enum xfp_activation { XFP_SILU, XFP_GELU, XFP_GELU_TANH, XFP_CLAMPED_SWIGLU };

struct xfp_layer {
	uint32_t rope;   /* index into the description's rope */
	uint32_t window; /* sliding window: positions that a position sees, including itself; 0: no window. If windows
			  * are chunks, it sees its own chunk of that many positions */
	bool delta;      /* linear attention */
	bool experts;
};

struct xfp_description {
	const char *family;
	bool encoder; /* embeds texts, as BERT does, and predicts no tokens (encoder.c) */
	uint32_t hidden, heads, kv_heads, intermediate, vocabulary, context, layers;
	uint32_t head_dim, value_dim; /* elements of a query or a key, and of a value */
	double epsilon;
	double norm_offset; /* added to the weights of norms: 0 or 1 */
	bool tied;          /* the output head is the word embedding */
	const struct xfp_layer_norms *norms;
	struct xfp_latent latent;
	bool query_key_norm; /* normalize each head of queries and keys, before RoPE, */
	bool joint_norm;     /* or all heads together */
	bool rotated_norm;   /* normalize each head after RoPE, without weights */
	bool chunked;        /* windows are chunks */
	const char *mlp;     /* names the MLP of a layer: "mlp" */
	/* In layers without positions, queries are scaled by 1 + temperature log(1 + floor((position + 1) / floor));
	 * 0: they are not. */
	double temperature, temperature_floor;
	bool fused;            /* q, k and v are one tensor, and so are gate and up */
	double word_scale;     /* factor of word embeddings, rounded to f32 */
	double score_scale;    /* factor of attention scores */
	double residual_scale; /* factor of what attention and MLP add */
	double logit_divisor;
	/* Soft capping: cap tanh(x / cap). 0: none. */
	double score_cap, logit_cap;
	enum xfp_activation activation;
	double swiglu_alpha, swiglu_limit;
	bool sinks;       /* each query head has a score that takes part in the softmax, without a value */
	bool output_gate; /* q_proj has the rows of a gate after those of each query head */
	bool qkv_bias, output_bias, mlp_bias;
	uint32_t experts, experts_per_token, expert_intermediate,
		shared_intermediate; /* 0: no experts, no shared expert */
	struct xfp_router router;
	const struct xfp_expert_names *expert_names;
	bool mtp_layers; /* the checkpoint may have layers of multi-token prediction, which are not computed */
	uint32_t ropes;
	struct xfp_rope rope[XFP_ROPES];
	struct xfp_delta delta; /* of the layers with linear attention */
	uint32_t token_types;   /* rows of an encoder's embedding of token types */
	struct xfp_layer *layer;
};

/* Channels of the convolution: queries, keys and values of all heads. */
static inline size_t xfp_delta_channels(const struct xfp_delta *delta)
{
	return 2 * delta->key_heads * delta->key_dim + delta->value_heads * delta->value_dim;
}

/* Parse the text of a config.json. `where` names it in messages. XFP_BAD_INPUT if the family, or anything else that the
 * config asks for, is not supported. */
enum xfp_status xfp_description_read(const char *config, const char *where, struct xfp_description **out,
				     struct xfp_error *err);
void xfp_description_free(struct xfp_description *description); /* NULL is fine */

#endif
