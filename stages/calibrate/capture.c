/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/calibrate/capture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "kernels/common/number.h"

#define BF16_EXPONENT 0x7f80u

enum xfp_status xfp_capture_open(struct xfp_capture *c, const struct xfp_inputs *shape, uint64_t portion,
				 struct xfp_error *err)
{
	uint64_t experts = shape->tokens * shape->experts_per_token;

	*c = (struct xfp_capture){ .observer = { xfp_capture_observe, c }, .inputs = *shape, .portion = portion };
	if (!experts)
		return XFP_OK;
	c->slots = malloc(portion * sizeof *c->slots);
	c->inputs.experts = malloc(experts * sizeof *c->inputs.experts);
	if (!c->slots || !c->inputs.experts)
		return xfp_no_memory(err);
	memset(c->inputs.experts, 0xff, experts * sizeof *c->inputs.experts); /* XFP_NO_EXPERT */
	return XFP_OK;
}

void xfp_capture_close(struct xfp_capture *c)
{
	for (uint32_t i = 0; i < XFP_MAX_INPUTS; i++)
		free(c->values[i]);
	for (uint32_t i = 0; i < c->inputs.tensor_count; i++)
		free((char *)(uintptr_t)c->inputs.tensors[i].name);
	free(c->inputs.tensors);
	free(c->inputs.experts);
	free(c->slots);
	*c = (struct xfp_capture){ .slots = NULL };
}

void xfp_capture_begin(struct xfp_capture *c, uint64_t first, uint64_t tokens)
{
	c->first = first;
	c->tokens = tokens;
	memset(c->filled, 0, sizeof c->filled);
	if (c->slots)
		memset(c->slots, 0, tokens * sizeof *c->slots);
}

/* Whether each expert of a token has a row of its own, rather than the token's. */
static bool is_by_expert(const char *input)
{
	return !strcmp(input, XFP_INPUT_EXPERT_DOWN);
}

/* Rows of an input per token. */
static uint64_t rows_per_token(const struct xfp_capture *c, const char *input)
{
	return is_by_expert(input) ? c->inputs.experts_per_token : 1;
}

/* Find the input, or add it. */
static enum xfp_status find_input(struct xfp_capture *c, const struct xfp_observed *product, uint32_t *number,
				  struct xfp_error *err)
{
	struct xfp_inputs *in = &c->inputs;
	uint64_t each = rows_per_token(c, product->input), bytes;
	struct xfp_layer_input *input;
	uint32_t i = 0;

	while (i < in->input_count && strcmp(in->input[i].name, product->input))
		i++;
	*number = i;
	if (i < in->input_count)
		return XFP_OK;
	if (i == XFP_MAX_INPUTS || c->begun || strlen(product->input) >= sizeof in->input[i].name)
		return xfp_fail(err, XFP_FAILED, "%s: unexpected input \"%s\"; this is a bug in xfp", product->tensor,
				product->input);
	input = &in->input[i];
	*input = (struct xfp_layer_input){ .rows = in->tokens * each, .cols = product->cols };
	strcpy(input->name, product->input);
	if (!xfp_mul(c->portion * each, product->cols * sizeof **c->values, &bytes) ||
	    !(c->values[i] = malloc(bytes ? bytes : 1)))
		return xfp_no_memory(err);
	in->input_count++;
	return XFP_OK;
}

/* Add the tensor to the table, unless it is there: halves of a fused tensor, or matrices of a stack. */
static enum xfp_status add_tensor(struct xfp_capture *c, const struct xfp_observed *product, uint32_t input,
				  struct xfp_error *err)
{
	struct xfp_inputs *in = &c->inputs;
	struct xfp_input_tensor *tensors;
	char *name;

	for (uint32_t i = in->tensor_count; i-- > 0;)
		if (!strcmp(in->tensors[i].name, product->tensor))
			return in->tensors[i].input == input
				       ? XFP_OK
				       : xfp_fail(err, XFP_FAILED, "%s: multiplies two inputs; this is a bug in xfp",
						  xfp_printable(product->tensor).text);
	if (in->tensor_count == c->tensor_capacity) {
		uint32_t capacity = 2 * c->tensor_capacity + 16;

		if (!(tensors = realloc(in->tensors, capacity * sizeof *tensors)))
			return xfp_no_memory(err);
		in->tensors = tensors;
		c->tensor_capacity = capacity;
	}
	if (!(name = strdup(product->tensor)))
		return xfp_no_memory(err);
	in->tensors[in->tensor_count++] =
		(struct xfp_input_tensor){ name, input,
					   product->expert == XFP_NOT_AN_EXPERT ? XFP_NO_EXPERT
					   : product->stacked                   ? XFP_EXPERT_OF_STACK
										: product->expert };
	return XFP_OK;
}

