/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/gguf/part.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/text/suffix.h"

#define WEIGHT ".weight"
#define SCALE ".scale"
#define INPUT_SCALE ".input_scale"

/* ---- messages ----------------------------------------------------------------------------------- */

enum xfp_status xfp_gguf_bad(const struct xfp_gguf_model *m, const struct xfp_gguf_stored *stored, const char *format,
			     ...)
{
	va_list args;

	va_start(args, format);
	xfp_fail_args(m->err, XFP_BAD_INPUT, format, args);
	va_end(args);
	return xfp_context(m->err, XFP_BAD_INPUT, "%s: tensor %s", m->files[stored->file].shown,
			   xfp_printable(stored->tensor->name).text);
}

enum xfp_status xfp_gguf_bad_key(const struct xfp_gguf_model *m, const char *key, const char *what)
{
	return xfp_fail(m->err, XFP_BAD_INPUT, "%s: metadata %s.%s: %s", m->files[0].shown, m->prefix, key, what);
}

enum xfp_status xfp_gguf_read_number(const struct xfp_gguf_model *m, const char *key, uint64_t layer, uint64_t max,
				     uint64_t *number)
{
	const struct xfp_gguf_value *value = xfp_gguf_find_in(&m->files[0].metadata, m->prefix, key);

	if (!value)
		return xfp_gguf_bad_key(m, key, "is missing; use a file that llama.cpp's converter wrote");
	if (!xfp_gguf_integer(value, value->array ? layer : 0, number) || !*number || *number > max)
		return xfp_gguf_bad_key(m, key, "has an invalid value; download the file again");
	return XFP_OK;
}

/* ---- finding ------------------------------------------------------------------------------------ */

struct xfp_gguf_stored *xfp_gguf_stored(const struct xfp_gguf_model *m, const char *name)
{
	uint32_t low = 0, high = m->stored_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcmp(m->stored[middle].tensor->name, name);

