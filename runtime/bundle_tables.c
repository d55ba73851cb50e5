/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_tables.c - check every record of the index against the rules of bundle_layout.h.
 *
 * The digest proves only that the index is unchanged, not that its author was honest. After these checks, no number in
 * the index leads outside the file, another table or a matrix.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "runtime/bundle_map.h"
#include "schemas/layout/classes.h"

#define NO_MATRIX UINT64_MAX

static enum xfp_status bad(const struct xfp_bundle *bundle, const char *what, uint64_t number, struct xfp_error *err)
{
	return xfp_fail(err, XFP_BAD_INPUT, "%s: its index is invalid (%s %" PRIu64 "); convert it again", bundle->path,
			what, number);
}

/* ---- header ------------------------------------------------------------------------------------ */

enum xfp_status xfp_bundle_check_header(struct xfp_bundle *bundle, struct xfp_error *err)
{
	static const uint32_t record[XFP_TABLES] = {
		sizeof(struct xfp_idx_unit),   sizeof(struct xfp_idx_matrix), sizeof(struct xfp_idx_part),
		sizeof(struct xfp_idx_tensor), sizeof(struct xfp_idx_file),   1,
	};
	const struct xfp_idx_header *header = (const struct xfp_idx_header *)bundle->index;
	const uint8_t *table[XFP_TABLES];
	uint64_t end = sizeof *header;

	if (memcmp(header->magic, XFP_IDX_MAGIC, sizeof header->magic))
		return xfp_fail(err, XFP_BAD_INPUT, "%s: damaged: xfp.idx is not an index; convert it again",
				bundle->path);
	if (header->version < XFP_BUNDLE_VERSION)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: format version %" PRIu32 " is too old (this release reads %d); "
				"convert the checkpoint again",
				bundle->path, header->version, XFP_BUNDLE_VERSION);
	if (header->version != XFP_BUNDLE_VERSION)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: format version %" PRIu32 " is not supported (this release reads %d); use another "
				"release or convert it again",
				bundle->path, header->version, XFP_BUNDLE_VERSION);
	if (header->header_bytes != sizeof *header)
		return bad(bundle, "header of", header->header_bytes, err);
	for (int t = 0; t < XFP_TABLES; t++) {
		uint64_t offset = xfp_align(end, 8);

		if (header->table[t].offset != offset || header->table[t].record != record[t] ||
		    offset > bundle->idx_bytes || header->table[t].count > (bundle->idx_bytes - offset) / record[t])
			return bad(bundle, "table", (uint64_t)t, err);
		table[t] = bundle->index + offset;
		end = offset + (uint64_t)header->table[t].count * record[t];
	}
	if (header->index_bytes != end)
		return bad(bundle, "size", header->index_bytes, err);
	bundle->header = header;
	bundle->units = (const struct xfp_idx_unit *)table[XFP_TABLE_UNITS];
	bundle->matrices = (const struct xfp_idx_matrix *)table[XFP_TABLE_MATRICES];
	bundle->parts = (const struct xfp_idx_part *)table[XFP_TABLE_PARTS];
	bundle->tensors = (const struct xfp_idx_tensor *)table[XFP_TABLE_TENSORS];
	bundle->files = (const struct xfp_idx_file *)table[XFP_TABLE_FILES];
	bundle->strings = (const char *)table[XFP_TABLE_STRINGS];
	return XFP_OK;
}

/* ---- strings ----------------------------------------------------------------------------------- */

/* Check the next string of the table. The first `end` bytes of the table are in use. */
static bool check_string(const struct xfp_bundle *bundle, struct xfp_idx_string string, uint32_t *end)
{
	uint32_t left = xfp_bundle_count(bundle, XFP_TABLE_STRINGS) - *end;

	if (string.offset != *end || string.length >= left || bundle->strings[*end + string.length] ||
	    !xfp_utf8_valid(bundle->strings + *end, string.length))
		return false;
	*end += string.length + 1;
	return true;
}

