/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bundle_index.c - the plan of a bundle: its index tables, and the offset of every member.
 */
#include "schemas/bundle_plan.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "base/utf8.h"

void xfp_bundle_plan_free(struct xfp_bundle_plan *plan)
{
	free(plan->index);
	free(plan->padded);
	*plan = (struct xfp_bundle_plan){ 0 };
}

/* ---- sizes ------------------------------------------------------------------------------------- */

/* The fields of a unit that determine the sizes of its parts. */
static struct xfp_idx_unit unit_shape(const struct xfp_ledger_unit *unit, const struct xfp_packed *packed)
{
	return (struct xfp_idx_unit){
		.mode = (uint8_t)packed->mode,
		.k = (uint8_t)packed->k,
		.dtype = (uint8_t)unit->dtype,
		.group = (uint8_t)packed->group,
		.library = (uint8_t)packed->library,
		.rows = unit->rows,
		.cols = unit->cols,
	};
}

/* Check that a packed artifact belongs to its unit and that the sizes of its parts match its mode. */
static enum xfp_status check_packed(const struct xfp_bundle_unit *in, struct xfp_error *err)
{
	const struct xfp_ledger_unit *unit = in->unit;
	const struct xfp_packed *packed = in->packed;
	struct xfp_idx_unit shape = unit_shape(unit, packed);
	uint64_t total[XFP_PARTS], bytes[XFP_PARTS];
	bool good = shape.mode == packed->mode && shape.k == packed->k && shape.group == packed->group &&
		    shape.library == packed->library && packed->matrices == unit->experts &&
		    packed->rows == unit->rows && packed->cols == unit->cols &&
		    xfp_unit_part_bytes(&shape, packed->bytes[XFP_PART_BALANCE] > 0, total);

	for (uint32_t m = 0; good && m < packed->matrices; m++) {
		const struct xfp_packed_matrix *matrix = &packed->matrix[m];
		struct xfp_idx_matrix record = { .mode = (uint8_t)matrix->mode,
						 .k = (uint8_t)matrix->k,
						 .exponent = (int16_t)matrix->exponent,
						 .outliers = matrix->outliers };

		good = matrix->mode == packed->mode && matrix->k <= packed->k &&
		       xfp_matrix_part_bytes(&shape, &record, bytes);
		for (int p = 0; good && p < XFP_PARTS; p++) {
			good = !bytes[p] || matrix->offset[p] == total[p];
			total[p] += bytes[p];
		}
	}
	for (int p = 0; good && p < XFP_PARTS; p++)
		good = total[p] == packed->bytes[p];
	return good ? XFP_OK
		    : xfp_fail(err, XFP_DAMAGED, "%s: parts do not match unit %s; remove the file and run again",
			       in->path, xfp_printable(unit->name).text);
}

/* Mark the tensors stored whole: those that are kept and belong to no unit. */
static bool *raw_tensors(const struct xfp_ledger *ledger)
{
	bool *raw = calloc(ledger->tensor_count + (size_t)1, sizeof *raw);

	if (!raw)
		return NULL;
	for (uint32_t t = 0; t < ledger->tensor_count; t++)
		raw[t] = ledger->tensors[t].fate == XFP_FATE_KEPT;
	for (uint32_t m = 0; m < ledger->matrix_count; m++)
		raw[ledger->matrices[m].tensor] = false;
	return raw;
}

struct index_tally {
	uint64_t parts, strings;
};

static enum xfp_status count_string(struct index_tally *tally, const char *text, struct xfp_error *err)
{
	size_t length = strlen(text);

	tally->strings += length + 1;
	return xfp_utf8_valid(text, length) ? XFP_OK
					    : xfp_fail(err, XFP_BAD_INPUT, "invalid name '%s': not UTF-8; rename it",
						       xfp_printable(text).text);
}

