/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/many_members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "schemas/layout/classes.h"
#include "tests/unit/bundle_image.h"

#define K 4

static void *some(size_t count, size_t bytes)
{
	void *buffer = calloc(count + 1, bytes);

	if (!buffer)
		abort();
	return buffer;
}

static struct xfp_idx_string add_string(struct image_tables *t, const char *text)
{
	uint32_t *end = &t->count[XFP_TABLE_STRINGS];
	struct xfp_idx_string string = { *end, (uint32_t)strlen(text) };

	memcpy(t->strings + *end, text, string.length + (size_t)1);
	*end += string.length + 1;
	return string;
}

static struct xfp_idx_string add_name(struct image_tables *t, const struct many *many, uint32_t number, uint32_t of)
{
	char *name = some(many->prefix + 80, 1);
	struct xfp_idx_string string;

	memset(name, 'p', many->prefix);
	snprintf(name + many->prefix, 80, "model.layers.%06u.mlp.experts.*.gate_proj.weight",
		 (unsigned)(many->backwards ? of - number : number));
	string = add_string(t, name);
	free(name);
	return string;
}

static uint32_t add_part(struct image_tables *t, uint32_t number, unsigned kind, uint64_t size)
{
	t->parts[t->count[XFP_TABLE_PARTS]] =
		(struct xfp_idx_part){ .number = number, .kind = (uint8_t)kind, .size = size };
	return t->count[XFP_TABLE_PARTS]++;
}

static void add_unit(struct image_tables *t, const struct many *many, uint32_t u)
{
	struct xfp_idx_unit *unit = &t->units[u];
	uint64_t bytes[XFP_PARTS], own[XFP_PARTS];

	*unit = (struct xfp_idx_unit){ .class_ = XFP_CLASS_ROUTED_EXPERT,
				       .mode = XFP_MODE_V2,
				       .k = K,
				       .dtype = XFP_BF16,
				       .experts = many->experts,
				       .first_matrix = u * many->experts,
				       .rows = many->rows,
				       .cols = many->cols,
				       .name = t->units[u].name,
				       .role = t->units[u].role };
	xfp_unit_part_bytes(unit, true, bytes);
	for (uint32_t e = 0; e < many->experts; e++) {
		struct xfp_idx_matrix *matrix = &t->matrices[t->count[XFP_TABLE_MATRICES]++];

		*matrix = (struct xfp_idx_matrix){ .unit = u,
						   .expert = e,
						   .mode = XFP_MODE_V2,
						   .k = K,
						   .tensor = u,
						   .base = e * many->rows * many->cols,
						   .row_stride = many->cols,
						   .col_stride = 1,
						   .outliers = many->cols ? many->rows / 2 : 0 };
		xfp_matrix_part_bytes(unit, matrix, own);
		for (int p = 0; p < XFP_PARTS; p++) {
			matrix->offset[p] = own[p] ? bytes[p] : 0;
			bytes[p] += own[p];
		}
		unit->outliers += matrix->outliers;
	}
	for (unsigned p = 0; p < XFP_PARTS; p++) {
		unit->part[p] = bytes[p] ? add_part(t, u, p, bytes[p]) : XFP_NONE;
		unit->bytes += bytes[p];
	}
	t->header->weights += many->experts * many->rows * many->cols;
}

static void add_tensors(struct image_tables *t, const struct many *many)
{
	uint32_t count = t->count[XFP_TABLE_TENSORS];

	for (uint32_t i = 0; i < count; i++) {
		struct xfp_idx_tensor *tensor = &t->tensors[i];

		*tensor = (struct xfp_idx_tensor){ .dtype = XFP_BF16,
						   .fate = XFP_FATE_QUANTIZED,
						   .rank = 3,
						   .shape = { many->experts, many->rows, many->cols },
						   .part = XFP_NONE,
						   .tied = XFP_NONE };
		if (i >= many->units) {
			tensor->fate = XFP_FATE_KEPT;
			tensor->rank = 1;
			tensor->shape[1] = tensor->shape[2] = 0;
			tensor->shape[0] = many->cols;
			tensor->part = add_part(t, i, XFP_PARTS, many->cols * 2);
		}
		tensor->name = add_name(t, many, i, count);
		tensor->reason = add_string(t, "by the test");
	}
}

uint32_t many_members(int file, const struct many *many, uint64_t *index_bytes)
{
	uint32_t tensors = many->units + many->tensors;
	struct xfp_idx_header header = { 0 };
	struct image_tables t = {
		.header = &header,
		.units = some(many->units, sizeof *t.units),
		.matrices = some((size_t)many->units * many->experts, sizeof *t.matrices),
		.parts = some((size_t)many->units * XFP_PARTS + many->tensors, sizeof *t.parts),
		.tensors = some(tensors, sizeof *t.tensors),
		.strings = some((size_t)(many->units + tensors + 1) * (many->prefix + 100), 1),
		.count = { [XFP_TABLE_UNITS] = many->units, [XFP_TABLE_TENSORS] = tensors },
		.json_bytes = 1000,
	};
	struct image image;

	header.family = add_string(&t, "test");
	for (uint32_t u = 0; u < many->units; u++) {
		t.units[u].name = add_name(&t, many, u, tensors);
		t.units[u].role = add_string(&t, "gate");
	}
	for (uint32_t u = 0; u < many->units; u++)
		add_unit(&t, many, u);
	add_tensors(&t, many);
	image_make_header(&t);
	if (!image_find_places(&t, UINT64_MAX, &image) || !image_map(&image, file))
		abort();
	image_write_json(&t, &image);
	image_write_index(&t, &image);
	image_write_sum(image.map, image.bytes, t.json_bytes, image.idx, image.idx_bytes);
	*index_bytes = header.index_bytes;
	image_free(&image);
	free(t.units);
	free(t.matrices);
	free(t.parts);
	free(t.tensors);
	free(t.strings);
	return t.count[XFP_TABLE_PARTS];
}