enum xfp_status xfp_bundle_check_strings(const struct xfp_bundle *bundle, struct xfp_error *err)
{
	uint32_t end = 0;

	if (!check_string(bundle, bundle->header->family, &end))
		return bad(bundle, "name of the family at", end, err);
	for (uint32_t u = 0; u < xfp_bundle_count(bundle, XFP_TABLE_UNITS); u++)
		if (!check_string(bundle, bundle->units[u].name, &end) ||
		    !check_string(bundle, bundle->units[u].role, &end))
			return bad(bundle, "name of unit", u, err);
	for (uint32_t t = 0; t < xfp_bundle_count(bundle, XFP_TABLE_TENSORS); t++)
		if (!check_string(bundle, bundle->tensors[t].name, &end) ||
		    !check_string(bundle, bundle->tensors[t].reason, &end))
			return bad(bundle, "name of tensor", t, err);
	for (uint32_t f = 0; f < xfp_bundle_count(bundle, XFP_TABLE_FILES); f++)
		if (!check_string(bundle, bundle->files[f].name, &end) ||
		    !xfp_file_name_valid(xfp_bundle_string(bundle, bundle->files[f].name)))
			return bad(bundle, "name of file", f, err);
	if (end != xfp_bundle_count(bundle, XFP_TABLE_STRINGS))
		return bad(bundle, "strings beyond", end, err);
	return XFP_OK;
}

/* ---- names ------------------------------------------------------------------------------------- */

int xfp_named_compare(const struct xfp_named *a, const struct xfp_named *b)
{
	int order = strcmp(a->name, b->name);

	return order || !a->role || !b->role ? order : strcmp(a->role, b->role);
}

static int by_name(const void *a, const void *b)
{
	return xfp_named_compare(a, b);
}

/* Sort the names of a table and reject duplicates. A record begins with its name; in a unit's record the role
 * follows. */
static enum xfp_status sort_names(const struct xfp_bundle *bundle, enum xfp_index_table table, struct xfp_named **out,
				  struct xfp_error *err)
{
	uint32_t count = xfp_bundle_count(bundle, table), record = bundle->header->table[table].record;
	const uint8_t *records = bundle->index + bundle->header->table[table].offset;
	struct xfp_named *names = malloc((count + (size_t)1) * sizeof *names);
	bool sorted = true;

	*out = names;
	if (!names)
		return xfp_no_memory(err);
	for (uint32_t i = 0; i < count; i++) {
		struct xfp_idx_string name[2];

		memcpy(name, records + (size_t)i * record, sizeof name);
		names[i] = (struct xfp_named){ xfp_bundle_string(bundle, name[0]), NULL, i };
		if (table == XFP_TABLE_UNITS)
			names[i].role = xfp_bundle_string(bundle, name[1]);
		sorted = sorted && (!i || by_name(&names[i - 1], &names[i]) < 0);
	}
	if (!sorted)
		qsort(names, count, sizeof *names, by_name);
	for (uint32_t i = 1; i < count; i++)
		if (!by_name(&names[i - 1], &names[i]))
			return xfp_fail(err, XFP_BAD_INPUT,
					"%s: its index is invalid ('%s' occurs twice); convert it again", bundle->path,
					xfp_printable(names[i].name).text);
	return XFP_OK;
}

/* ---- records ----------------------------------------------------------------------------------- */

static bool finite(double value)
{
	return value - value == 0;
}

static bool tensor_elements(const struct xfp_idx_tensor *tensor, uint64_t *elements)
{
	*elements = 1;
	for (unsigned i = 0; i < tensor->rank; i++)
		if (!xfp_mul(*elements, tensor->shape[i], elements))
			return false;
	for (unsigned i = tensor->rank; i < 8; i++)
		if (tensor->shape[i])
			return false;
	return *elements <= (uint64_t)1 << 56;
}

