/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What BERT computes differently. Embeddings of the word, the position and the token type (always 0) are added and
 * normalized. A layer normalizes the sums, x = norm(x + attention(x)) and x = norm(x + mlp(x)), by LayerNorm; its MLP
 * has no gate.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "model/forward/parts.h"

void xfp_layer_norm_tensor(char text[XFP_TENSOR_NAME], const struct xfp_tensor_names *names, const char *norm,
			   bool bias)
{
	const char *weight = names->gamma ? "gamma" : "weight", *offset = names->gamma ? "beta" : "bias";

	snprintf(text, XFP_TENSOR_NAME, "%s.%s", norm, bias ? offset : weight);
}

/* x = weight (x - mean) / sqrt(variance + epsilon) + bias, for one vector. */
static void normalize(float *x, size_t size, const float *weight, const float *bias, double epsilon)
{
	double sum = 0, squares = 0, mean, scale;

	for (size_t i = 0; i < size; i++)
		sum += x[i];
	mean = sum / (double)size;
	for (size_t i = 0; i < size; i++)
		squares += (x[i] - mean) * (x[i] - mean);
	scale = 1 / sqrt(squares / (double)size + epsilon);
	for (size_t i = 0; i < size; i++)
		x[i] = (float)((x[i] - mean) * scale * weight[i] + bias[i]);
}

/* Normalize all tokens; `name` is that of the tensors without "weight" and "bias". */
static enum xfp_status layer_norm(const struct xfp_forward *forward, const char *name, float *x, struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	float *weight = xfp_floats(2, d->hidden), *bias = weight ? weight + d->hidden : NULL;
	char tensor[XFP_TENSOR_NAME];
	enum xfp_status status = weight ? XFP_OK : xfp_no_memory(err);

	xfp_layer_norm_tensor(tensor, forward->names, name, false);
	if (!status)
		status = xfp_forward_vector(forward, tensor, d->hidden, weight, err);
	xfp_layer_norm_tensor(tensor, forward->names, name, true);
	if (!status)
		status = xfp_forward_vector(forward, tensor, d->hidden, bias, err);
	for (size_t t = 0; !status && t < forward->tokens; t++)
		normalize(x + t * d->hidden, d->hidden, weight, bias, d->epsilon);
	free(weight);
	return status;
}

static struct xfp_view embedding_view(const struct xfp_description *d, uint32_t rows)
{
	return (struct xfp_view){ .rows = rows, .cols = d->hidden, .row_stride = d->hidden, .col_stride = 1 };
}

/* Add the embeddings of positions and of token type 0, in double. */
static enum xfp_status add_embeddings(const struct xfp_forward *forward, const float *type, float *position, float *x,
				      struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	struct xfp_view view = embedding_view(d, d->context);
	struct xfp_weight_rows *rows;
	char tensor[XFP_TENSOR_NAME];
	enum xfp_status status;

	xfp_body_tensor(tensor, forward->names, "embeddings.position_embeddings.weight");
	status = xfp_weight_rows_open(forward->weights, tensor, &view, &rows, err);
	for (size_t s = 0; !status && s < forward->segment_count; s++) {
		const struct xfp_segment *segment = &forward->segments[s];
		float *to = x + segment->first * d->hidden;

		for (size_t t = 0; !status && t < segment->count; t++, to += d->hidden) {
			status = xfp_weight_rows_read(rows, segment->position + t, 1, position, err);
			for (size_t i = 0; !status && i < d->hidden; i++)
				to[i] = (float)((double)to[i] + type[i] + position[i]);
		}
	}
	xfp_weight_rows_close(rows);
	return status;
}

enum xfp_status xfp_encoder_embed(const struct xfp_forward *forward, float *x, struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	struct xfp_view types = embedding_view(d, d->token_types);
	float *added = xfp_floats(2, d->hidden);
	char tensor[XFP_TENSOR_NAME];
	enum xfp_status status = added ? XFP_OK : xfp_no_memory(err);

	xfp_body_tensor(tensor, forward->names, "embeddings.token_type_embeddings.weight");
	if (!status)
		status = xfp_forward_row(forward, tensor, &types, added, err);
	if (!status)
		status = add_embeddings(forward, added, added + d->hidden, x, err);
	free(added);
	xfp_body_tensor(tensor, forward->names, "embeddings.LayerNorm");
	return status ? status : layer_norm(forward, tensor, x, err);
}

/* A matrix NAME.weight of a layer, and its bias. */
struct dense {
	char tensor[XFP_TENSOR_NAME], bias[XFP_TENSOR_NAME];
};

static struct xfp_linear_map describe(const struct xfp_forward *forward, uint32_t layer, const char *name,
				      struct dense *dense)
{
	char part[64];

	snprintf(part, sizeof part, "%s.weight", name);
	xfp_layer_tensor(dense->tensor, forward->names, layer, part);
	snprintf(part, sizeof part, "%s.bias", name);
	xfp_layer_tensor(dense->bias, forward->names, layer, part);
	return (struct xfp_linear_map){ .tensor = dense->tensor, .bias = dense->bias };
}

/* y = down(activation(up(x))) */
static enum xfp_status mlp(const struct xfp_forward *forward, uint32_t layer, const float *x, float *y,
			   struct xfp_error *err)
{
	const struct xfp_description *d = forward->description;
	float *inner = xfp_floats(forward->tokens, d->intermediate);
	struct dense tensors[2];
	struct xfp_linear_map up = describe(forward, layer, "intermediate.dense", &tensors[0]);
	struct xfp_linear_map down = describe(forward, layer, "output.dense", &tensors[1]);
	enum xfp_status status = inner ? XFP_OK : xfp_no_memory(err);

	up.input = XFP_INPUT_MLP;
	up.rows = down.cols = d->intermediate;
	down.input = XFP_INPUT_DOWN;
	down.rows = up.cols = d->hidden;
	if (!status)
		status = xfp_forward_map(forward, &up, x, forward->tokens, inner, err);
	if (!status)
		status = xfp_forward_activate(forward, inner, NULL, d->intermediate, forward->tokens, err);
	if (!status)
		status = xfp_forward_map(forward, &down, inner, forward->tokens, y, err);
	free(inner);
	return status;
}

enum xfp_status xfp_encoder_layer(const struct xfp_forward *forward, uint32_t layer, float *x, struct xfp_error *err)
{
	static const struct {
		enum xfp_status (*compute)(const struct xfp_forward *, uint32_t, const float *, float *,
					   struct xfp_error *);
		const char *norm;
	} halves[] = { { xfp_forward_attention, "attention.output.LayerNorm" }, { mlp, "output.LayerNorm" } };
	float *y = xfp_floats(forward->tokens, forward->description->hidden);
	char norm[XFP_TENSOR_NAME];
	enum xfp_status status = y ? XFP_OK : xfp_no_memory(err);

	for (size_t half = 0; !status && half < 2; half++) {
		if ((status = halves[half].compute(forward, layer, x, y, err)))
			break;
		for (size_t i = 0; i < forward->tokens * forward->description->hidden; i++)
			x[i] += y[i];
		xfp_layer_tensor(norm, forward->names, layer, halves[half].norm);
		status = layer_norm(forward, norm, x, err);
	}
	free(y);
	return status;
}
