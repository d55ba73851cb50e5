/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recipe.c - build the tables of an index from a recipe.
 */
#include "tests/fuzz/recipe.h"

#include <string.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "schemas/layout/classes.h"

static uint64_t shifted(uint64_t value, uint8_t shift)
{
	return shift > 192 ? value << (shift - 192) : value;
}

static bool add_part(struct fuzz_bundle *b, uint32_t number, unsigned kind, uint64_t size)
{
	b->parts[b->count[XFP_TABLE_PARTS]++] =
		(struct xfp_idx_part){ .number = number, .kind = (uint8_t)kind, .size = size };
	b->huge = b->huge || size > FUZZ_WRITTEN;
	return size <= FUZZ_MAX_BYTES;
}

/* ---- units ------------------------------------------------------------------------------------- */

static uint64_t outliers_of(const struct fuzz_unit *item, const struct xfp_idx_unit *unit)
{
	uint64_t weights = unit->rows * unit->cols,
		 wanted[] = { 0, unit->rows / 2, unit->rows, 2 * unit->rows, weights };
	uint64_t count = wanted[(item->flags >> 4) % 5];

	return count < weights ? count : weights;
}

static bool shape_unit(struct fuzz_bundle *b, const struct fuzz_unit *item, uint32_t u)
{
	struct xfp_idx_unit *unit = &b->units[u];
	uint64_t size;

	*unit = (struct xfp_idx_unit){ .class_ = item->class_ % XFP_CLASSES,
				       .mode = item->mode % XFP_MODES,
				       .met = item->flags >> 3 & 1,
				       .dtype = item->dtype % (XFP_BF16 + 1),
				       .experts = 1u + item->experts % FUZZ_EXPERTS,
				       .first_matrix = b->count[XFP_TABLE_MATRICES],
				       .rows = shifted(item->rows, item->rows_shift),
				       .cols = shifted(xfp_load16(item->cols), item->cols_shift),
				       .cos_median = 0.99,
				       .cos_p5 = 0.98,
				       .error = 0.01,
				       .floor = 0.9 };
	if (u && item->flags & FUZZ_FUSED) {
		unit->rows = b->units[u - 1].rows;
		unit->cols = b->units[u - 1].cols;
		unit->dtype = b->units[u - 1].dtype;
		unit->experts = b->units[u - 1].experts;
	}
	if (unit->mode >= XFP_MODE_V2)
		unit->k = 2 + item->k % 5;
	if (unit->mode == XFP_MODE_V2A) {
		unit->group = 4 + item->group % 7;
		unit->library = item->library % 9;
	} else if (unit->mode == XFP_MODE_V2C) {
		unit->group = 4 + item->group % 3;
		unit->library = 2 + item->library % 3;
	}
	return unit->cols <= FUZZ_MAX_BYTES && xfp_mul(unit->rows, unit->cols + 1, &size) && size <= FUZZ_MAX_BYTES * 4;
}

/* The tensor of a unit: [experts, rows, cols], or transposed, or the previous unit's tensor extended by as much. */
static uint32_t unit_tensor(struct fuzz_bundle *b, const struct fuzz_unit *item, uint32_t u)
{
	const struct xfp_idx_unit *unit = &b->units[u];
	uint32_t t = b->count[XFP_TABLE_TENSORS];
	bool across = item->flags & FUZZ_TRANSPOSED;

	if (u && item->flags & FUZZ_FUSED) {
		b->tensors[t - 1].shape[0] += unit->experts;
		return t - 1;
	}
	b->tensors[t] =
		(struct xfp_idx_tensor){ .class_ = unit->class_,
					 .dtype = unit->dtype,
					 .fate = unit->mode == XFP_MODE_KEEP ? XFP_FATE_KEPT : XFP_FATE_QUANTIZED,
					 .rank = 3,
					 .part = XFP_NONE,
					 .tied = XFP_NONE,
					 .shape = { unit->experts, across ? unit->cols : unit->rows,
						    across ? unit->rows : unit->cols } };
	b->count[XFP_TABLE_TENSORS]++;
	return t;
}