		if (!order)
			return &m->stored[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Find a required companion tensor, with the same rank and element type; the tensor uses it. */
enum xfp_status xfp_gguf_companion(struct xfp_gguf_model *m, const struct xfp_gguf_stored *of, const char *name,
				   struct xfp_gguf_stored **companion)
{
	char full[64 + 32];

	snprintf(full, sizeof full, "%.*s%s", (int)(strchr(of->tensor->name + 4, '.') + 1 - of->tensor->name),
		 of->tensor->name, name);
	if (!(*companion = xfp_gguf_stored(m, full)) || (*companion)->used)
		return xfp_gguf_bad(m, of, "needs %s, which is missing; download all parts of the file again", full);
	if ((*companion)->tensor->type->dtype != of->tensor->type->dtype)
		return xfp_gguf_bad(m, *companion,
				    "is %s, but %s, the other half of the tensor, is %s; use a file "
				    "that has both in one type",
				    (*companion)->tensor->type->name, of->tensor->name, of->tensor->type->name);
	(*companion)->used = true;
	return XFP_OK;
}

/* ---- tensors ------------------------------------------------------------------------------------ */

struct xfp_gguf_rows xfp_gguf_rows(const struct xfp_gguf_tensor *t)
{
	struct xfp_gguf_rows r = { 1, t->rank ? t->shape[t->rank - 1] : 1 };

	if (!t->bytes)
		return (struct xfp_gguf_rows){ 0, 0 };
	for (uint32_t d = 0; d + 1 < t->rank; d++)
		r.rows *= t->shape[d];
	return r;
}

static uint64_t row_bytes(const struct xfp_gguf_tensor *t)
{
	return xfp_gguf_rows(t).cols / t->type->elements * t->type->bytes;
}

/* Return the tensor with the additional scale of all weights, or of each expert of a stack; NULL if there is none. */
static struct xfp_gguf_stored *scale_of(const struct xfp_gguf_model *m, const struct xfp_gguf_tensor *t)
{
	size_t length = strlen(t->name), tail = strlen(WEIGHT);
	char name[64 + sizeof SCALE];

	if (length <= tail || strcmp(t->name + length - tail, WEIGHT) != 0)
		return NULL;
	snprintf(name, sizeof name, "%.*s" SCALE, (int)(length - tail), t->name);
	return xfp_gguf_stored(m, name);
}

/* Add the scale of rows [first, first + count) of a stored tensor: whole experts, or part of one. */
static enum xfp_status add_scale(const struct xfp_gguf_model *m, const struct xfp_gguf_stored *stored, uint64_t first,
				 uint64_t count, struct xfp_gguf_part *out)
{
	const struct xfp_gguf_tensor *t = stored->tensor;
	struct xfp_gguf_stored *scale = scale_of(m, t);
	uint64_t rows = t->rank == 3 ? t->shape[1] : xfp_gguf_rows(t).rows, experts = t->rank == 3 ? t->shape[0] : 1;
	uint64_t scales = scale ? scale->tensor->bytes / sizeof(float) : 0;

	if (!scale)
		return XFP_OK;
	if (scale->tensor->number != XFP_GGML_F32 || (scales != 1 && scales != experts) || !count)
		return xfp_gguf_bad(m, scale,
				    "is not a scale of %s (F32, one, or one per expert); download the file "
				    "again",
				    t->name);
	scale->used = true;
	if (scales > 1 && count >= rows) {
		out->part.parameters[XFP_GGML_MATRIX_ROWS] = rows;
		scales = count / rows;
		first /= rows;
	} else {
		out->part.parameters[XFP_GGML_MATRIX_ROWS] = count;
		first = scales > 1 ? first / rows : 0;
		scales = 1;
	}
	out->components[out->part.component_count++] =
		(struct xfp_component){ XFP_COMPONENT_GLOBAL, XFP_F32, m->files[scale->file].number,
					scale->tensor->offset + first * sizeof(float), scales * sizeof(float) };
	return XFP_OK;
}

/* Create a part from the same rows. If they are in another file than the metadata, the metadata is a component, too,
 * because the recipe depends on it. */
enum xfp_status xfp_gguf_part(const struct xfp_gguf_model *m, const struct xfp_gguf_stored *stored, uint64_t first,
			      uint64_t count, struct xfp_gguf_part *out)
{
	const struct xfp_gguf_tensor *t = stored->tensor;
	bool plain = t->type->form == XFP_GGML_DTYPE;
	uint32_t file = m->files[stored->file].number;
	enum xfp_status status = XFP_OK;

	*out = (struct xfp_gguf_part){
		.part = { .codec = plain ? XFP_CODEC_PLAIN : XFP_CODEC_GGUF,
			  .rows = count,
			  .cols = xfp_gguf_rows(t).cols,
			  .component_count = 1 },
		.components = { { XFP_COMPONENT_CODES, plain ? t->type->dtype : XFP_U8, file,
				  t->offset + first * row_bytes(t), count * row_bytes(t) } },
	};
	out->part.version = xfp_codec_version(out->part.codec);
	if (!plain) {
		out->part.parameters[XFP_GGML_TYPE] = t->number;
		status = add_scale(m, stored, first, count, out);
	}
	if (file)
		out->components[out->part.component_count++] =
			(struct xfp_component){ XFP_COMPONENT_CONFIG, XFP_U8, 0, 0, m->files[0].header_bytes };
	out->part.components = out->components;
	return status;
}

/* Append a logical tensor of this name and shape, and take ownership of its recipe (allocated or NULL). Its first
 * element is at `offset`, or at the recipe's first component. */
enum xfp_status xfp_gguf_add(struct xfp_gguf_model *m, const struct xfp_gguf_stored *stored, const char *name,
			     uint32_t rank, const uint64_t *shape, uint64_t offset, struct xfp_recipe *recipe)
{
	const struct xfp_ggml_type *type = stored->tensor->type;
	struct xfp_checkpoint *c = m->checkpoint;
	struct xfp_source_tensor *t;

	if (c->tensor_count >= XFP_GGUF_MAX_TENSORS) {
		xfp_recipe_free(recipe);
		return xfp_gguf_bad(m, stored, "more than %u tensors (experts count separately); not supported",
				    XFP_GGUF_MAX_TENSORS);
	}
	if (!(c->tensor_count & (c->tensor_count - 1))) {
		struct xfp_source_tensor *grown =
			realloc(c->tensors, (c->tensor_count ? 2 * (size_t)c->tensor_count : 1) * sizeof *grown);

		if (!grown) {
			xfp_recipe_free(recipe);
			return xfp_no_memory_for(m->err, c->folder);
		}
		c->tensors = grown;
	}
	t = &c->tensors[c->tensor_count++];
	*t = (struct xfp_source_tensor){ .name = strdup(name),
					 .dtype = type->dtype,
					 .rank = rank,
					 .file = m->files[stored->file].number,
					 .offset = recipe ? recipe->parts[0].components[0].offset : offset,
					 .bytes = xfp_dtype_bits(type->dtype) / 8,
					 .recipe = recipe,
					 .unread = type->form == XFP_GGML_LISTED ? type->name : NULL };
	for (uint32_t d = 0; d < rank; d++) {
		t->shape[d] = shape[d];
		if (!xfp_mul(t->bytes, shape[d], &t->bytes))
			return xfp_gguf_bad(m, stored, "unpacked, it has more than 2^64 bytes");
	}
	return t->name ? XFP_OK : xfp_no_memory_for(m->err, c->folder);
}

/* Append a logical tensor with a copy of these parts as its recipe. */
enum xfp_status xfp_gguf_add_recipe(struct xfp_gguf_model *m, const struct xfp_gguf_stored *stored, const char *name,
				    uint32_t rank, const uint64_t *shape, const struct xfp_recipe *recipe)
{
	struct xfp_recipe *copy = xfp_recipe_copy(recipe);

	return copy ? xfp_gguf_add(m, stored, name, rank, shape, 0, copy)
		    : xfp_no_memory_for(m->err, m->checkpoint->folder);
}

/* Append rows [first, first + count) unchanged. */
enum xfp_status xfp_gguf_add_rows(struct xfp_gguf_model *m, const struct xfp_gguf_stored *stored, const char *name,
				  uint32_t rank, const uint64_t *shape, uint64_t first, uint64_t count)
{
	struct xfp_gguf_part part;
	struct xfp_recipe *recipe;
	enum xfp_status status = xfp_gguf_part(m, stored, first, count, &part);

	if (status)
		return status;
	if (stored->tensor->type->form == XFP_GGML_DTYPE)
		return xfp_gguf_add(m, stored, name, rank, shape, part.components[0].offset, NULL);
	recipe = xfp_recipe_new(&part.part);
	return recipe ? xfp_gguf_add(m, stored, name, rank, shape, 0, recipe)
		      : xfp_no_memory_for(m->err, m->checkpoint->folder);
}

/* Return whether a tensor is a scale of weights, or of activations. */
bool xfp_gguf_is_scale(struct xfp_gguf_model *m, struct xfp_gguf_stored *stored)
{
	const char *name = stored->tensor->name;
	size_t stem = xfp_stem(name, SCALE);
	char weight[64 + sizeof WEIGHT];

	if (xfp_stem(name, INPUT_SCALE))
		return stored->used = true;
	if (!stem)
		return false;
	snprintf(weight, sizeof weight, "%.*s" WEIGHT, (int)stem, name);
	return xfp_gguf_stored(m, weight) != NULL;
}
