/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c - information about the contents of an open bundle.
 */
#include <string.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/sha256.h"
#include "runtime/bundle_map.h"
#include "runtime/digest.h"
#include "schemas/layout/classes.h"

const char *xfp_version(void)
{
	return PACKAGE_VERSION;
}

void xfp_bundle_describe(const struct xfp_bundle *bundle, struct xfp_bundle_info *info)
{
	*info = (struct xfp_bundle_info){
		.version = bundle->header->version,
		.family = xfp_bundle_string(bundle, bundle->header->family),
		.json = bundle->json,
		.json_bytes = (size_t)bundle->json_bytes,
		.file_bytes = bundle->bytes,
		.weights = bundle->header->weights,
		.units = xfp_bundle_count(bundle, XFP_TABLE_UNITS),
		.matrices = xfp_bundle_count(bundle, XFP_TABLE_MATRICES),
		.tensors = xfp_bundle_count(bundle, XFP_TABLE_TENSORS),
		.files = xfp_bundle_count(bundle, XFP_TABLE_FILES),
		.path = bundle->path,
	};
}

void xfp_bundle_index_digest(const struct xfp_bundle *bundle, char hex[65])
{
	uint8_t digest[32];

	xfp_sha256(bundle->index, bundle->idx_bytes, digest);
	xfp_hex(digest, sizeof digest, hex);
}

static bool has_library(const struct xfp_idx_unit *unit)
{
	return unit->mode == XFP_MODE_V2A || unit->mode == XFP_MODE_V2C;
}

static uint32_t group_size(const struct xfp_idx_unit *unit)
{
	return has_library(unit) ? 1u << unit->group : 0;
}

static uint32_t library_size(const struct xfp_idx_unit *unit)
{
	return has_library(unit) ? 1u << unit->library : 0;
}

bool xfp_bundle_unit(const struct xfp_bundle *bundle, uint32_t number, struct xfp_unit_info *info)
{
	const struct xfp_idx_unit *unit;

	if (number >= xfp_bundle_count(bundle, XFP_TABLE_UNITS))
		return false;
	unit = &bundle->units[number];
	*info = (struct xfp_unit_info){
		.name = xfp_bundle_string(bundle, unit->name),
		.role = xfp_bundle_string(bundle, unit->role),
		.class_name = xfp_class_name(unit->class_),
		.mode_name = xfp_mode_name(unit->mode),
		.dtype_name = xfp_dtype_name(unit->dtype),
		.class_ = unit->class_,
		.mode = unit->mode,
		.dtype = unit->dtype,
		.k = unit->k,
		.met = unit->met,
		.group_size = group_size(unit),
		.library_size = library_size(unit),
		.experts = unit->experts,
		.first_matrix = unit->first_matrix,
		.rows = unit->rows,
		.cols = unit->cols,
		.weights = unit->experts * unit->rows * unit->cols,
		.bytes = unit->bytes,
		.outliers = unit->outliers,
		.cos_median = unit->cos_median,
		.cos_p5 = unit->cos_p5,
		.error = unit->error,
		.floor = unit->floor,
	};
	return true;
}

