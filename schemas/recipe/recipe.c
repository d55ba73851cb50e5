/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/recipe/recipe.h"

#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

static const struct {
	const char *name;
	uint32_t version;
} codecs[XFP_CODECS] = {
	[XFP_CODEC_PLAIN] = { "plain", 1 },
	[XFP_CODEC_FP8] = { "fp8", 1 },
	[XFP_CODEC_MXFP4] = { "mxfp4", 1 },
	[XFP_CODEC_GPTQ] = { "gptq", 1 },
	[XFP_CODEC_AWQ] = { "awq", 1 },
	[XFP_CODEC_AWQ_GEMV] = { "awq-gemv", 1 },
	[XFP_CODEC_AWQ_GEMV_FAST] = { "awq-gemv-fast", 1 },
	[XFP_CODEC_NVFP4] = { "nvfp4", 1 },
	[XFP_CODEC_INT] = { "int", 1 },
	[XFP_CODEC_EXL2] = { "exl2", 1 },
	[XFP_CODEC_GGUF] = { "gguf", 1 },
	[XFP_CODEC_REVERSED] = { "reversed", 1 },
};

const char *xfp_codec_name(enum xfp_codec codec)
{
	return codecs[codec].name;
}

uint32_t xfp_codec_version(enum xfp_codec codec)
{
	return codecs[codec].version;
}

struct xfp_recipe *xfp_recipe_copy(const struct xfp_recipe *from)
{
	struct xfp_recipe *to = calloc(1, sizeof *to);

	if (!to)
		return NULL;
	*to = *from;
	if (!(to->parts = calloc(from->part_count + (size_t)1, sizeof *to->parts))) {
		free(to);
		return NULL;
	}
	for (to->part_count = 0; to->part_count < from->part_count; to->part_count++) {
		const struct xfp_recipe_part *part = &from->parts[to->part_count];
		struct xfp_recipe_part *copy = &to->parts[to->part_count];
		size_t bytes = part->component_count * sizeof *part->components;

		*copy = *part;
		if (!(copy->components = malloc(bytes + 1))) {
			xfp_recipe_free(to);
			return NULL;
		}
		memcpy(copy->components, part->components, bytes);
	}
	return to;
}

struct xfp_recipe *xfp_recipe_new(const struct xfp_recipe_part *part)
{
	/* Only copied, never modified. */
	const struct xfp_recipe one = {
		.parts = (struct xfp_recipe_part *)(uintptr_t)part,
		.part_count = 1,
		.rows = part->rows,
		.cols = part->cols,
	};

	return xfp_recipe_copy(&one);
}

void xfp_recipe_free(struct xfp_recipe *recipe)
{
	if (!recipe)
		return;
	for (uint32_t i = 0; recipe->parts && i < recipe->part_count; i++)
		free(recipe->parts[i].components);
	free(recipe->parts);
	free(recipe);
}

const struct xfp_component *xfp_recipe_component(const struct xfp_recipe_part *part, enum xfp_component_role role)
{
	for (uint32_t i = 0; i < part->component_count; i++)
		if (part->components[i].role == role)
			return &part->components[i];
	return NULL;
}

uint64_t xfp_recipe_bytes(const struct xfp_recipe *recipe)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < recipe->part_count; i++)
		for (uint32_t k = 0; k < recipe->parts[i].component_count; k++)
			if (recipe->parts[i].components[k].role != XFP_COMPONENT_CONFIG)
				bytes += recipe->parts[i].components[k].bytes;
	return bytes;
}

/* Add numbers in little-endian form. */
static void add(struct xfp_sha256 *digest, const uint64_t *numbers, size_t count)
{
	xfp_sha256_update(digest, numbers, count * sizeof *numbers);
}

static void add_file(struct xfp_sha256 *digest, const struct xfp_source_file *file)
{
	const struct xfp_identity *id = &file->identity;

	add(digest, (uint64_t[]){ id->device, id->inode, id->size, (uint64_t)id->mtime_ns, (uint64_t)id->ctime_ns }, 5);
	xfp_sha256_update(digest, file->path, strlen(file->path) + 1);
}

void xfp_recipe_digest(const struct xfp_recipe *recipe, const struct xfp_source_file *files, uint8_t sha256[32])
{
	struct xfp_sha256 digest;

	xfp_sha256_init(&digest);
	add(&digest,
	    (uint64_t[]){ recipe->beside, recipe->rows, recipe->cols, recipe->transposed, recipe->outer,
			  recipe->inner },
	    6);
	for (uint32_t i = 0; i < recipe->part_count; i++) {
		const struct xfp_recipe_part *part = &recipe->parts[i];

		add(&digest, (uint64_t[]){ part->codec, part->version, part->rows, part->cols, part->component_count },
		    5);
		add(&digest, part->parameters, XFP_CODEC_PARAMETERS);
		for (uint32_t k = 0; k < part->component_count; k++) {
			const struct xfp_component *c = &part->components[k];

			add(&digest, (uint64_t[]){ c->role, c->dtype, c->offset, c->bytes }, 4);
			add_file(&digest, &files[c->file]);
		}
	}
	xfp_sha256_final(&digest, sha256);
}
