/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrange.c - convert stored tensors to logical ones: one to one, one to many, or many to one.
 *
 * Tensors that are already in the right form stay where they are; the others get a recipe. Recipes move whole rows, so
 * packed rows can be moved like any others.
 */
#include "checkpoints/gguf/part.h"
#include "schemas/recipe/recipe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one tensor --------------------------------------------------------------------------------- */

/* Insert the number of an expert and a projection into the name. */
static void fill_name(const char *name, uint64_t expert, const char *projection, char out[XFP_MAX_NAME])
{
	size_t used = 0;

	while (*name && used < XFP_MAX_NAME - 24) {
		if (!strncmp(name, "{e}", 3))
			used += (size_t)snprintf(out + used, XFP_MAX_NAME - used, "%" PRIu64, expert);
		else if (!strncmp(name, "{p}", 3))
			used += (size_t)snprintf(out + used, XFP_MAX_NAME - used, "%s", projection);
		else {
			out[used++] = *name++;
			continue;
		}
		name += 3;
	}
	out[used] = 0;
}

static enum xfp_status add_as_is(struct xfp_gguf_model *m, const struct xfp_gguf_stored *stored, const char *name)
{
	const struct xfp_gguf_tensor *t = stored->tensor;

	return xfp_gguf_add_rows(m, stored, name, t->rank, t->shape, 0, xfp_gguf_rows(t).rows);
}

/* Read the number of heads from a metadata key; also compute the rows per head. */
static enum xfp_status read_heads(const struct xfp_gguf_model *m, const struct xfp_gguf_stored *stored, uint64_t layer,
				  bool keys, uint64_t *heads, uint64_t *each)
{
	const struct xfp_gguf_tensor *t = stored->tensor;
	const char *key = "attention.head_count";
	enum xfp_status status;

	if (keys && xfp_gguf_find_in(&m->files[0].metadata, m->prefix, "attention.head_count_kv"))
		key = "attention.head_count_kv";
	if ((status = xfp_gguf_read_number(m, key, layer, UINT32_MAX, heads)))
		return status;
	if (!t->rank || t->rank > 2 || t->shape[0] % *heads || t->shape[0] / *heads % 2)
		return xfp_gguf_bad(m, stored,
				    "its rows do not form pairs for %" PRIu64 " heads (%s.%s); download the file again",
				    *heads, m->prefix, key);
	*each = t->shape[0] / *heads;
	return XFP_OK;
}

/* Restore the order of the rows of each head: GGUF interleaves the two halves of a head. */
static enum xfp_status add_heads(struct xfp_gguf_model *m, const struct xfp_gguf_stored *stored, uint64_t layer,
				 const char *name, bool keys)
{
	const struct xfp_gguf_tensor *t = stored->tensor;
	struct xfp_recipe recipe = { .part_count = 1, .outer = 2 };
	struct xfp_gguf_part part;
	uint64_t heads = 1, each = 2;
	enum xfp_status status = read_heads(m, stored, layer, keys, &heads, &each);

	if (status || !t->bytes)
		return status ? status : add_as_is(m, stored, name);
	if ((status = xfp_gguf_part(m, stored, 0, xfp_gguf_rows(t).rows, &part)))
		return status;
	if (t->rank == 1) { /* a bias: its elements correspond to rows */
		if (t->type->form != XFP_GGML_DTYPE)
			return xfp_gguf_bad(m, stored, "is %s, an invalid type for a bias", t->type->name);
		part.part.rows = t->shape[0];
		part.part.cols = 1;
	}
	recipe.parts = &part.part;
	recipe.rows = part.part.rows;
	recipe.cols = part.part.cols;
	recipe.inner = each / 2;
	return xfp_gguf_add_recipe(m, stored, name, t->rank, t->shape, &recipe);
}

static enum xfp_status add_reversed(struct xfp_gguf_model *m, const struct xfp_gguf_stored *stored, const char *name,
				    enum xfp_reversed what)
{
	const struct xfp_gguf_tensor *t = stored->tensor;
	struct xfp_recipe *recipe;
	struct xfp_gguf_part part;
	enum xfp_status status;

	if (!t->bytes)
		return add_as_is(m, stored, name);
	if (t->number != XFP_GGML_F32)
		return xfp_gguf_bad(m, stored,
				    "is %s, but such tensors must be F32; use a file that llama.cpp's "
				    "converter wrote",
				    t->type->name);
	if ((status = xfp_gguf_part(m, stored, 0, xfp_gguf_rows(t).rows, &part)))
		return status;
	part.part.codec = XFP_CODEC_REVERSED;
	part.part.version = xfp_codec_version(XFP_CODEC_REVERSED);
	part.part.parameters[0] = what;
	recipe = xfp_recipe_new(&part.part);
	return recipe ? xfp_gguf_add(m, stored, name, t->rank, t->shape, 0, recipe)
		      : xfp_no_memory_for(m->err, m->checkpoint->folder);
}

