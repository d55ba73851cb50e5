/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.h - use rows of stored tensors as logical tensors, or as parts of them. Private to checkpoints/gguf/.
 */
#ifndef XFP_GGUF_PART_H
#define XFP_GGUF_PART_H

#include "checkpoints/gguf/arrange.h"
#include "schemas/recipe/recipe.h"

/* Rows of a stored tensor, over all dimensions except the last; an empty tensor has no rows. */
struct xfp_gguf_rows {
	uint64_t rows, cols;
};
struct xfp_gguf_rows xfp_gguf_rows(const struct xfp_gguf_tensor *tensor);

/* A part of a recipe; not movable, because it contains its components. */
struct xfp_gguf_part {
	struct xfp_recipe_part part;
	struct xfp_component components[3];
};

/* Create a part from rows [first, first + count), with their scales. */
enum xfp_status xfp_gguf_part(const struct xfp_gguf_model *model, const struct xfp_gguf_stored *stored, uint64_t first,
			      uint64_t count, struct xfp_gguf_part *out);

/* Append a logical tensor of this name and shape, and take ownership of its recipe (allocated or NULL). Its first
 * element is at `offset`, or at the recipe's first component. */
enum xfp_status xfp_gguf_add(struct xfp_gguf_model *model, const struct xfp_gguf_stored *stored, const char *name,
			     uint32_t rank, const uint64_t *shape, uint64_t offset, struct xfp_recipe *recipe);
/* Append a logical tensor with a copy of a recipe. */
enum xfp_status xfp_gguf_add_recipe(struct xfp_gguf_model *model, const struct xfp_gguf_stored *stored,
				    const char *name, uint32_t rank, const uint64_t *shape,
				    const struct xfp_recipe *recipe);
/* Append unchanged rows as a logical tensor, with a recipe if they are packed. */
enum xfp_status xfp_gguf_add_rows(struct xfp_gguf_model *model, const struct xfp_gguf_stored *stored, const char *name,
				  uint32_t rank, const uint64_t *shape, uint64_t first, uint64_t count);

/* Find the required tensor `name` of the same layer, with the same unpacked dtype, and mark it as used. */
enum xfp_status xfp_gguf_companion(struct xfp_gguf_model *model, const struct xfp_gguf_stored *of, const char *name,
				   struct xfp_gguf_stored **companion);

/* Return whether a tensor is a scale of weights, handled with them, or of activations, which is dropped. */
bool xfp_gguf_is_scale(struct xfp_gguf_model *model, struct xfp_gguf_stored *stored);

#endif
