/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_family.h - what config.json leaves out because the family's code says it. Private to model/forward/.
 */
#ifndef XFP_MODEL_FAMILY_H
#define XFP_MODEL_FAMILY_H

#include "model/forward/description.h"

enum xfp_window_rule {
	XFP_WINDOW_NEVER,
	XFP_WINDOW_ALWAYS,    /* sliding_window, of all layers, unless it is null */
	XFP_WINDOW_IF_USED,   /* likewise, if use_sliding_window */
	XFP_WINDOW_BY_LAYERS, /* if use_sliding_window, of layers that layer_types or max_window_layers names */
	XFP_WINDOW_BY_TYPES,  /* of layers that layer_types names; of all where there are none */
	XFP_WINDOW_PATTERN    /* likewise; of all but each sliding_window_pattern-th where there are none */
};
enum xfp_bias_rule { XFP_BIAS_NEVER, XFP_BIAS_BY_CONFIG, XFP_BIAS_QKV };

/* Sizes that a config may leave out; 0: it may not, or they follow from others. */
struct xfp_default_sizes {
	uint32_t heads, kv_heads, head_dim, vocabulary, context;
	double epsilon;
};
/* Whether there is linear attention, and how rows of its projections lie. */
enum xfp_delta_rule { XFP_DELTA_NEVER, XFP_DELTA_BY_KINDS, XFP_DELTA_BY_HEADS };

struct xfp_model_family {
	const char *type; /* model_type */
	struct xfp_default_sizes sizes;
	const struct xfp_layer_norms *norms; /* NULL: two, as llama has them */
	bool query_key_norm;
	bool fused;
	bool tied;                          /* where config does not say */
	const char *activation_key;         /* NULL: "hidden_act", and silu where there is none; */
	enum xfp_activation activation;     /* otherwise this */
	bool scaled;                        /* words by the root of hidden, scores by query_pre_attn_scalar */
	bool score_capped;                  /* config may ask for it */
	double default_cap, default_logits; /* of scores and logits, where config does not say; 0: none */
	double norm_offset;
	bool output_gate;
	bool mlp_bias; /* config may ask for it */
	enum xfp_bias_rule bias;
	enum xfp_window_rule window;
	uint32_t window_size;                   /* sliding_window, where config does not say; 0: none */
	uint32_t pattern;                       /* sliding_window_pattern, likewise */
	const struct xfp_expert_names *experts; /* NULL: none */
	bool renormalise;                       /* whatever config says, */
	bool renormalise_unless;                /* or unless it says otherwise */
	bool every_layer;                       /* all layers have experts, */
	bool dense_width;                       /* of the width that others' layers without experts have */
	double theta;                           /* of positions, where config has none, */
	double local_theta;                     /* and of those of layers with a window; 0: the same */
	double partial_rotary;                  /* default of partial_rotary_factor; 0: the family has no such key */
	double original_context;                /* default of original_max_position_embeddings; 0: the context */
	bool only_longrope;                     /* the only rope scaling, which old configs call su or yarn */
	enum xfp_delta_rule delta;
};

/* NULL: there is none of that model_type. */
const struct xfp_model_family *xfp_model_family_find(const char *type);

/* "llama, mistral, ... and qwen3_moe" into `text`. */
#define XFP_MODEL_FAMILY_LIST 256
void xfp_model_family_list(char text[XFP_MODEL_FAMILY_LIST]);

#endif
