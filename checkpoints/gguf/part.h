/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.h - rows of stored tensors as logical tensors, or as parts of them. Private to checkpoints/gguf/.
 */
#ifndef XFP_GGUF_PART_H
#define XFP_GGUF_PART_H

#include "checkpoints/gguf/arrange.h"
#include "schemas/recipe/recipe.h"

/* Rows of a stored tensor: all dimensions but the last. Of an empty one, none. */
struct xfp_gguf_rows {
	uint64_t rows, cols;
};
struct xfp_gguf_rows xfp_gguf_rows(const struct xfp_gguf_tensor *tensor);

/* A part of a recipe, which stays where it is: its components are in it. */
struct xfp_gguf_part {
	struct xfp_recipe_part part;
	struct xfp_component components[3];
};

/* Rows [first, first + count), with what they are multiplied by. */
enum xfp_status xfp_gguf_part(const struct xfp_gguf_model *model, const struct xfp_gguf_stored *stored, uint64_t first,
			      uint64_t count, struct xfp_gguf_part *out);

/* Append a logical tensor of this name and shape, whose recipe, allocated or NULL, it takes; its first element is at
 * `offset`, or that of the recipe's first component. */
enum xfp_status xfp_gguf_add(struct xfp_gguf_model *model, const struct xfp_gguf_stored *stored, const char *name,
			     uint32_t rank, const uint64_t *shape, uint64_t offset, struct xfp_recipe *recipe);
/* The same with a copy of a recipe. */
enum xfp_status xfp_gguf_add_recipe(struct xfp_gguf_model *model, const struct xfp_gguf_stored *stored,
				    const char *name, uint32_t rank, const uint64_t *shape,
				    const struct xfp_recipe *recipe);
/* The same of rows that are as they are, with a recipe where they are packed. */
enum xfp_status xfp_gguf_add_rows(struct xfp_gguf_model *model, const struct xfp_gguf_stored *stored, const char *name,
				  uint32_t rank, const uint64_t *shape, uint64_t first, uint64_t count);

/* The tensor of the same layer that goes by `name` and must be there, of the same dtype once unpacked; used then. */
enum xfp_status xfp_gguf_companion(struct xfp_gguf_model *model, const struct xfp_gguf_stored *of, const char *name,
				   struct xfp_gguf_stored **companion);

/* Whether a tensor is what weights are multiplied by, and arranged with them, or what activations are, and left out. */
bool xfp_gguf_is_scale(struct xfp_gguf_model *model, struct xfp_gguf_stored *stored);

#endif
