/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The description of an encoder from config.json.
 */
#include <math.h>
#include <string.h>

#include "model/forward/fields.h"
#include "model/forward/model_family.h"

static void refuse_variants(struct xfp_fields *f)
{
	const char *positions = json_string_value(xfp_field(f->root, "position_embedding_type"));

	if (xfp_field(f->root, "position_embedding_type") && (!positions || strcmp(positions, "absolute")))
		xfp_field_wrong(f, "position_embedding_type", "is not absolute, the only one that is supported");
	if (xfp_field_flag(f, "is_decoder", false))
		xfp_field_wrong(f, "is_decoder", "is true; only encoders of this family are supported");
	if (xfp_field_flag(f, "add_cross_attention", false))
		xfp_field_wrong(f, "add_cross_attention", "is true, which is not supported");
}

void xfp_encoder_read(struct xfp_fields *f, const struct xfp_model_family *family, enum xfp_activation activation,
		      struct xfp_description *d)
{
	static const struct xfp_layer_norms after_sums = { .attention = NULL };

	d->family = family->type;
	d->encoder = true;
	d->hidden = xfp_field_count(f, "hidden_size", 768);
	d->heads = d->kv_heads = xfp_field_count(f, "num_attention_heads", 12);
	d->head_dim = d->value_dim = d->hidden / d->heads;
	d->intermediate = xfp_field_count(f, "intermediate_size", 3072);
	d->vocabulary = xfp_field_count(f, "vocab_size", 30522);
	d->context = xfp_field_count(f, "max_position_embeddings", 512);
	d->token_types = xfp_field_count(f, "type_vocab_size", 2);
	d->epsilon = xfp_field_number(f, f->root, "layer_norm_eps", family->sizes.epsilon);
	d->activation = activation;
	if (d->hidden % d->heads)
		xfp_field_wrong(f, "hidden_size", "is not a multiple of num_attention_heads");
	refuse_variants(f);
	d->norms = &after_sums;
	d->mlp = "mlp";
	d->tied = d->qkv_bias = d->output_bias = d->mlp_bias = true;
	d->word_scale = d->residual_scale = d->logit_divisor = 1;
	d->score_scale = 1 / sqrt((double)d->head_dim);
	d->ropes = 1; /* rotates nothing */
}