static enum xfp_status count(const struct xfp_bundle_input *input, const bool *raw, struct index_tally *tally,
			     struct xfp_error *err)
{
	const struct xfp_ledger *ledger = input->ledger;
	enum xfp_status status = count_string(tally, ledger->family, err);
	uint64_t matrices = 0;

	for (uint32_t u = 0; !status && u < ledger->unit_count; u++) {
		if (ledger->units[u].first_matrix != matrices)
			return xfp_fail(err, XFP_FAILED,
					"the matrices of the ledger are not in the order of its units");
		matrices += ledger->units[u].experts;
		for (int p = 0; p < XFP_PARTS; p++)
			tally->parts += input->units[u].packed->bytes[p] > 0;
		if (!(status = check_packed(&input->units[u], err)) &&
		    !(status = count_string(tally, ledger->units[u].name, err)))
			status = count_string(tally, ledger->units[u].role, err);
	}
	for (uint32_t t = 0; !status && t < ledger->tensor_count; t++) {
		tally->parts += raw[t];
		if (!(status = count_string(tally, ledger->tensors[t].name, err)))
			status = count_string(tally, ledger->tensors[t].reason, err);
	}
	for (uint32_t f = 0; !status && f < ledger->extra_count; f++)
		if (!(status = count_string(tally, ledger->extras[f], err)) && !xfp_file_name_valid(ledger->extras[f]))
			status = xfp_fail(err, XFP_BAD_INPUT, "%s: not a plain relative name",
					  xfp_printable(ledger->extras[f]).text);
	if (!status && (tally->strings > UINT32_MAX || tally->parts > UINT32_MAX))
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: too many tensors for one bundle", ledger->model);
	return status;
}

/* ---- tables ------------------------------------------------------------------------------------ */

static void *place_table(struct xfp_bundle_plan *plan, enum xfp_index_table table, uint64_t count, size_t record,
			 uint64_t *end)
{
	uint64_t offset = xfp_align(*end, 8);

	if (plan->header) {
		plan->header->table[table].offset = offset;
		plan->header->table[table].count = (uint32_t)count;
		plan->header->table[table].record = (uint32_t)record;
	}
	*end = offset + count * record;
	return plan->index ? plan->index + offset : NULL;
}

static uint64_t place_tables(struct xfp_bundle_plan *plan, const struct xfp_ledger *ledger,
			     const struct index_tally *tally)
{
	uint64_t end = sizeof *plan->header;

	plan->header = (struct xfp_idx_header *)plan->index;
	plan->units = place_table(plan, XFP_TABLE_UNITS, ledger->unit_count, sizeof *plan->units, &end);
	plan->matrices = place_table(plan, XFP_TABLE_MATRICES, ledger->matrix_count, sizeof *plan->matrices, &end);
	plan->parts = place_table(plan, XFP_TABLE_PARTS, tally->parts, sizeof *plan->parts, &end);
	plan->tensors = place_table(plan, XFP_TABLE_TENSORS, ledger->tensor_count, sizeof *plan->tensors, &end);
	plan->files = place_table(plan, XFP_TABLE_FILES, ledger->extra_count, sizeof *plan->files, &end);
	plan->strings = place_table(plan, XFP_TABLE_STRINGS, tally->strings, 1, &end);
	return end;
}

static struct xfp_idx_string put_string(struct xfp_bundle_plan *plan, uint32_t *end, const char *text)
{
	struct xfp_idx_string string = { *end, (uint32_t)strlen(text) };

	memcpy(plan->strings + *end, text, string.length + (size_t)1);
	*end += string.length + 1;
	return string;
}

static uint32_t put_part(struct xfp_bundle_plan *plan, uint32_t number, unsigned kind, uint64_t size)
{
	plan->parts[plan->part_count] = (struct xfp_idx_part){ .number = number, .kind = (uint8_t)kind, .size = size };
	return plan->part_count++;
}