/* Return whether a matrix's view stays within its tensor. */
static bool view_fits(const struct xfp_idx_unit *unit, const struct xfp_idx_matrix *matrix, uint64_t elements)
{
	uint64_t down, right, last;

	return xfp_mul(unit->rows - 1, matrix->row_stride, &down) &&
	       xfp_mul(unit->cols - 1, matrix->col_stride, &right) && xfp_add(down, right, &last) &&
	       xfp_add(last, matrix->base, &last) && last < elements;
}

/* Counters of the pass over the tables. */
struct table_walk {
	uint32_t matrices, parts; /* records used so far; both tables are in order of use */
	uint64_t weights;
	uint64_t *covered; /* per tensor: elements that are in units, or NO_MATRIX */
};

/* Check that the next part belongs to (number, kind) and has this size. */
static bool check_part(const struct xfp_bundle *bundle, struct table_walk *walk, uint32_t which, uint32_t number,
		       unsigned kind, uint64_t size)
{
	const struct xfp_idx_part *part = &bundle->parts[walk->parts];

	if (walk->parts == xfp_bundle_count(bundle, XFP_TABLE_PARTS) || which != walk->parts)
		return false;
	walk->parts++;
	return part->number == number && part->kind == kind && !part->reserved && !part->volume && part->size == size;
}

/* Check one matrix and add its size to `bytes`, the expected size of the unit's parts. */
static bool check_matrix(const struct xfp_bundle *bundle, struct table_walk *walk, uint32_t u, uint32_t expert,
			 uint64_t bytes[XFP_PARTS])
{
	const struct xfp_idx_unit *unit = &bundle->units[u];
	const struct xfp_idx_matrix *matrix = &bundle->matrices[walk->matrices++];
	uint64_t own[XFP_PARTS], elements;

	if (matrix->unit != u || matrix->expert != expert || matrix->mode != unit->mode || matrix->k > unit->k ||
	    matrix->tensor >= xfp_bundle_count(bundle, XFP_TABLE_TENSORS) ||
	    !xfp_matrix_part_bytes(unit, matrix, own) ||
	    !tensor_elements(&bundle->tensors[matrix->tensor], &elements) ||
	    bundle->tensors[matrix->tensor].dtype != unit->dtype || !view_fits(unit, matrix, elements))
		return false;
	for (int p = 0; p < XFP_PARTS; p++)
		if (matrix->offset[p] != (own[p] ? bytes[p] : 0) || !xfp_add(bytes[p], own[p], &bytes[p]))
			return false;
	if (walk->covered[matrix->tensor] == NO_MATRIX)
		walk->covered[matrix->tensor] = 0;
	return xfp_add(walk->covered[matrix->tensor], unit->rows * unit->cols, &walk->covered[matrix->tensor]);
}

static bool check_unit(const struct xfp_bundle *bundle, struct table_walk *walk, uint32_t u)
{
	const struct xfp_idx_unit *unit = &bundle->units[u];
	uint64_t bytes[XFP_PARTS], total = 0, outliers = 0, weights = walk->weights;
	unsigned k = 0;

	if (unit->class_ >= XFP_CLASSES || unit->met > 1 || !unit->experts || !unit->rows || !unit->cols ||
	    unit->reserved || unit->reserved2 ||
	    !xfp_unit_part_bytes(unit, unit->part[XFP_PART_BALANCE] != XFP_NONE, bytes) || !finite(unit->cos_median) ||
	    !finite(unit->cos_p5) || !finite(unit->error) || !finite(unit->floor) ||
	    unit->first_matrix != walk->matrices ||
	    unit->experts > xfp_bundle_count(bundle, XFP_TABLE_MATRICES) - walk->matrices)
		return false;
	for (uint32_t e = 0; e < unit->experts; e++) {
		const struct xfp_idx_matrix *matrix = &bundle->matrices[walk->matrices];

		if (!check_matrix(bundle, walk, u, e, bytes) || !xfp_add(weights, unit->rows * unit->cols, &weights))
			return false;
		outliers += matrix->outliers;
		k = matrix->k > k ? matrix->k : k;
	}
	for (unsigned p = 0; p < XFP_PARTS; p++) {
		if (bytes[p] ? !check_part(bundle, walk, unit->part[p], u, p, bytes[p]) : unit->part[p] != XFP_NONE)
			return false;
		total += bytes[p];
	}
	walk->weights = weights;
	return unit->k == k && unit->bytes == total && unit->outliers == outliers;
}