bool xfp_bundle_matrix(const struct xfp_bundle *bundle, uint32_t number, struct xfp_matrix_info *info)
{
	const struct xfp_idx_matrix *matrix;
	const struct xfp_idx_unit *unit;
	const uint8_t *at[XFP_PARTS] = { NULL };
	uint64_t bytes[XFP_PARTS], shared[XFP_PARTS];

	if (number >= xfp_bundle_count(bundle, XFP_TABLE_MATRICES))
		return false;
	matrix = &bundle->matrices[number];
	unit = &bundle->units[matrix->unit];
	if (!xfp_matrix_part_bytes(unit, matrix, bytes) ||
	    !xfp_unit_part_bytes(unit, unit->part[XFP_PART_BALANCE] != XFP_NONE, shared))
		return false;
	for (int p = 0; p < XFP_PARTS; p++)
		if ((bytes[p] += shared[p]))
			at[p] = bundle->map + bundle->parts[unit->part[p]].offset + matrix->offset[p];
	*info = (struct xfp_matrix_info){
		.unit = matrix->unit,
		.expert = matrix->expert,
		.tensor = matrix->tensor,
		.base = matrix->base,
		.row_stride = matrix->row_stride,
		.col_stride = matrix->col_stride,
		.rows = unit->rows,
		.cols = unit->cols,
		.mode = matrix->mode,
		.k = matrix->k,
		.group_size = group_size(unit),
		.library_size = library_size(unit),
		.exponent = matrix->exponent,
		.outliers = matrix->outliers,
		.source = matrix->source,
		.index = at[XFP_PART_INDEX],
		.index_bytes = bytes[XFP_PART_INDEX],
		.code = at[XFP_PART_CODE],
		.code_bytes = bytes[XFP_PART_CODE],
		.group = at[XFP_PART_GROUP],
		.group_bytes = bytes[XFP_PART_GROUP],
		.balance = at[XFP_PART_BALANCE],
		.balance_bytes = bytes[XFP_PART_BALANCE],
		.outlier = at[XFP_PART_OUTLIER],
		.outlier_bytes = bytes[XFP_PART_OUTLIER],
	};
	return true;
}

bool xfp_bundle_tensor(const struct xfp_bundle *bundle, uint32_t number, struct xfp_tensor_info *info)
{
	const struct xfp_idx_tensor *tensor;

	if (number >= xfp_bundle_count(bundle, XFP_TABLE_TENSORS))
		return false;
	tensor = &bundle->tensors[number];
	*info = (struct xfp_tensor_info){
		.name = xfp_bundle_string(bundle, tensor->name),
		.reason = xfp_bundle_string(bundle, tensor->reason),
		.class_name = xfp_class_name(tensor->class_),
		.dtype_name = xfp_dtype_name(tensor->dtype),
		.fate_name = xfp_fate_name(tensor->fate),
		.class_ = tensor->class_,
		.dtype = tensor->dtype,
		.fate = tensor->fate,
		.rank = tensor->rank,
		.elements = 1,
		.tied = tensor->tied,
	};
	memcpy(info->shape, tensor->shape, sizeof info->shape);
	for (unsigned i = 0; i < tensor->rank; i++)
		info->elements *= tensor->shape[i];
	if (tensor->part != XFP_NONE) {
		info->data = bundle->map + bundle->parts[tensor->part].offset;
		info->bytes = bundle->parts[tensor->part].size;
		info->source = tensor->source;
	}
	return true;
}

bool xfp_bundle_file(const struct xfp_bundle *bundle, uint32_t number, struct xfp_file_info *info)
{
	const struct xfp_idx_file *file;

	if (number >= xfp_bundle_count(bundle, XFP_TABLE_FILES))
		return false;
	file = &bundle->files[number];
	*info = (struct xfp_file_info){ .name = xfp_bundle_string(bundle, file->name),
					.data = bundle->map + file->offset,
					.bytes = file->size };
	return true;
}

static uint32_t find(const struct xfp_named *names, uint32_t count, const char *name, const char *role)
{
	const struct xfp_named wanted = { name, role, 0 };
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = xfp_named_compare(&wanted, &names[middle]);

		if (!order)
			return names[middle].number;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return XFP_NOT_FOUND;
}

uint32_t xfp_bundle_find_unit(const struct xfp_bundle *bundle, const char *name, const char *role)
{
	return find(bundle->unit_names, xfp_bundle_count(bundle, XFP_TABLE_UNITS), name, role);
}

uint32_t xfp_bundle_find_tensor(const struct xfp_bundle *bundle, const char *name)
{
	return find(bundle->tensor_names, xfp_bundle_count(bundle, XFP_TABLE_TENSORS), name, NULL);
}

uint32_t xfp_bundle_find_file(const struct xfp_bundle *bundle, const char *name)
{
	return find(bundle->file_names, xfp_bundle_count(bundle, XFP_TABLE_FILES), name, NULL);
}