static void put_matrices(struct xfp_bundle_plan *plan, const struct xfp_ledger *ledger, uint32_t u,
			 const struct xfp_packed *packed)
{
	const struct xfp_ledger_unit *unit = &ledger->units[u];
	uint64_t bytes[XFP_PARTS];

	for (uint32_t m = 0; m < unit->experts; m++) {
		const struct xfp_ledger_matrix *where = &ledger->matrices[unit->first_matrix + m];
		const struct xfp_packed_matrix *matrix = &packed->matrix[m];
		struct xfp_idx_matrix *out = &plan->matrices[unit->first_matrix + m];

		*out = (struct xfp_idx_matrix){
			.unit = u,
			.expert = m,
			.mode = (uint8_t)matrix->mode,
			.k = (uint8_t)matrix->k,
			.exponent = (int16_t)matrix->exponent,
			.tensor = where->tensor,
			.base = where->base,
			.row_stride = where->row_stride,
			.col_stride = where->col_stride,
			.outliers = matrix->outliers,
		};
		memcpy(out->source, matrix->source, sizeof out->source);
		if (xfp_matrix_part_bytes(&plan->units[u], out, bytes))
			for (int p = 0; p < XFP_PARTS; p++)
				out->offset[p] = bytes[p] ? matrix->offset[p] : 0;
	}
}

static void put_units(struct xfp_bundle_plan *plan, const struct xfp_bundle_input *input, uint32_t *strings)
{
	const struct xfp_ledger *ledger = input->ledger;

	for (uint32_t u = 0; u < ledger->unit_count; u++) {
		const struct xfp_ledger_unit *unit = &ledger->units[u];
		const struct xfp_packed *packed = input->units[u].packed;
		struct xfp_idx_unit *out = &plan->units[u];

		out->name = put_string(plan, strings, unit->name);
		out->role = put_string(plan, strings, unit->role);
		out->class_ = (uint8_t)unit->class_;
		out->mode = (uint8_t)packed->mode;
		out->k = (uint8_t)packed->k;
		out->met = input->units[u].met;
		out->dtype = (uint8_t)unit->dtype;
		out->group = (uint8_t)packed->group;
		out->library = (uint8_t)packed->library;
		out->experts = unit->experts;
		out->first_matrix = unit->first_matrix;
		out->rows = unit->rows;
		out->cols = unit->cols;
		out->outliers = packed->outliers;
		out->cos_median = packed->cos_median;
		out->cos_p5 = packed->cos_p5;
		out->error = packed->error;
		out->floor = input->units[u].floor;
		for (unsigned p = 0; p < XFP_PARTS; p++) {
			out->bytes += packed->bytes[p];
			out->part[p] = packed->bytes[p] ? put_part(plan, u, p, packed->bytes[p]) : XFP_NONE;
			if (packed->bytes[p])
				memcpy(plan->parts[out->part[p]].sha256, packed->digest[p].sha256, 32);
		}
		plan->header->weights += unit->experts * unit->rows * unit->cols;
		put_matrices(plan, ledger, u, packed);
	}
}

static void put_tensors(struct xfp_bundle_plan *plan, const struct xfp_ledger *ledger, const bool *raw,
			uint32_t *strings)
{
	for (uint32_t t = 0; t < ledger->tensor_count; t++) {
		const struct xfp_ledger_tensor *tensor = &ledger->tensors[t];
		struct xfp_idx_tensor *out = &plan->tensors[t];

		out->name = put_string(plan, strings, tensor->name);
		out->reason = put_string(plan, strings, tensor->reason);
		out->class_ = (uint8_t)tensor->class_;
		out->dtype = (uint8_t)tensor->dtype;
		out->fate = (uint8_t)tensor->fate;
		out->rank = (uint8_t)tensor->rank;
		out->part = raw[t] ? put_part(plan, t, XFP_PARTS, tensor->bytes) : XFP_NONE;
		out->tied = tensor->fate == XFP_FATE_TIED ? tensor->tied : XFP_NONE;
		memcpy(out->shape, tensor->shape, tensor->rank * sizeof tensor->shape[0]);
	}
}

