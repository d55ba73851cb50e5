/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/pytorch/strided.h"

#include <stdlib.h>

#include "base/bytes.h"

#define MOST_PARTS 1024u /* of a tensor */
#define AGAIN "; the file is damaged: download it again"
#define CLONE "save it with .clone() or .contiguous()"

/* Dimensions that count, the outermost first: those of one element are left out, and those that lie end to end are
 * one. */
struct dimensions {
	uint32_t count;
	uint64_t size[XFP_MAX_RANK], stride[XFP_MAX_RANK];
};

static struct dimensions merged(const struct xfp_source_tensor *t, const uint64_t stride[XFP_MAX_RANK])
{
	struct dimensions d = { 0 };

	for (uint32_t i = 0; i < t->rank; i++) {
		uint64_t step;

		if (t->shape[i] == 1)
			continue;
		if (d.count && xfp_mul(stride[i], t->shape[i], &step) && step == d.stride[d.count - 1]) {
			d.size[d.count - 1] *= t->shape[i];
			d.stride[d.count - 1] = stride[i];
			continue;
		}
		d.size[d.count] = t->shape[i];
		d.stride[d.count++] = stride[i];
	}
	return d;
}

/* The element after the last; false where that overflows. */
static bool end_of(const struct dimensions *d, uint64_t first, uint64_t *end)
{
	if (!xfp_add(first, 1, end))
		return false;
	for (uint32_t i = 0; i < d->count; i++) {
		uint64_t way;

		if (!xfp_mul(d->size[i] - 1, d->stride[i], &way) || !xfp_add(*end, way, end))
			return false;
	}
	return true;
}

/* A matrix of stored rows, and how often there is one: outer dimensions, one in the other. */
struct lines {
	uint64_t rows, cols, pitch;
	uint64_t turned;
};

/* From dimensions that are not one: the last two are rows that are longer than what is taken of them, or columns. */
static const char *find_lines(struct dimensions *d, struct lines *l)
{
	uint32_t last = d->count - 1;

	for (uint32_t i = 0; i < d->count; i++)
		if (!d->stride[i])
			return "repeats elements of its storage, which is not supported: " CLONE;
	if (d->stride[last] == 1) { /* and there is one before it, of longer rows */
		*l = (struct lines){ d->size[last - 1], d->size[last], d->stride[last - 1], 0 };
		d->count -= 2;
	} else if (last && d->stride[last - 1] == 1) {
		*l = (struct lines){ d->size[last], d->size[last - 1], d->stride[last], d->size[last] };
		d->count -= 2;
	} else { /* single elements, some way apart */
		*l = (struct lines){ d->size[last], 1, d->stride[last], 0 };
		d->count--;
	}
	if (l->pitch < l->cols)
		return "has rows that overlap, which is not supported: " CLONE;
	/* Matrices that follow each other as rows do are one. */
	while (d->count && l->rows <= UINT64_MAX / l->pitch && d->stride[d->count - 1] == l->rows * l->pitch)
		l->rows *= d->size[--d->count];
	return NULL;
}

static struct xfp_recipe *make_recipe(const struct xfp_source_tensor *t, const struct lines *l,
				      const struct dimensions *outer, uint64_t count, uint64_t first, uint64_t size)
{
	struct xfp_recipe *recipe = calloc(1, sizeof *recipe);

	if (!recipe || !(recipe->parts = calloc((size_t)count, sizeof *recipe->parts))) {
		free(recipe);
		return NULL;
	}
	recipe->rows = l->rows * count;
	recipe->cols = l->cols;
	recipe->turned = l->turned;
	for (; recipe->part_count < count; recipe->part_count++) {
		struct xfp_recipe_part *part = &recipe->parts[recipe->part_count];
		uint64_t number = recipe->part_count, at = first;

		for (uint32_t i = outer->count; i--; number /= outer->size[i])
			at += number % outer->size[i] * outer->stride[i];
		*part = (struct xfp_recipe_part){
			.codec = XFP_CODEC_PLAIN,
			.version = xfp_codec_version(XFP_CODEC_PLAIN),
			.rows = l->rows,
			.cols = l->cols,
			.parameters = { l->pitch == l->cols ? 0 : l->pitch },
			.components = calloc(1, sizeof *part->components),
			.component_count = 1,
		};
		if (!part->components) {
			xfp_recipe_free(recipe);
			return NULL;
		}
		*part->components = (struct xfp_component){ XFP_COMPONENT_CODES, t->dtype, 0, t->offset + at * size,
							    ((l->rows - 1) * l->pitch + l->cols) * size };
	}
	return recipe;
}

const char *xfp_strided_place(struct xfp_source_tensor *t, const struct xfp_storage *storage, uint64_t first,
			      const uint64_t stride[XFP_MAX_RANK], uint64_t *parts, bool *failed)
{
	uint64_t bits = xfp_dtype_bits(t->dtype), size = bits / 8, elements = 1, end, count = 1;
	struct dimensions d;
	const char *wrong;
	struct lines l;

	*failed = false;
	t->offset = storage->offset;
	t->bytes = 0;
	for (uint32_t i = 0; i < t->rank; i++)
		if (!t->shape[i])
			return NULL;
	for (uint32_t i = 0; i < t->rank; i++)
		if (!xfp_mul(elements, t->shape[i], &elements) || elements > UINT64_MAX / 64)
			return "has more than 2^58 elements" AGAIN;
	d = merged(t, stride);
	if (!end_of(&d, first, &end) || end > storage->bytes / size)
		return "reaches past the end of its storage" AGAIN;
	t->bytes = elements * size;
	if (!d.count || (d.count == 1 && d.stride[0] == 1)) {
		t->offset += first * size;
		return NULL;
	}
	if ((wrong = find_lines(&d, &l)))
		return wrong;
	for (uint32_t i = 0; i < d.count; i++)
		if (!xfp_mul(count, d.size[i], &count) || count > MOST_PARTS || count > *parts)
			return "is a view in too many pieces, which is not supported: " CLONE;
	*parts -= count;
	/* Of repeated pieces, elements would be more than there are. */
	if (elements > storage->bytes / size)
		return "has more elements than its storage" AGAIN;
	if (!(t->recipe = make_recipe(t, &l, &d, count, first, size))) {
		*failed = true;
		return "out of memory";
	}
	t->offset = t->recipe->parts[0].components[0].offset;
	return NULL;
}