static bool add_unit(struct fuzz_bundle *b, const struct fuzz_unit *item)
{
	uint32_t u = b->count[XFP_TABLE_UNITS];
	struct xfp_idx_unit *unit = &b->units[u];
	uint64_t bytes[XFP_PARTS], own[XFP_PARTS], size;
	uint32_t t;

	if (!shape_unit(b, item, u))
		return false;
	t = unit_tensor(b, item, u);
	size = unit->rows * unit->cols;
	if (!xfp_unit_part_bytes(unit, item->flags & FUZZ_BALANCED, bytes))
		return false;
	for (uint32_t e = 0; e < unit->experts; e++) {
		struct xfp_idx_matrix *matrix = &b->matrices[b->count[XFP_TABLE_MATRICES]++];
		bool last = e + 1 == unit->experts;

		*matrix = (struct xfp_idx_matrix){ .unit = u,
						   .expert = e,
						   .mode = unit->mode,
						   .k = unit->k,
						   .tensor = t,
						   .row_stride = unit->cols,
						   .col_stride = 1,
						   .base = (b->tensors[t].shape[0] - unit->experts + e) * size };
		if (unit->mode == XFP_MODE_V2 && !last)
			matrix->k = 2 + (item->k + e) % (unit->k - 1u);
		if (unit->mode >= XFP_MODE_V2) {
			matrix->exponent = (int16_t)(item->exponent * 2 - 250);
			if (matrix->exponent > XFP_MAX_EXPONENT)
				matrix->exponent = 0;
			matrix->outliers = last ? outliers_of(item, unit) : 0;
		}
		if (item->flags & FUZZ_TRANSPOSED) {
			matrix->row_stride = 1;
			matrix->col_stride = unit->rows;
		}
		if (!xfp_matrix_part_bytes(unit, matrix, own))
			return false;
		for (int p = 0; p < XFP_PARTS; p++) {
			matrix->offset[p] = own[p] ? bytes[p] : 0;
			bytes[p] += own[p];
		}
		unit->outliers += matrix->outliers;
	}
	for (unsigned p = 0; p < XFP_PARTS; p++) {
		unit->part[p] = bytes[p] ? b->count[XFP_TABLE_PARTS] : XFP_NONE;
		unit->bytes += bytes[p];
		if (bytes[p] && !add_part(b, u, p, bytes[p]))
			return false;
	}
	b->header.weights += unit->experts * size;
	b->wrong = b->wrong || !size;
	b->count[XFP_TABLE_UNITS]++;
	return true;
}

/* ---- tensors and files ------------------------------------------------------------------------- */

static bool add_tensor(struct fuzz_bundle *b, const struct fuzz_tensor *item)
{
	struct xfp_idx_tensor *tensor = &b->tensors[b->count[XFP_TABLE_TENSORS]];
	uint32_t before = b->count[XFP_TABLE_TENSORS]++;
	uint64_t elements = 1;

	*tensor = (struct xfp_idx_tensor){ .class_ = item->class_ % XFP_CLASSES,
					   .dtype = item->dtype % XFP_DTYPES,
					   .fate = XFP_FATE_KEPT,
					   .rank = item->rank % 9,
					   .part = XFP_NONE,
					   .tied = XFP_NONE };
	if (item->fate % 3 == 1)
		tensor->fate = XFP_FATE_DROPPED;
	if (item->fate % 3 == 2 && before && b->tensors[item->tied % before].fate <= XFP_FATE_KEPT) {
		*tensor = b->tensors[item->tied % before];
		tensor->fate = XFP_FATE_TIED;
		tensor->part = XFP_NONE;
		tensor->tied = item->tied % before;
		memset(tensor->source, 0, sizeof tensor->source);
		return true;
	}
	for (unsigned i = 0; i < tensor->rank; i++)
		tensor->shape[i] = item->dim[i] == 255 ? 0 : 1u + item->dim[i] % 8;
	if (tensor->rank)
		tensor->shape[0] = shifted(tensor->shape[0], item->shift);
	if (tensor->rank && xfp_dtype_bits(tensor->dtype) % 8) /* whole bytes */
		tensor->shape[0] *= 4;
	else if (!tensor->rank && xfp_dtype_bits(tensor->dtype) % 8)
		tensor->dtype = XFP_U8;
	for (unsigned i = 0; i < tensor->rank; i++)
		if (!xfp_mul(elements, tensor->shape[i], &elements))
			return false;
	if (elements > FUZZ_MAX_BYTES)
		return false;
	if (tensor->fate == XFP_FATE_DROPPED)
		return true;
	tensor->part = b->count[XFP_TABLE_PARTS];
	tensor->source[0] = 1;
	return add_part(b, before, XFP_PARTS, elements * xfp_dtype_bits(tensor->dtype) / 8);
}