/* The size of a small file. */
static enum xfp_status file_size(const struct xfp_ledger *ledger, uint32_t f, uint64_t *size, struct xfp_error *err)
{
	char *path = xfp_ledger_extra_path(ledger, f);
	enum xfp_status status = XFP_OK;
	struct stat st;

	if (!path)
		return xfp_no_memory(err);
	if (stat(path, &st))
		status = xfp_fail_errno(err, errno, "%s", path);
	else if (!S_ISREG(st.st_mode))
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: not a file", path);
	else
		*size = (uint64_t)st.st_size;
	free(path);
	return status;
}

static enum xfp_status put_files(struct xfp_bundle_plan *plan, const struct xfp_ledger *ledger, uint32_t *strings,
				 struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t f = 0; !status && f < ledger->extra_count; f++) {
		status = file_size(ledger, f, &plan->files[f].size, err);
		if (!status)
			plan->files[f].name = put_string(plan, strings, ledger->extras[f]);
	}
	return status;
}

/* ---- places ------------------------------------------------------------------------------------ */

/* Compute the offsets of all members. A data member's padding depends on the size of the next header, which depends on
 * the padded size of its own member; hence the first pass runs backwards. xfp.sum has a header of one block. Returns
 * the offset of that header. */
static uint64_t place_members(struct xfp_bundle_plan *plan, uint64_t json_bytes, uint32_t files)
{
	uint64_t next_header = XFP_TAR_BLOCK, files_bytes = 0, end;

	for (uint32_t i = plan->part_count; i-- > 0;) {
		plan->padded[i] = xfp_padded_bytes(plan->parts[i].size, next_header);
		next_header = xfp_tar_header_bytes(plan->padded[i]);
	}
	for (uint32_t f = 0; f < files; f++)
		files_bytes +=
			xfp_tar_header_bytes(plan->files[f].size) + xfp_align(plan->files[f].size, XFP_TAR_BLOCK);
	plan->idx_offset = 2 * XFP_TAR_BLOCK + xfp_align(json_bytes, XFP_TAR_BLOCK);
	plan->idx_bytes = xfp_idx_member_bytes(plan->idx_offset, plan->index_bytes, files_bytes,
					       plan->part_count ? next_header : 0);
	end = plan->idx_offset + plan->idx_bytes;
	for (uint32_t f = 0; f < files; f++) {
		plan->files[f].offset = end + xfp_tar_header_bytes(plan->files[f].size);
		end = plan->files[f].offset + xfp_align(plan->files[f].size, XFP_TAR_BLOCK);
	}
	for (uint32_t i = 0; i < plan->part_count; i++) {
		plan->parts[i].offset = end + xfp_tar_header_bytes(plan->padded[i]);
		end = plan->parts[i].offset + plan->padded[i];
	}
	return end;
}

enum xfp_status xfp_bundle_plan(const struct xfp_bundle_input *input, struct xfp_bundle_plan *plan,
				struct xfp_error *err)
{
	const struct xfp_ledger *ledger = input->ledger;
	struct index_tally tally = { 0 };
	bool *raw = raw_tensors(ledger);
	uint32_t strings = 0;
	enum xfp_status status;

	*plan = (struct xfp_bundle_plan){ 0 };
	if (!raw)
		return xfp_no_memory(err);
	if ((status = count(input, raw, &tally, err)))
		goto done;
	plan->index_bytes = place_tables(plan, ledger, &tally);
	plan->index = calloc(1, plan->index_bytes);
	plan->padded = calloc(tally.parts + 1, sizeof *plan->padded);
	if (!plan->index || !plan->padded) {
		status = xfp_no_memory(err);
		goto done;
	}
	place_tables(plan, ledger, &tally);
	memcpy(plan->header->magic, XFP_IDX_MAGIC, sizeof plan->header->magic);
	plan->header->version = XFP_BUNDLE_VERSION;
	plan->header->header_bytes = sizeof *plan->header;
	plan->header->index_bytes = plan->index_bytes;
	plan->header->family = put_string(plan, &strings, ledger->family);
	put_units(plan, input, &strings);
	put_tensors(plan, ledger, raw, &strings);
	if ((status = put_files(plan, ledger, &strings, err)))
		goto done;
	place_members(plan, strlen(input->json), ledger->extra_count);
done:
	free(raw);
	return status;
}

