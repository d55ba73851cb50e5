/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_family.h - what config.json leaves out because the family's code says it. Private to model/forward/.
 */
#ifndef XFP_MODEL_FAMILY_H
#define XFP_MODEL_FAMILY_H

#include "model/forward/description.h"

enum xfp_window_rule {
	XFP_WINDOW_NEVER,
	XFP_WINDOW_ALWAYS,   /* sliding_window, of all layers, unless it is null */
	XFP_WINDOW_IF_USED,  /* likewise, if use_sliding_window */
	XFP_WINDOW_BY_LAYERS /* if use_sliding_window, of layers that layer_types or max_window_layers names */
};
enum xfp_bias_rule { XFP_BIAS_NEVER, XFP_BIAS_BY_CONFIG, XFP_BIAS_QKV };

struct xfp_model_family {
	const char *type; /* model_type */
	bool query_key_norm;
	double norm_offset;
	bool mlp_bias; /* config may ask for it */
	enum xfp_bias_rule bias;
	enum xfp_window_rule window;
	const struct xfp_expert_names *experts; /* NULL: none */
	bool renormalise;                       /* whatever config says */
	bool every_layer;                       /* all layers have experts */
	double theta;                           /* of positions, where config has none */
};

/* NULL: there is none of that model_type. */
const struct xfp_model_family *xfp_model_family_find(const char *type);

/* "llama, mistral, ... and qwen3_moe" into `text`. */
#define XFP_MODEL_FAMILY_LIST 256
void xfp_model_family_list(char text[XFP_MODEL_FAMILY_LIST]);

#endif