static bool add_file(struct fuzz_bundle *b, const struct fuzz_file *item)
{
	struct xfp_idx_file *file = &b->files[b->count[XFP_TABLE_FILES]++];

	*file = (struct xfp_idx_file){ .size = shifted(xfp_load16(item->bytes) % 2048, item->shift) };
	b->huge = b->huge || file->size > FUZZ_WRITTEN;
	return file->size <= FUZZ_MAX_BYTES;
}

/* Records that nothing refers to. */
static void add_surplus(struct fuzz_bundle *b, uint8_t what)
{
	if (what & FUZZ_MORE_MATRICES)
		b->matrices[b->count[XFP_TABLE_MATRICES]++] = (struct xfp_idx_matrix){ 0 };
	if (what & FUZZ_MORE_PARTS)
		add_part(b, 0, XFP_PARTS, 100);
	if (what & FUZZ_MORE_STRINGS)
		b->count[XFP_TABLE_STRINGS]++;
	b->wrong = b->wrong || what & (FUZZ_MORE_MATRICES | FUZZ_MORE_PARTS | FUZZ_MORE_STRINGS);
}

struct image_tables fuzz_tables(struct fuzz_bundle *b)
{
	struct image_tables tables = {
		.header = &b->header,
		.units = b->units,
		.matrices = b->matrices,
		.parts = b->parts,
		.tensors = b->tensors,
		.files = b->files,
		.strings = b->strings,
		.json_bytes = b->json_bytes,
	};

	memcpy(tables.count, b->count, sizeof tables.count);
	return tables;
}

union item {
	uint8_t bytes[FUZZ_ITEM];
	struct fuzz_unit unit;
	struct fuzz_tensor tensor;
	struct fuzz_file file;
	struct fuzz_patch patch;
};

/* Returns false if it does not fit or would be too large; it may then be partly written. */
static bool add_item(struct fuzz_bundle *b, const union item *item, uint32_t *raw)
{
	switch (item->bytes[0] % FUZZ_KINDS) {
	case FUZZ_UNIT:
		b->names[XFP_TABLE_UNITS][b->count[XFP_TABLE_UNITS]] = item->unit.name;
		return b->count[XFP_TABLE_UNITS] < FUZZ_UNITS && add_unit(b, &item->unit);
	case FUZZ_TENSOR:
		b->names[XFP_TABLE_TENSORS][b->count[XFP_TABLE_TENSORS]] = item->tensor.name;
		if (*raw == FUZZ_RAW || !add_tensor(b, &item->tensor))
			return false;
		++*raw;
		return true;
	case FUZZ_FILE:
		b->names[XFP_TABLE_FILES][b->count[XFP_TABLE_FILES]] = item->file.name;
		return b->count[XFP_TABLE_FILES] < FUZZ_FILES && add_file(b, &item->file);
	default:
		if (b->patch_count == FUZZ_PATCHES)
			return false;
		b->patches[b->patch_count++] = item->patch;
		return true;
	}
}

void fuzz_read_recipe(const uint8_t *recipe, size_t size, struct fuzz_bundle *b)
{
	uint8_t head[FUZZ_ITEM] = { 0 };
	struct image_tables tables;
	uint32_t raw = 0;

	memset(b, 0, sizeof *b);
	if (size)
		memcpy(head, recipe, size < FUZZ_ITEM ? size : FUZZ_ITEM);
	b->seed = xfp_load64(head + 1);
	b->json_bytes = 1 + xfp_load16(head + 9) % 1500; /* JSON is never empty */
	for (int kind = 0; kind < FUZZ_KINDS; kind++) {
		for (size_t at = FUZZ_ITEM; at < size; at += FUZZ_ITEM) {
			struct fuzz_bundle before = *b;
			union item item = { .bytes = { 0 } };

			memcpy(&item, recipe + at, size - at < FUZZ_ITEM ? size - at : FUZZ_ITEM);
			if (item.bytes[0] % FUZZ_KINDS == kind && !add_item(b, &item, &raw))
				*b = before;
		}
	}
	fuzz_add_strings(b);
	add_surplus(b, head[11]);
	tables = fuzz_tables(b);
	image_make_header(&tables);
}