/* ---- stacks of experts -------------------------------------------------------------------------- */

static enum xfp_status check_experts(const struct xfp_gguf_model *m, const struct xfp_gguf_stored *stored)
{
	const struct xfp_gguf_tensor *t = stored->tensor;

	if (t->rank < 2 || t->rank > 3)
		return xfp_gguf_bad(m, stored,
				    "has %" PRIu32 " dimensions; a stack of experts has three, of biases two: "
				    "download the file again",
				    t->rank);
	if (t->shape[0] > XFP_GGUF_MAX_EXPERTS)
		return xfp_gguf_bad(m, stored, "has %" PRIu64 " experts; %d are supported", t->shape[0],
				    XFP_GGUF_MAX_EXPERTS);
	return XFP_OK;
}

/* Split a stack into one tensor per expert; `projections` further divides the rows of each into equal parts. */
static enum xfp_status add_experts(struct xfp_gguf_model *m, const struct xfp_gguf_stored *stored, const char *name,
				   const char *const *projections, uint64_t shares)
{
	const struct xfp_gguf_tensor *t = stored->tensor;
	uint64_t rows = t->rank == 3 ? t->shape[1] : 1;
	enum xfp_status status = check_experts(m, stored);

	if (!status && (rows % shares || (shares > 1 && t->rank != 3)))
		return xfp_gguf_bad(m, stored, "its rows are not shared evenly by %" PRIu64 " projections", shares);
	for (uint64_t e = 0; !status && e < t->shape[0]; e++)
		for (uint64_t p = 0; !status && p < shares; p++) {
			uint64_t each = rows / shares, shape[2] = { each, t->shape[t->rank - 1] };
			char full[XFP_MAX_NAME];

			fill_name(name, e, projections ? projections[p] : "", full);
			status = xfp_gguf_add_rows(m, stored, full, t->rank - 1, t->rank == 3 ? shape : shape + 1,
						   t->bytes ? e * rows + p * each : 0, t->bytes ? each : 0);
		}
	return status;
}

/* Add [experts, in, out], which is stored as [experts, out, in]. */
static enum xfp_status add_turned(struct xfp_gguf_model *m, const struct xfp_gguf_stored *stored, const char *name)
{
	const struct xfp_gguf_tensor *t = stored->tensor;
	struct xfp_recipe recipe = { .part_count = 1 };
	struct xfp_gguf_part part;
	enum xfp_status status = check_experts(m, stored);

	if (status)
		return status;
	if (t->rank != 3 || !t->bytes)
		return add_as_is(m, stored, name);
	if ((status = xfp_gguf_part(m, stored, 0, xfp_gguf_rows(t).rows, &part)))
		return status;
	recipe.parts = &part.part;
	recipe.rows = part.part.rows;
	recipe.cols = part.part.cols;
	recipe.transposed = t->shape[1];
	return xfp_gguf_add_recipe(m, stored, name, 3, (uint64_t[]){ t->shape[0], t->shape[2], t->shape[1] }, &recipe);
}

