/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoints/folder.h"
#include "checkpoints/packed/ggml.h"
#include "schemas/recipe/recipe.h"

void xfp_checkpoint_close(struct xfp_checkpoint *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->file_count; i++) {
		free(c->files[i].name);
		free(c->files[i].path);
	}
	for (uint32_t i = 0; i < c->tensor_count; i++) {
		free(c->tensors[i].name);
		xfp_recipe_free(c->tensors[i].recipe);
	}
	for (uint32_t i = 0; i < c->synthesized_count; i++) {
		free(c->synthesized[i].name);
		free(c->synthesized[i].bytes);
	}
	free(c->files);
	free(c->tensors);
	free(c->synthesized);
	xfp_names_free(c->extras, c->extra_count);
	xfp_names_free(c->left_out, c->left_out_count);
	xfp_names_free(c->notes, c->note_count);
	free(c->config);
	free(c->folder);
	free(c);
}

uint64_t xfp_source_stored_bytes(const struct xfp_source_tensor *tensor)
{
	return tensor->recipe ? xfp_recipe_bytes(tensor->recipe) : tensor->bytes;
}

int64_t xfp_checkpoint_find(const struct xfp_checkpoint *c, const char *name)
{
	uint32_t low = 0, high = c->tensor_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcmp(c->tensors[middle].name, name);

		if (!order)
			return middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return -1;
}

const char *xfp_source_packed(const struct xfp_source_tensor *tensor)
{
	const struct xfp_recipe_part *part = tensor->recipe ? &tensor->recipe->parts[0] : NULL;

	if (!part || part->codec == XFP_CODEC_PLAIN || part->codec == XFP_CODEC_REVERSED)
		return NULL;
	return part->codec == XFP_CODEC_GGUF ? xfp_ggml_type(part->parameters[XFP_GGML_TYPE])->name
					     : xfp_codec_name(part->codec);
}
