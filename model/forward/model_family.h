/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_family.h - properties that config.json omits because the family's code defines them. Private to model/forward/.
 */
#ifndef XFP_MODEL_FAMILY_H
#define XFP_MODEL_FAMILY_H

#include "model/forward/description.h"

enum xfp_window_rule {
	XFP_WINDOW_NEVER,
	XFP_WINDOW_ALWAYS,    /* sliding_window, in all layers, unless it is null */
	XFP_WINDOW_IF_USED,   /* the same, if use_sliding_window */
	XFP_WINDOW_BY_LAYERS, /* if use_sliding_window, in the layers that layer_types or max_window_layers names */
	XFP_WINDOW_BY_TYPES,  /* in the layers that layer_types names; in all without layer_types */
	XFP_WINDOW_CHUNKS,    /* attention_chunk_size, where layer_types says; without it, in layers with positions */
	XFP_WINDOW_PATTERN    /* where layer_types says; without it, in all but every sliding_window_pattern-th */
};
enum xfp_bias_rule { XFP_BIAS_NEVER, XFP_BIAS_BY_CONFIG, XFP_BIAS_QKV, XFP_BIAS_QKV_BY_CONFIG };

/* Defaults of sizes; 0: the config must have it, or it follows from others. */
struct xfp_default_sizes {
	uint32_t heads, kv_heads, head_dim, vocabulary, context;
	double epsilon;
};
/* Linear attention, and the row order of its projections. */
enum xfp_delta_rule { XFP_DELTA_NEVER, XFP_DELTA_BY_KINDS, XFP_DELTA_BY_HEADS };

struct xfp_router_rule {
	bool sigmoid, group_top_two, input;
	uint32_t groups, groups_per_token; /* defaults of n_group and topk_group; 0: no such keys, unless */
	bool by_method;                    /* topk_method asks for groups, whose scores are then the largest */
	double scale;                      /* default of routed_scaling_factor; 0: no such key */
	double min_sum;
	const char *min_sum_key; /* NULL: there is no key */
};

/* Keys of counts of experts, if they are not the usual ones. */
struct xfp_expert_keys {
	const char *experts, *per_token, *shared;
	const char *experts_alias, *per_token_alias; /* other names of the same keys, which take precedence */
	const char *width;                           /* NULL: moe_intermediate_size */
	const char *layers, *first_layer, *last_layer, *interval; /* which layers have experts; NULL: no such key */
};

struct xfp_model_family {
	const char *type; /* model_type */
	bool encoder;     /* BERT's keys (encoder_read.c); only `sizes` and `activation` count */
	struct xfp_default_sizes sizes;
	const struct xfp_layer_norms *norms; /* NULL: two, as in llama */
	bool query_key_norm, joint_norm;
	bool rotated_norm;   /* if use_qk_norm, which is the default */
	bool temperature;    /* attn_temperature_tuning is supported, and is the default */
	const char *mlp;     /* NULL: "mlp" */
	const char *width;   /* of the MLP; NULL: intermediate_size */
	bool norm_by_config; /* query_key_norm if use_qk_norm */
	bool fused;
	bool tied;                      /* default of tie_word_embeddings */
	const char *activation_key;     /* NULL: "hidden_act", with silu as default; */
	enum xfp_activation activation; /* otherwise this is the default */
	double alpha, limit;            /* defaults of swiglu_alpha and swiglu_limit; 0: no clamped SwiGLU */
	bool sinks;
	bool scaled;                        /* words by the square root of hidden, scores by query_pre_attn_scalar */
	bool score_capped;                  /* attn_logit_softcapping is supported */
	double default_cap, default_logits; /* defaults of the soft caps of scores and logits; 0: none */
	bool words_scaled;                  /* only words, by the square root of hidden */
	bool multiplied;                    /* embedding_multiplier and others are factors, 1 by default */
	double norm_offset;
	bool output_gate;
	bool mlp_bias; /* mlp_bias is supported */
	enum xfp_bias_rule bias;
	const char *bias_key;        /* NULL: attention_bias and mlp_bias; otherwise one key for both */
	const char *output_bias_key; /* NULL: o_proj has a bias if the others have, by the rule */
	bool never_window;           /* use_sliding_window is refused */
	bool bias_unless;            /* default of attention_bias */
	enum xfp_window_rule window;
	uint32_t window_size;                      /* default of sliding_window; 0: none */
	uint32_t pattern;                          /* default of sliding_window_pattern, */
	bool pattern_key;                          /* if there is such a key */
	const struct xfp_expert_names *experts;    /* NULL: none */
	const struct xfp_expert_keys *expert_keys; /* NULL: the usual ones */
	const struct xfp_router_rule *router;      /* NULL: a softmax of all experts */
	bool norm_topk;                            /* norm_topk_prob is not a key: always true */
	bool norm_topk_default;                    /* default of norm_topk_prob, */
	bool never_norm_topk;                      /* which is ignored */
	uint32_t shared;                           /* default of n_shared_experts; 0: 1 */
	bool every_layer;                          /* all layers have experts, */
	bool leading_dense;                        /* but the first, which first_k_dense_replace counts, */
	uint32_t leading;                          /* or this many, */
	bool mlp_types;                            /* or those that mlp_layer_types, not that key, names dense */
	bool mtp_layers;                           /* checkpoints have layers of multi-token prediction */
	bool dense_width;                          /* experts have intermediate_size */
	double theta;                              /* default of rope_theta */
	double local_theta;                        /* its default for layers with a window; 0: the same */
	bool needs_rope;                           /* positions are scaled by default */
	uint32_t no_rope;                          /* default of no_rope_layer_interval; 0: all layers have positions */
	bool interleaved;                          /* neighbours are rotated */
	double partial_rotary;                     /* default of partial_rotary_factor; 0: the family has no such key */
	bool rotary_dim;                           /* rotary_dim is another form of that key */
	bool head_dim_rotated;   /* head_dim is another name of qk_rope_head_dim, which takes precedence */
	bool latent;             /* multi-head latent attention, with the ranks and sizes of the config */
	double original_context; /* default of original_max_position_embeddings; 0: the context */
	bool only_longrope;      /* longrope is the only scaling, which old configs call su or yarn */
	enum xfp_delta_rule delta;
};

/* NULL if no family has that model_type. */
const struct xfp_model_family *xfp_model_family_find(const char *type);

struct xfp_fields;
/* Set everything but `layers` of an encoder's description. */
void xfp_encoder_read(struct xfp_fields *f, const struct xfp_model_family *family, enum xfp_activation activation,
		      struct xfp_description *d);

/* Write "llama, mistral, ... and qwen3_moe" into `text`. */
#define XFP_MODEL_FAMILY_LIST 512
void xfp_model_family_list(char text[XFP_MODEL_FAMILY_LIST]);

#endif