/* Interleave the rows, or biases, of gate with those of "up". */
static enum xfp_status add_interleaved(struct xfp_gguf_model *m, struct xfp_gguf_stored *gate, const char *name,
				       bool biases)
{
	const struct xfp_gguf_tensor *t = gate->tensor;
	struct xfp_gguf_stored *up;
	struct xfp_gguf_part both[2];
	struct xfp_recipe_part parts[2];
	struct xfp_recipe recipe = { .parts = parts, .part_count = 2 };
	enum xfp_status status;
	uint64_t rows;

	if ((status = check_experts(m, gate)) ||
	    (status = xfp_gguf_companion(m, gate, biases ? "ffn_up_exps.bias" : "ffn_up_exps.weight", &up)))
		return status;
	if (t->rank != (biases ? 2 : 3) || up->tensor->rank != t->rank ||
	    memcmp(up->tensor->shape, t->shape, sizeof t->shape) != 0 || !t->bytes ||
	    (biases && (t->type->form != XFP_GGML_DTYPE || up->tensor->type->form != XFP_GGML_DTYPE)))
		return xfp_gguf_bad(m, up, "does not match %s, the other half of the tensor; download the file again",
				    t->name);
	rows = xfp_gguf_rows(t).rows;
	if ((status = xfp_gguf_part(m, gate, 0, rows, &both[0])) || (status = xfp_gguf_part(m, up, 0, rows, &both[1])))
		return status;
	for (int i = 0; i < 2; i++) {
		if (biases) {
			both[i].part.rows = rows * xfp_gguf_rows(t).cols;
			both[i].part.cols = 1;
		}
		parts[i] = both[i].part;
		parts[i].components = both[i].components;
	}
	if (biases) {
		recipe.beside = true;
		recipe.rows = parts[0].rows;
		recipe.cols = 2;
		return xfp_gguf_add_recipe(m, gate, name, 2, (uint64_t[]){ t->shape[0], 2 * t->shape[1] }, &recipe);
	}
	recipe.rows = 2 * rows;
	recipe.cols = parts[0].cols;
	recipe.transposed = 2 * t->shape[1];
	recipe.outer = rows;
	recipe.inner = 2;
	return xfp_gguf_add_recipe(m, gate, name, 3, (uint64_t[]){ t->shape[0], t->shape[2], 2 * t->shape[1] },
				   &recipe);
}

/* ---- fused and split projections ---------------------------------------------------------------- */

/* Split rows to q, k and v by their heads. */
static enum xfp_status add_qkv(struct xfp_gguf_model *m, const struct xfp_gguf_stored *stored, uint64_t layer,
			       const char *name)
{
	static const char *const projections[] = { "q", "k", "v" };
	const struct xfp_gguf_tensor *t = stored->tensor;
	bool interleaved = m->architecture == XFP_GGUF_LLAMA || m->architecture == XFP_GGUF_MIXTRAL;
	uint64_t heads, keys, first = 0;
	enum xfp_status status;

	if ((status = xfp_gguf_read_number(m, "attention.head_count", layer, UINT16_MAX, &heads)) ||
	    (status = xfp_gguf_read_number(m, "attention.head_count_kv", layer, UINT16_MAX, &keys)))
		return status;
	if (!t->rank || t->rank > 2 || t->shape[0] % (heads + 2 * keys) || !t->bytes)
		return xfp_gguf_bad(m, stored,
				    "its rows are not those of %" PRIu64 " heads and twice %" PRIu64
				    " of keys; download the file again",
				    heads, keys);
	for (int p = 0; !status && p < 3; p++) {
		uint64_t rows = t->shape[0] / (heads + 2 * keys) * (p ? keys : heads);
		struct xfp_gguf_tensor share = *t;
		struct xfp_gguf_stored one = { &share, stored->file, true };
		char full[XFP_MAX_NAME];

		share.shape[0] = rows;
		share.bytes = t->bytes / t->shape[0] * rows;
		share.offset = t->offset + t->bytes / t->shape[0] * first;
		first += rows;
		fill_name(name, 0, projections[p], full);
		if (t->rank == 1 && t->type->form != XFP_GGML_DTYPE)
			return xfp_gguf_bad(m, stored, "is %s, an invalid type for a bias", t->type->name);
		status = p < 2 && interleaved ? add_heads(m, &one, layer, full, p == 1) : add_as_is(m, &one, full);
	}
	return status;
}

/* Combine rows of q, k, v and z, grouped by key head. */
static enum xfp_status add_linear(struct xfp_gguf_model *m, struct xfp_gguf_stored *qkv, const char *name)
{
	const struct xfp_gguf_tensor *t = qkv->tensor;
	uint64_t heads, width, values, inner, keys, shape[2];
	struct xfp_gguf_stored *z;
	struct xfp_gguf_part *parts = NULL;
	struct xfp_recipe recipe = { 0 };
	enum xfp_status status;

