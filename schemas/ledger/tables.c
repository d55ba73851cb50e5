/* SPDX-License-Identifier: Apache-2.0 */
#include "schemas/ledger/tables.h"

#include <stdbool.h>
#include <stddef.h>

enum column_kind { END, U32, U64, I64, TEXT, SHAPE, PARAMETERS };

struct table_member {
	const char *name;
	size_t offset;
	enum column_kind kind;
};

#define AT(record, field) offsetof(struct xfp_##record##_record, field)

/* clang-format off */
static const struct table_member file_members[] = {
	{ "name", AT(file, name), TEXT },         { "path", AT(file, path), TEXT },
	{ "device", AT(file, device), U64 },      { "inode", AT(file, inode), U64 },
	{ "size", AT(file, size), U64 },          { "mtime_ns", AT(file, mtime_ns), I64 },
	{ "ctime_ns", AT(file, ctime_ns), I64 },  { NULL, 0, END },
};
static const struct table_member tensor_members[] = {
	{ "name", AT(tensor, name), TEXT },       { "reason", AT(tensor, reason), TEXT },
	{ "dtype", AT(tensor, dtype), U32 },      { "class", AT(tensor, class_), U32 },
	{ "fate", AT(tensor, fate), U32 },        { "rank", AT(tensor, rank), U32 },
	{ "shape", AT(tensor, shape), SHAPE },    { "file", AT(tensor, file), U32 },
	{ "tied", AT(tensor, tied), U32 },        { "offset", AT(tensor, offset), U64 },
	{ "bytes", AT(tensor, bytes), U64 },      { "recipe", AT(tensor, recipe), U64 },
	{ NULL, 0, END },
};
static const struct table_member recipe_members[] = {
	{ "rows", AT(recipe, rows), U64 },        { "cols", AT(recipe, cols), U64 },
	{ "turned", AT(recipe, transposed), U64 },    { "outer", AT(recipe, outer), U64 },
	{ "inner", AT(recipe, inner), U64 },      { "beside", AT(recipe, beside), U64 },
	{ "first_part", AT(recipe, first_part), U64 }, { "parts", AT(recipe, parts), U64 },
	{ NULL, 0, END },
};
static const struct table_member part_members[] = {
	{ "codec", AT(part, codec), U32 },        { "version", AT(part, version), U32 },
	{ "rows", AT(part, rows), U64 },          { "cols", AT(part, cols), U64 },
	{ "parameters", AT(part, parameters), PARAMETERS },
	{ "first_component", AT(part, first_component), U64 },
	{ "components", AT(part, components), U64 }, { NULL, 0, END },
};
static const struct table_member component_members[] = {
	{ "role", AT(component, role), U32 },     { "dtype", AT(component, dtype), U32 },
	{ "file", AT(component, file), U64 },     { "offset", AT(component, offset), U64 },
	{ "bytes", AT(component, bytes), U64 },   { NULL, 0, END },
};
static const struct table_member unit_members[] = {
	{ "name", AT(unit, name), TEXT },         { "role", AT(unit, role), TEXT },
	{ "class", AT(unit, class_), U32 },       { "plan", AT(unit, plan), U32 },
	{ "dtype", AT(unit, dtype), U32 },        { "experts", AT(unit, experts), U32 },
	{ "rows", AT(unit, rows), U64 },          { "cols", AT(unit, cols), U64 },
	{ "first_matrix", AT(unit, first_matrix), U64 }, { NULL, 0, END },
};
static const struct table_member matrix_members[] = {
	{ "tensor", AT(matrix, tensor), U64 },    { "base", AT(matrix, base), U64 },
	{ "rows", AT(matrix, rows), U64 },        { "cols", AT(matrix, cols), U64 },
	{ "row_stride", AT(matrix, row_stride), U64 }, { "col_stride", AT(matrix, col_stride), U64 },
	{ NULL, 0, END },
};
static const struct table_member extra_members[] = {
	{ "name", AT(extra, name), TEXT },        { "path", AT(extra, path), TEXT },
	{ "digest", AT(extra, digest), TEXT },    { NULL, 0, END },
};
static const struct table_member text_members[] = {
	{ "offset", offsetof(struct xfp_ledger_text, offset), U32 },
	{ "length", offsetof(struct xfp_ledger_text, length), U32 },
	{ NULL, 0, END },
};
/* clang-format on */

static const struct table {
	const char *name;
	size_t size;
	const struct table_member *members; /* NULL: plain bytes */
} tables[XFP_LEDGER_TABLES] = {
	[XFP_LEDGER_FILES] = { "files", sizeof(struct xfp_file_record), file_members },
	[XFP_LEDGER_TENSORS] = { "tensors", sizeof(struct xfp_tensor_record), tensor_members },
	[XFP_LEDGER_RECIPES] = { "recipes", sizeof(struct xfp_recipe_record), recipe_members },
	[XFP_LEDGER_PARTS] = { "parts", sizeof(struct xfp_part_record), part_members },
	[XFP_LEDGER_COMPONENTS] = { "components", sizeof(struct xfp_component_record), component_members },
	[XFP_LEDGER_UNITS] = { "units", sizeof(struct xfp_unit_record), unit_members },
	[XFP_LEDGER_MATRICES] = { "matrices", sizeof(struct xfp_matrix_record), matrix_members },
	[XFP_LEDGER_EXTRAS] = { "extras", sizeof(struct xfp_extra_record), extra_members },
	[XFP_LEDGER_STRINGS] = { "strings", 1, NULL },
};

const char *xfp_ledger_table_name(enum xfp_ledger_table table)
{
	return tables[table].name;
}
size_t xfp_ledger_record_size(enum xfp_ledger_table table)
{
	return tables[table].size;
}

static hid_t compound(size_t size, const struct table_member *members);

static hid_t member_type(enum column_kind kind)
{
	hsize_t eight = 8, parameters = XFP_CODEC_PARAMETERS;

	switch (kind) {
	case U32:
		return H5Tcopy(H5T_NATIVE_UINT32);
	case U64:
		return H5Tcopy(H5T_NATIVE_UINT64);
	case I64:
		return H5Tcopy(H5T_NATIVE_INT64);
	case TEXT:
		return compound(sizeof(struct xfp_ledger_text), text_members);
	case SHAPE:
		return H5Tarray_create2(H5T_NATIVE_UINT64, 1, &eight);
	case PARAMETERS:
		return H5Tarray_create2(H5T_NATIVE_UINT64, 1, &parameters);
	case END:
		break;
	}
	return -1;
}

static hid_t compound(size_t size, const struct table_member *members)
{
	hid_t type = H5Tcreate(H5T_COMPOUND, size);

	for (const struct table_member *m = members; type >= 0 && m->name; m++) {
		hid_t of = member_type(m->kind);
		bool good = of >= 0 && H5Tinsert(type, m->name, m->offset, of) >= 0;

		if (of >= 0)
			H5Tclose(of);
		if (!good) {
			H5Tclose(type);
			return -1;
		}
	}
	return type;
}

hid_t xfp_ledger_record_type(enum xfp_ledger_table table)
{
	if (!tables[table].members)
		return H5Tcopy(H5T_NATIVE_UINT8);
	return compound(tables[table].size, tables[table].members);
}
