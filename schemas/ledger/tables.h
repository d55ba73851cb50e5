/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables.h - the records of ledger.h5 in their file format.
 *
 * Records have no padding and are read and written without conversion.
 */
#ifndef XFP_LEDGER_TABLES_H
#define XFP_LEDGER_TABLES_H

#include <hdf5.h>
#include <stdint.h>

#include "schemas/recipe/recipe.h"

#define XFP_LEDGER_KIND "ledger"
#define XFP_LEDGER_VERSION 3

struct xfp_ledger_text {
	uint32_t offset, length;
}; /* string in the pool /strings, without a NUL */

struct xfp_file_record {
	struct xfp_ledger_text name, path;
	uint64_t device, inode, size;
	int64_t mtime_ns, ctime_ns;
};

struct xfp_tensor_record {
	struct xfp_ledger_text name, reason;
	uint32_t dtype, class_, fate, rank;
	uint64_t shape[8];
	uint32_t file, tied;
	uint64_t offset, bytes;
	uint64_t recipe;
};
#define XFP_NO_RECIPE UINT64_MAX

struct xfp_recipe_record {
	uint64_t rows, cols, transposed, outer, inner, beside;
	uint64_t first_part, parts;
};

struct xfp_part_record {
	uint32_t codec, version;
	uint64_t rows, cols;
	uint64_t parameters[XFP_CODEC_PARAMETERS];
	uint64_t first_component, components;
};

struct xfp_component_record {
	uint32_t role, dtype;
	uint64_t file, offset, bytes;
};

struct xfp_unit_record {
	struct xfp_ledger_text name, role;
	uint32_t class_, plan, dtype, experts;
	uint64_t rows, cols, first_matrix;
};

struct xfp_matrix_record {
	uint64_t tensor, base, rows, cols, row_stride, col_stride;
};

struct xfp_extra_record {
	struct xfp_ledger_text name, path, digest;
};

_Static_assert(sizeof(struct xfp_extra_record) == 24, "extra record");
_Static_assert(sizeof(struct xfp_file_record) == 56, "file record");
_Static_assert(sizeof(struct xfp_tensor_record) == 128, "tensor record");
_Static_assert(sizeof(struct xfp_recipe_record) == 64, "recipe record");
_Static_assert(sizeof(struct xfp_part_record) == 72, "part record");
_Static_assert(sizeof(struct xfp_component_record) == 32, "component record");
_Static_assert(sizeof(struct xfp_unit_record) == 56, "unit record");
_Static_assert(sizeof(struct xfp_matrix_record) == 48, "matrix record");

enum xfp_ledger_table {
	XFP_LEDGER_FILES,
	XFP_LEDGER_TENSORS,
	XFP_LEDGER_RECIPES,
	XFP_LEDGER_PARTS,
	XFP_LEDGER_COMPONENTS,
	XFP_LEDGER_UNITS,
	XFP_LEDGER_MATRICES,
	XFP_LEDGER_EXTRAS,
	XFP_LEDGER_STRINGS,
	XFP_LEDGER_TABLES
};

/* The name of a table's dataset, the size of a record in bytes, and its HDF5 type (negative if memory runs out;
 * H5Tclose it). */
const char *xfp_ledger_table_name(enum xfp_ledger_table table);
size_t xfp_ledger_record_size(enum xfp_ledger_table table);
hid_t xfp_ledger_record_type(enum xfp_ledger_table table);

#endif
