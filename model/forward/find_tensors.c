/* SPDX-License-Identifier: Apache-2.0 */
#include "model/forward/tensors.h"

#include <string.h>

#include "model/forward/parts.h"

/* With experts one by one, and stacked. */
#define NAMES(body, head)                      \
	{ body, head, false, false, false },   \
	{                                      \
		body, head, true, false, false \
	}
/* With new and old names of norms. */
#define ENCODER_NAMES(body)                 \
	{ body, "", false, true, false },   \
	{                                   \
		body, "", false, true, true \
	}

static const struct xfp_tensor_names all_names[] = {
	NAMES("model.", "lm_head.weight"),
	NAMES("model.language_model.", "lm_head.weight"),
	NAMES("language_model.model.", "language_model.lm_head.weight"),
	NAMES("", "lm_head.weight"),
	NAMES("language_model.", "lm_head.weight"),
	ENCODER_NAMES(""),
	ENCODER_NAMES("bert."),
};
#define FIRST_ENCODER (sizeof all_names / sizeof *all_names - 4)

static bool has_layer_tensor(const struct xfp_weights *weights, const struct xfp_tensor_names *names, uint32_t layer,
			     const char *name)
{
	uint64_t shape[XFP_MAX_RANK];
	char tensor[XFP_TENSOR_NAME];
	uint32_t rank;

	xfp_layer_tensor(tensor, names, layer, name);
	return xfp_weights_shape(weights, tensor, &rank, shape);
}

static bool has_stacks(const struct xfp_description *d, const struct xfp_weights *weights,
		       const struct xfp_tensor_names *names)
{
	if (d->experts && !d->expert_names->gate)
		return true;
	for (uint32_t i = 0; d->experts && d->expert_names->gate_up_stack && i < d->layers; i++) {
		if (d->layer[i].experts)
			return has_layer_tensor(weights, names, i, d->expert_names->gate_up_stack);
	}
	return false;
}

static bool has_old_norms(const struct xfp_weights *weights, const struct xfp_tensor_names *names)
{
	uint64_t shape[XFP_MAX_RANK];
	char tensor[XFP_TENSOR_NAME];
	uint32_t rank;

	xfp_body_tensor(tensor, names, "embeddings.LayerNorm.gamma");
	return names->encoder && xfp_weights_shape(weights, tensor, &rank, shape);
}

const struct xfp_tensor_names *xfp_find_names(const struct xfp_description *description,
					      const struct xfp_weights *weights)
{
	for (size_t i = 0; i < sizeof all_names / sizeof *all_names; i++) {
		uint64_t shape[XFP_MAX_RANK];
		char tensor[XFP_TENSOR_NAME];
		uint32_t rank;

		if (all_names[i].encoder != description->encoder)
			continue;
		xfp_embedding_tensor(tensor, &all_names[i]);
		if (xfp_weights_shape(weights, tensor, &rank, shape) &&
		    has_stacks(description, weights, &all_names[i]) == all_names[i].stacked &&
		    has_old_norms(weights, &all_names[i]) == all_names[i].gamma)
			return &all_names[i];
	}
	/* The check will report them as missing. */
	return &all_names[description->encoder ? FIRST_ENCODER
					       : description->experts && !description->expert_names->gate];
}

/* ---- checking the model's tensors ------------------------------------------------------------------ */

struct tensor_check {
	const struct xfp_weights *weights;
	enum xfp_status status;
	struct xfp_error *err;
};

static bool check_tensor(void *context, const struct xfp_required_tensor *required)
{
	struct tensor_check *check = context;
	const char *tensor = required->name;
	const uint32_t wanted = required->rank;
	const uint64_t *shape = required->shape;
	const char *path = xfp_weights_path(check->weights);
	uint64_t has[XFP_MAX_RANK] = { 0 };
	uint32_t rank = 0;
	bool there, same;

	there = xfp_weights_shape(check->weights, tensor, &rank, has);
	same = rank == wanted && !memcmp(has, shape, wanted * sizeof *shape);
	if (there && !wanted)
		check->status = xfp_fail(
			check->err, XFP_BAD_INPUT,
			"%s: has %s, which its config does not describe; it may belong to another model", path, tensor);
	else if (!there && wanted)
		check->status =
			xfp_fail(check->err, XFP_BAD_INPUT,
				 "%s: has no tensor %s, which its config requires; it may belong to another model",
				 path, tensor);
	else if (there && !same)
		check->status = xfp_fail(
			check->err, XFP_BAD_INPUT,
			"%s: %s is not [%ju%s%.0ju%s%.0ju], as its config requires; it may belong to another model",
			path, tensor, (uintmax_t)shape[0], wanted > 1 ? ", " : "", wanted > 1 ? (uintmax_t)shape[1] : 0,
			wanted > 2 ? ", " : "", wanted > 2 ? (uintmax_t)shape[2] : 0);
	return !check->status;
}

/* A layer after the last must be one of multi-token prediction, which has eh_proj. */
static void check_next_layer(struct tensor_check *check, const struct xfp_description *d,
			     const struct xfp_tensor_names *names)
{
	if (has_layer_tensor(check->weights, names, d->layers, "input_layernorm.weight") &&
	    !has_layer_tensor(check->weights, names, d->layers, "eh_proj.weight"))
		check->status =
			xfp_fail(check->err, XFP_BAD_INPUT,
				 "%s: has a layer %u, but its config has num_hidden_layers %u; it may belong to "
				 "another model",
				 xfp_weights_path(check->weights), (unsigned)d->layers, (unsigned)d->layers);
}

enum xfp_status xfp_check_tensors(const struct xfp_description *description, const struct xfp_weights *weights,
				  const struct xfp_tensor_names *names, struct xfp_error *err)
{
	struct tensor_check check = { .weights = weights, .err = err };

	xfp_each_tensor(description, names, check_tensor, &check);
	if (!check.status && description->mtp_layers)
		check_next_layer(&check, description, names);
	return check.status;
}
