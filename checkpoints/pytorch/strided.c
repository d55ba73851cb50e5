/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/pytorch/strided.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "schemas/recipe/recipe.h"

#define MAX_PARTS 1024u /* maximum parts per tensor */
#define AGAIN "; the file is damaged: download it again"
#define CLONE "save it with .clone() or .contiguous()"

/* Dimensions with more than one element, outermost first. */
struct dimensions {
	uint32_t count;
	uint64_t size[XFP_MAX_RANK], stride[XFP_MAX_RANK];
};

/* Return the first `rank` dimensions of a tensor. */
static struct dimensions outer_of(const struct xfp_source_tensor *t, const uint64_t stride[XFP_MAX_RANK], uint32_t rank)
{
	struct dimensions d = { 0 };

	for (uint32_t i = 0; i < rank; i++)
		if (t->shape[i] > 1) {
			d.size[d.count] = t->shape[i];
			d.stride[d.count++] = stride[i];
		}
	return d;
}

/* Return whether elements are contiguous. */
static bool is_contiguous(const struct dimensions *d)
{
	uint64_t step = 1;

	for (uint32_t i = d->count; i--; step *= d->size[i])
		if (d->stride[i] != step)
			return false;
	return true;
}

/* Compute the element after the last; returns false on overflow. */
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

/* A matrix of stored rows, which are the tensor's last dimension or the one before it, so that matrices of the last two
 * dimensions can be read as well. */
struct lines {
	uint64_t rows, cols, pitch;
	uint64_t transposed;
};

/* Merge contiguous dimensions of a tensor with more than two, for example a channels-last convolution: use the two
 * innermost that remain, one of which is that of columns. The tensor can only be read as a whole. */
static bool find_merged(const struct xfp_source_tensor *t, const uint64_t stride[XFP_MAX_RANK],
			struct dimensions *outer, struct lines *l)
{
	struct dimensions all = outer_of(t, stride, t->rank), d = { 0 };
	uint32_t last;

	for (uint32_t i = 0; i < all.count; i++) {
		uint64_t step;

		last = d.count - 1;
		if (d.count && xfp_mul(all.stride[i], all.size[i], &step) && step == d.stride[last]) {
			d.size[last] *= all.size[i];
			d.stride[last] = all.stride[i];
			continue;
		}
		d.size[d.count] = all.size[i];
		d.stride[d.count++] = all.stride[i];
	}
	last = d.count - 1;
	if (t->rank < 3 || d.count < 2 || d.stride[last - 1] != 1 || d.stride[last] < d.size[last - 1])
		return false;
	*l = (struct lines){ d.size[last], d.size[last - 1], d.stride[last], d.size[last] };
	*outer = d;
	outer->count -= 2;
	return true;
}

/* Find the matrix; `outer` keeps the other dimensions. */
static const char *find_lines(const struct xfp_source_tensor *t, const uint64_t stride[XFP_MAX_RANK],
			      struct dimensions *outer, struct lines *l)
{
	uint64_t high = t->rank > 1 ? t->shape[t->rank - 2] : 1, wide = t->shape[t->rank - 1];
	uint64_t down = high > 1 ? stride[t->rank - 2] : wide, across = wide > 1 ? stride[t->rank - 1] : 1;

	for (uint32_t i = 0; i < outer->count; i++)
		if (!outer->stride[i])
			return "repeats elements of its storage, which is not supported: " CLONE;
	*outer = outer_of(t, stride, t->rank > 1 ? t->rank - 2 : 0);
	if (across == 1)
		*l = (struct lines){ high, wide, high > 1 ? down : wide, 0 };
	else if (high == 1)
		*l = (struct lines){ wide, 1, across, 0 };
	else if (down == 1)
		*l = (struct lines){ wide, high, across, wide };
	else if (!find_merged(t, stride, outer, l))
		return "selects single elements of its storage, which is not supported: " CLONE;
	if (l->pitch < l->cols)
		return "has rows that overlap, which is not supported: " CLONE;
	/* Matrices at the same distance as rows are merged to one. */
	while (outer->count && l->rows <= UINT64_MAX / l->pitch &&
	       outer->stride[outer->count - 1] == l->rows * l->pitch)
		l->rows *= outer->size[--outer->count];
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
	recipe->transposed = l->transposed;
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
	d = outer_of(t, stride, t->rank);
	if (!end_of(&d, first, &end) || end > storage->bytes / size)
		return "reaches past the end of its storage" AGAIN;
	t->bytes = elements * size;
	if (is_contiguous(&d)) {
		t->offset += first * size;
		return NULL;
	}
	if ((wrong = find_lines(t, stride, &d, &l)))
		return wrong;
	for (uint32_t i = 0; i < d.count; i++)
		if (!xfp_mul(count, d.size[i], &count) || count > MAX_PARTS || count > *parts)
			return "is a view in too many pieces, which is not supported: " CLONE;
	*parts -= count;
	/* Repeated pieces could have more elements than the storage. */
	if (elements > storage->bytes / size)
		return "has more elements than its storage" AGAIN;
	if (!(t->recipe = make_recipe(t, &l, &d, count, first, size))) {
		*failed = true;
		return "out of memory";
	}
	t->offset = t->recipe->parts[0].components[0].offset;
	return NULL;
}
