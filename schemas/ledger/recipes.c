/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/ledger/recipes.h"

#include <stdlib.h>
#include <string.h>

#include "schemas/h5.h"

/* ---- reading ----------------------------------------------------------------------------------- */

/* The number of records of a slice in memory, including those between ranges that were joined. */
static size_t slice_elements(const struct xfp_ledger_slice *slice)
{
	return slice->ranges ? slice->at[slice->ranges] : 0;
}

/* Read records that others refer to; takes ownership of `wanted`. */
static enum xfp_status read_referred(struct xfp_artifact *a, const uint64_t *total, struct xfp_ledger_slice *slice,
				     enum xfp_ledger_table table, struct xfp_range *wanted, size_t count,
				     struct xfp_error *err)
{
	if (!wanted)
		return xfp_no_memory_for(err, a->path);
	return xfp_slice_read(a, table, total[table], wanted, count, &slice[table], err);
}

enum xfp_status xfp_recipes_read(struct xfp_artifact *a, const uint64_t *total, struct xfp_ledger_slice *slice,
				 const uint64_t *tensors, uint32_t tensor_count, struct xfp_error *err)
{
	struct xfp_range *wanted = calloc(tensor_count + (size_t)1, sizeof *wanted);
	const struct xfp_ledger_slice *recipes = &slice[XFP_LEDGER_RECIPES], *parts = &slice[XFP_LEDGER_PARTS];
	enum xfp_status status;
	size_t count = 0, part_count;

	for (uint32_t i = 0; wanted && i < tensor_count; i++) {
		const struct xfp_tensor_record *t = xfp_ledger_slice_at(&slice[XFP_LEDGER_TENSORS], tensors[i]);

		if (t->recipe != XFP_NO_RECIPE)
			wanted[count++] = (struct xfp_range){ t->recipe, 1 };
	}
	if ((status = read_referred(a, total, slice, XFP_LEDGER_RECIPES, wanted, count, err)))
		return status;
	count = slice_elements(recipes);
	if ((wanted = calloc(count + 1, sizeof *wanted)))
		for (size_t i = 0; i < count; i++) {
			const struct xfp_recipe_record *one = (const struct xfp_recipe_record *)recipes->data + i;

			wanted[i] = (struct xfp_range){ one->first_part, one->parts };
		}
	if ((status = read_referred(a, total, slice, XFP_LEDGER_PARTS, wanted, count, err)))
		return status;
	part_count = slice_elements(parts);
	if ((wanted = calloc(part_count + 1, sizeof *wanted)))
		for (size_t i = 0; i < part_count; i++) {
			const struct xfp_part_record *one = (const struct xfp_part_record *)parts->data + i;

			wanted[i] = (struct xfp_range){ one->first_component, one->components };
		}
	return read_referred(a, total, slice, XFP_LEDGER_COMPONENTS, wanted, part_count, err);
}

/* ---- from records to recipes ------------------------------------------------------------------- */

/* Whether a range of a table is valid and has been read. */
static bool has_range(const uint64_t *total, enum xfp_ledger_table table, uint64_t first, uint64_t count)
{
	return count <= total[table] && first <= total[table] - count;
}

static enum xfp_status build_part(struct xfp_artifact *a, const uint64_t *total, const struct xfp_ledger_slice *slice,
				  uint64_t number, struct xfp_recipe_part *to, struct xfp_error *err)
{
	const struct xfp_part_record *from = xfp_ledger_slice_at(&slice[XFP_LEDGER_PARTS], number);

	if (from->codec >= XFP_CODECS || !from->components || from->components > XFP_MAX_COMPONENTS ||
	    !has_range(total, XFP_LEDGER_COMPONENTS, from->first_component, from->components))
		return xfp_h5_damaged(a, err, "impossible part %llu", (unsigned long long)number);
	*to = (struct xfp_recipe_part){
		.codec = from->codec, .version = from->version, .rows = from->rows, .cols = from->cols
	};
	memcpy(to->parameters, from->parameters, sizeof to->parameters);
	if (!(to->components = calloc(from->components, sizeof *to->components)))
		return xfp_no_memory_for(err, a->path);
	for (; to->component_count < from->components; to->component_count++) {
		uint64_t at = from->first_component + to->component_count;
		const struct xfp_component_record *c = xfp_ledger_slice_at(&slice[XFP_LEDGER_COMPONENTS], at);

		if (c->role >= XFP_COMPONENTS || c->dtype >= XFP_DTYPES || c->file >= total[XFP_LEDGER_FILES])
			return xfp_h5_damaged(a, err, "impossible component %llu", (unsigned long long)at);
		to->components[to->component_count] =
			(struct xfp_component){ c->role, c->dtype, (uint32_t)c->file, c->offset, c->bytes };
	}
	return XFP_OK;
}

enum xfp_status xfp_recipe_build(struct xfp_artifact *a, const uint64_t *total, const struct xfp_ledger_slice *slice,
				 uint64_t number, struct xfp_recipe **out, struct xfp_error *err)
{
	const struct xfp_recipe_record *from;
	struct xfp_recipe *to;
	enum xfp_status status = XFP_OK;

	if (number == XFP_NO_RECIPE)
		return XFP_OK;
	if (!has_range(total, XFP_LEDGER_RECIPES, number, 1))
		return xfp_h5_damaged(a, err, "reference outside \"recipes\"");
	from = xfp_ledger_slice_at(&slice[XFP_LEDGER_RECIPES], number);
	if (!from->parts || from->beside > 1 || !has_range(total, XFP_LEDGER_PARTS, from->first_part, from->parts))
		return xfp_h5_damaged(a, err, "impossible recipe %llu", (unsigned long long)number);
	if (!(to = *out = calloc(1, sizeof *to)) || !(to->parts = calloc(from->parts, sizeof *to->parts)))
		return xfp_no_memory_for(err, a->path);
	to->rows = from->rows;
	to->cols = from->cols;
	to->transposed = from->transposed;
	to->outer = from->outer;
	to->inner = from->inner;
	to->beside = from->beside != 0;
	for (uint64_t i = 0; !status && i < from->parts; i++)
		status = build_part(a, total, slice, from->first_part + i, &to->parts[to->part_count++], err);
	return status;
}