/* ---- its size ---------------------------------------------------------------------------------- */

/* Bytes of names and reasons, with their NULs. */
static uint64_t string_bytes(const struct xfp_ledger *ledger, uint64_t reasons)
{
	uint64_t bytes = strlen(ledger->family) + 1 + reasons + ledger->tensor_count;

	for (uint32_t u = 0; u < ledger->unit_count; u++)
		bytes += strlen(ledger->units[u].name) + strlen(ledger->units[u].role) + 2;
	for (uint32_t t = 0; t < ledger->tensor_count; t++)
		bytes += strlen(ledger->tensors[t].name) + 1;
	for (uint32_t f = 0; f < ledger->extra_count; f++)
		bytes += strlen(ledger->extras[f]) + 1;
	return bytes;
}

/* List the parts in order; the plan then holds only their sizes. */
static void list_parts(struct xfp_bundle_plan *plan, const struct xfp_bundle_sizes *sizes, const bool *raw,
		       struct xfp_bundle_breakdown *breakdown)
{
	const struct xfp_ledger *ledger = sizes->ledger;

	for (uint32_t u = 0; u < ledger->unit_count; u++)
		for (unsigned p = 0; p < XFP_PARTS; p++)
			if (sizes->parts[u][p]) {
				put_part(plan, u, p, sizes->parts[u][p]);
				breakdown->units += sizes->parts[u][p];
			}
	for (uint32_t t = 0; t < ledger->tensor_count; t++)
		if (raw[t]) {
			put_part(plan, t, XFP_PARTS, ledger->tensors[t].bytes);
			breakdown->kept += ledger->tensors[t].bytes;
		}
}

enum xfp_status xfp_bundle_measure(const struct xfp_bundle_sizes *sizes, struct xfp_bundle_breakdown *breakdown,
				   struct xfp_error *err)
{
	const struct xfp_ledger *ledger = sizes->ledger;
	uint64_t max = (uint64_t)ledger->unit_count * XFP_PARTS + ledger->tensor_count;
	struct index_tally tally = { .strings = string_bytes(ledger, sizes->reason_bytes) };
	struct xfp_bundle_plan plan = { 0 };
	bool *raw = raw_tensors(ledger);
	enum xfp_status status = XFP_OK;

	*breakdown = (struct xfp_bundle_breakdown){ 0 };
	plan.parts = calloc(max + 1, sizeof *plan.parts);
	plan.padded = calloc(max + 1, sizeof *plan.padded);
	plan.files = calloc(ledger->extra_count + (size_t)1, sizeof *plan.files);
	if (!raw || !plan.parts || !plan.padded || !plan.files)
		status = xfp_no_memory(err);
	for (uint32_t f = 0; !status && f < ledger->extra_count; f++) {
		status = file_size(ledger, f, &plan.files[f].size, err);
		breakdown->carried += plan.files[f].size;
	}
	if (!status) {
		struct xfp_bundle_plan tables = { 0 };

		list_parts(&plan, sizes, raw, breakdown);
		tally.parts = plan.part_count;
		plan.index_bytes = place_tables(&tables, ledger, &tally);
		breakdown->index = plan.index_bytes + sizes->json_bytes;
		breakdown->file = place_members(&plan, sizes->json_bytes, ledger->extra_count) + XFP_TAR_BLOCK +
				  xfp_align(XFP_SUM_BYTES, XFP_TAR_BLOCK) + 2 * XFP_TAR_BLOCK;
	}
	free(raw);
	free(plan.parts);
	free(plan.padded);
	free(plan.files);
	return status;
}
