/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meta.h - consolidated.00.pth and so on, Meta's format of Llama: one model, divided into files like among the GPUs
 * that ran it, with params.json instead of config.json. Private to checkpoints/pytorch/.
 */
#ifndef XFP_META_H
#define XFP_META_H

#include "checkpoints/shards.h"

/* Whether a name is "consolidated.NN.pth". */
bool xfp_meta_is_part(const char *name);

/* Fill in a checkpoint from all parts in the listing, with Hugging Face's names, shapes and order of rows; synthesize
 * config.json unless it exists. */
enum xfp_status xfp_meta_open(const struct xfp_file_form *form, struct xfp_checkpoint *checkpoint,
			      const struct xfp_listing *listing, struct xfp_error *err);

/* The contents of params.json, from which config.json is synthesized. */
struct xfp_meta_params {
	uint64_t dim, layers, heads, kv_heads, head_dim;
	double norm_eps, rope_theta;
	bool scaled_rope;
	double rope_factor; /* 0 if unspecified */
	uint64_t longest;   /* 0 if unspecified */
};
enum xfp_status xfp_meta_params_read(const struct xfp_listing *listing, struct xfp_meta_params *out,
				     struct xfp_error *err);
/* Synthesize config.json; the checkpoint has its tensors. Notes what it had to assume. */
enum xfp_status xfp_meta_make_config(const struct xfp_meta_params *params, struct xfp_checkpoint *checkpoint,
				     struct xfp_error *err);

#endif