	if ((status = xfp_gguf_companion(m, qkv, "attn_gate.weight", &z)) ||
	    (status = xfp_gguf_read_number(m, "ssm.group_count", 0, 4096, &heads)) ||
	    (status = xfp_gguf_read_number(m, "ssm.state_size", 0, UINT32_MAX, &width)) ||
	    (status = xfp_gguf_read_number(m, "ssm.time_step_rank", 0, UINT32_MAX, &values)) ||
	    (status = xfp_gguf_read_number(m, "ssm.inner_size", 0, UINT32_MAX, &inner)))
		return status;
	keys = heads * width;
	if (values % heads || inner % values || t->rank != 2 || z->tensor->rank != 2 ||
	    t->shape[0] != 2 * keys + inner || z->tensor->shape[0] != inner || z->tensor->shape[1] != t->shape[1] ||
	    !t->bytes)
		return xfp_gguf_bad(m, qkv,
				    "its rows, or those of attn_gate, do not match %s.ssm; download the file "
				    "again",
				    m->prefix);
	parts = calloc(4 * heads, sizeof *parts);
	recipe.parts = calloc(4 * heads, sizeof *recipe.parts);
	if (!parts || !recipe.parts)
		status = xfp_no_memory_for(m->err, m->checkpoint->folder);
	for (uint64_t h = 0; !status && h < heads; h++) {
		struct xfp_gguf_part *p = parts + 4 * h;
		uint64_t share = inner / heads;

		(void)((status = xfp_gguf_part(m, qkv, h * width, width, p)) ||
		       (status = xfp_gguf_part(m, qkv, keys + h * width, width, p + 1)) ||
		       (status = xfp_gguf_part(m, qkv, 2 * keys + h * share, share, p + 2)) ||
		       (status = xfp_gguf_part(m, z, h * share, share, p + 3)));
	}
	for (uint64_t p = 0; !status && p < 4 * heads; p++)
		recipe.parts[p] = parts[p].part;
	recipe.part_count = (uint32_t)(4 * heads);
	shape[0] = recipe.rows = 2 * keys + 2 * inner;
	shape[1] = recipe.cols = t->shape[1];
	if (!status)
		status = xfp_gguf_add_recipe(m, qkv, name, 2, shape, &recipe);
	free(parts);
	free(recipe.parts);
	return status;
}

/* ---- all ---------------------------------------------------------------------------------------- */

static enum xfp_status arrange_one(struct xfp_gguf_model *m, struct xfp_gguf_stored *stored)
{
	static const char *const both[] = { "gate", "up" };
	const struct xfp_gguf_tensor *t = stored->tensor;
	const struct xfp_gguf_place place = xfp_gguf_place(m->architecture, m->layers, t->name);
	uint64_t count = xfp_gguf_rows(t).rows;

	if (xfp_gguf_is_scale(m, stored))
		return XFP_OK;
	stored->used = true;
	switch (place.transform) {
	case XFP_GGUF_NORM:
		return add_reversed(m, stored, place.name, XFP_REVERSED_ONE);
	case XFP_GGUF_DECAY:
		return add_reversed(m, stored, place.name, XFP_REVERSED_DECAY);
	case XFP_GGUF_QUERY:
	case XFP_GGUF_KEY:
		return add_heads(m, stored, place.layer, place.name, place.transform == XFP_GGUF_KEY);
	case XFP_GGUF_QKV:
		return add_qkv(m, stored, place.layer, place.name);
	case XFP_GGUF_EXPERTS:
		return add_experts(m, stored, place.name, NULL, 1);
	case XFP_GGUF_GATE_UP:
		return add_experts(m, stored, place.name, both, 2);
	case XFP_GGUF_ROW:
		return xfp_gguf_add_rows(m, stored, place.name, 2, (uint64_t[]){ count, xfp_gguf_rows(t).cols }, 0,
					 count);
	case XFP_GGUF_CONV:
		if (t->rank != 2)
			return add_as_is(m, stored, place.name);
		return xfp_gguf_add_rows(m, stored, place.name, 3, (uint64_t[]){ t->shape[0], 1, t->shape[1] }, 0,
					 count);
	case XFP_GGUF_INTERLEAVED:
	case XFP_GGUF_BIASES:
		return add_interleaved(m, stored, place.name, place.transform == XFP_GGUF_BIASES);
	case XFP_GGUF_TRANSPOSED:
		return add_turned(m, stored, place.name);
	case XFP_GGUF_LINEAR:
		return add_linear(m, stored, place.name);
	case XFP_GGUF_CONSUMED:
		/* Keep tensors that config.json cannot express; the others become part of a neighbour. */
		if (place.layer == UINT64_MAX)
			return add_as_is(m, stored, place.name);
		stored->used = false;
		return XFP_OK;
	default:
		return add_as_is(m, stored, place.name);
	}
}

enum xfp_status xfp_gguf_arrange(struct xfp_gguf_model *m)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < m->stored_count; i++)
		if (!m->stored[i].used)
			status = arrange_one(m, &m->stored[i]);
	for (uint32_t i = 0; !status && i < m->stored_count; i++)
		if (!m->stored[i].used)
			status = xfp_gguf_bad(m, &m->stored[i],
					      "is a part of a tensor whose other parts are missing; download all "
					      "parts of the file again");
	return status;
}