static enum xfp_status convert(const struct xfp_capture *c, const char *input, const float *x, uint64_t count,
			       uint16_t *out, struct xfp_error *err)
{
	for (uint64_t i = 0; i < count; i++) {
		out[i] = xfp_float_to_bf16(x[i]);
		if ((out[i] & BF16_EXPONENT) != BF16_EXPONENT)
			continue;
		if (isfinite(x[i]))
			return xfp_fail(err, XFP_BAD_INPUT,
					"layer %u: the input \"%s\" has %g, which is beyond the range of bf16",
					(unsigned)c->inputs.layer, input, x[i]);
		return xfp_fail(err, XFP_BAD_INPUT, "layer %u: the input \"%s\" is not finite; verify the weights",
				(unsigned)c->inputs.layer, input);
	}
	return XFP_OK;
}

/* Experts are observed by number, so that the experts of a token ascend. */
static enum xfp_status add_expert_rows(struct xfp_capture *c, const struct xfp_observed *product, uint32_t input,
				       struct xfp_error *err)
{
	uint64_t each = c->inputs.experts_per_token;
	enum xfp_status status = XFP_OK;

	for (size_t i = 0; !status && i < product->count; i++) {
		uint64_t token = product->tokens[i], row = token * each + c->slots[token]++;

		c->inputs.experts[c->first * each + row] = product->expert;
		status = convert(c, product->input, product->x + i * product->cols, product->cols,
				 c->values[input] + row * product->cols, err);
	}
	return status;
}

enum xfp_status xfp_capture_observe(void *context, const struct xfp_observed *product, struct xfp_error *err)
{
	struct xfp_capture *c = context;
	uint32_t input;
	enum xfp_status status = find_input(c, product, &input, err);

	if (!status && !c->begun && *product->tensor)
		status = add_tensor(c, product, input, err);
	if (status)
		return status;
	if (is_by_expert(product->input))
		return add_expert_rows(c, product, input, err);
	/* The router multiplied the vectors of all tokens before, of which an expert's are some. */
	if (c->filled[input])
		return XFP_OK;
	if (product->count != c->tokens || product->tokens)
		return xfp_fail(err, XFP_FAILED, "%s: unexpected vectors; this is a bug in xfp",
				xfp_printable(product->tensor).text);
	c->filled[input] = true;
	return convert(c, product->input, product->x, product->count * product->cols, c->values[input], err);
}

/* Rows that no expert has are zero. */
static void clear_empty_rows(struct xfp_capture *c, uint32_t input)
{
	uint64_t each = c->inputs.experts_per_token, cols = c->inputs.input[input].cols;

	for (uint64_t t = 0; t < c->tokens; t++)
		memset(c->values[input] + (t * each + c->slots[t]) * cols, 0,
		       (each - c->slots[t]) * cols * sizeof **c->values);
}

enum xfp_status xfp_capture_write(struct xfp_capture *c, struct xfp_artifact *artifact, struct xfp_error *err)
{
	enum xfp_status status = c->begun ? XFP_OK : xfp_inputs_begin(artifact, &c->inputs, err);

	c->begun = true;
	for (uint32_t i = 0; !status && i < c->inputs.input_count; i++) {
		const struct xfp_layer_input *input = &c->inputs.input[i];
		uint64_t each = rows_per_token(c, input->name);

		if (is_by_expert(input->name))
			clear_empty_rows(c, i);
		status = xfp_inputs_write_values(artifact, input, c->first * each, c->tokens * each, c->values[i], err);
	}
	return status;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct xfp_input_tensor *)a)->name, ((const struct xfp_input_tensor *)b)->name);
}

enum xfp_status xfp_capture_end(struct xfp_capture *c, struct xfp_artifact *artifact, struct xfp_error *err)
{
	if (c->inputs.tensor_count)
		qsort(c->inputs.tensors, c->inputs.tensor_count, sizeof *c->inputs.tensors, by_name);
	return xfp_inputs_end(artifact, &c->inputs, err);
}

uint64_t xfp_capture_bytes(const struct xfp_description *d, uint32_t layer)
{
	const struct xfp_layer *l = &d->layer[layer];
	uint64_t attention = l->delta ? d->delta.value_heads * d->delta.value_dim
				      : (uint64_t)d->heads * d->value_dim + d->latent.query_rank + d->latent.kv_rank;
	uint64_t mlp = l->experts ? (uint64_t)d->experts_per_token * d->expert_intermediate + d->shared_intermediate
				  : d->intermediate;

	/* And the numbers of an expert's tokens (mlp.c). */
	return (2 * (uint64_t)d->hidden + attention + mlp) * sizeof(uint16_t) + 2 * sizeof(uint32_t);
}
