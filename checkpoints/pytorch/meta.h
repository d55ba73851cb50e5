/* SPDX-License-Identifier: Apache-2.0 */
/*
 * meta.h - consolidated.00.pth and so on, as Meta publishes Llama: the tensors of one model, cut up among files as
 * among the GPUs that ran it, with params.json in place of config.json. Private to checkpoints/pytorch/.
 */
#ifndef XFP_META_H
#define XFP_META_H

#include "checkpoints/shards.h"

/* Whether a name is "consolidated.NN.pth". */
bool xfp_meta_is_part(const char *name);

/* Fill in a checkpoint with the names, the shapes and the order of rows that Hugging Face gives the tensors, of all
 * parts that the listing has; and have config.json made, unless there is one. */
enum xfp_status xfp_meta_open(const struct xfp_file_form *form, struct xfp_checkpoint *checkpoint,
			      const struct xfp_listing *listing, struct xfp_error *err);

/* What params.json says, and config.json made of it. */
struct xfp_meta_params {
	uint64_t dim, layers, heads, kv_heads, head_dim;
	double norm_eps, rope_theta;
	bool scaled_rope;
	double rope_factor; /* 0: it is not said */
	uint64_t longest;   /* 0: it is not said */
};
enum xfp_status xfp_meta_params_read(const struct xfp_listing *listing, struct xfp_meta_params *out,
				     struct xfp_error *err);
/* The tensors are those of the checkpoint already. Notes what it had to assume. */
enum xfp_status xfp_meta_make_config(const struct xfp_meta_params *params, struct xfp_checkpoint *checkpoint,
				     struct xfp_error *err);

#endif