static bool check_tensor(const struct xfp_bundle *bundle, struct table_walk *walk, uint32_t t)
{
	const struct xfp_idx_tensor *tensor = &bundle->tensors[t], *equal;
	uint64_t elements, others, covered = walk->covered[t];

	if (tensor->class_ >= XFP_CLASSES || tensor->dtype >= XFP_DTYPES || tensor->fate >= XFP_FATES ||
	    tensor->rank > 8 || tensor->reserved || !tensor_elements(tensor, &elements) ||
	    elements * xfp_dtype_bits(tensor->dtype) % 8 ||
	    (tensor->tied != XFP_NONE) != (tensor->fate == XFP_FATE_TIED))
		return false;
	if (tensor->fate == XFP_FATE_KEPT && covered == NO_MATRIX)
		return check_part(bundle, walk, tensor->part, t, XFP_PARTS,
				  elements * xfp_dtype_bits(tensor->dtype) / 8);
	if (tensor->part != XFP_NONE || !xfp_bundle_all_zero(tensor->source, sizeof tensor->source))
		return false;
	if (tensor->fate == XFP_FATE_QUANTIZED || tensor->fate == XFP_FATE_KEPT)
		return covered == elements;
	if (covered != NO_MATRIX)
		return false;
	if (tensor->fate != XFP_FATE_TIED)
		return true;
	if (tensor->tied >= xfp_bundle_count(bundle, XFP_TABLE_TENSORS))
		return false;
	equal = &bundle->tensors[tensor->tied];
	return (equal->fate == XFP_FATE_QUANTIZED || equal->fate == XFP_FATE_KEPT) && equal->dtype == tensor->dtype &&
	       equal->rank <= 8 && tensor_elements(equal, &others) && others == elements;
}

enum xfp_status xfp_bundle_check_tables(struct xfp_bundle *bundle, struct xfp_error *err)
{
	uint32_t tensors = xfp_bundle_count(bundle, XFP_TABLE_TENSORS);
	struct table_walk walk = { .covered = malloc((tensors + (size_t)1) * sizeof *walk.covered) };
	enum xfp_status status;

	if (!walk.covered)
		return xfp_no_memory(err);
	for (uint32_t t = 0; t < tensors; t++) {
		walk.covered[t] = NO_MATRIX;
		if (bundle->tensors[t].rank > 8) { /* checked before units use shapes */
			status = bad(bundle, "tensor", t, err);
			goto done;
		}
	}
	if ((status = xfp_bundle_check_strings(bundle, err)) ||
	    (status = sort_names(bundle, XFP_TABLE_UNITS, &bundle->unit_names, err)) ||
	    (status = sort_names(bundle, XFP_TABLE_TENSORS, &bundle->tensor_names, err)) ||
	    (status = sort_names(bundle, XFP_TABLE_FILES, &bundle->file_names, err)))
		goto done;
	for (uint32_t u = 0; !status && u < xfp_bundle_count(bundle, XFP_TABLE_UNITS); u++)
		if (!check_unit(bundle, &walk, u))
			status = bad(bundle, "unit", u, err);
	for (uint32_t t = 0; !status && t < tensors; t++)
		if (!check_tensor(bundle, &walk, t))
			status = bad(bundle, "tensor", t, err);
	if (!status && walk.matrices != xfp_bundle_count(bundle, XFP_TABLE_MATRICES))
		status = bad(bundle, "matrices beyond", walk.matrices, err);
	if (!status && walk.parts != xfp_bundle_count(bundle, XFP_TABLE_PARTS))
		status = bad(bundle, "parts beyond", walk.parts, err);
	if (!status && walk.weights != bundle->header->weights)
		status = bad(bundle, "weights", bundle->header->weights, err);
done:
	free(walk.covered);
	return status;
}
