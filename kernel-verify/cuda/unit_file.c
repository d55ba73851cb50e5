/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel-verify/cuda/unit_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/dtype.h"
#include "base/sha256.h"
#include "schemas/layout/classes.h"

#define BLOCK ((uint64_t)XFP_TAR_BLOCK)
#define JSON "{}\n"
/* Family, unit and its role, tensor and its reason, in the order of the records. */
#define UNIT_STRINGS "verify\0w\0w\0w\0"
#define TENSOR_STRINGS "verify\0w\0"

/* ---- buffers -------------------------------------------------------------------------------------- */

static struct xfp_idx_unit unit_record(const struct xfp_unit_file *unit)
{
	return (struct xfp_idx_unit){ .name = { 7, 1 },
				      .role = { 9, 1 },
				      .class_ = XFP_CLASS_OTHER,
				      .mode = (uint8_t)unit->mode,
				      .k = (uint8_t)unit->k,
				      .met = 1,
				      .dtype = (uint8_t)unit->dtype,
				      .group = (uint8_t)unit->group,
				      .library = (uint8_t)unit->library,
				      .experts = unit->experts,
				      .rows = unit->rows,
				      .cols = unit->cols,
				      .cos_median = 1,
				      .cos_p5 = 1 };
}

static struct xfp_idx_matrix matrix_record(const struct xfp_unit_file *unit, uint32_t expert)
{
	return (struct xfp_idx_matrix){ .expert = expert,
					.mode = (uint8_t)unit->mode,
					.k = (uint8_t)unit->k,
					.exponent = (int16_t)unit->exponent[expert],
					.base = expert * unit->rows * unit->cols,
					.row_stride = unit->cols,
					.col_stride = 1,
					.outliers = unit->outliers[expert] };
}

/* Compute the bytes of the parts before expert `end`. If `offsets` is not NULL, store the offset of each matrix. */
static bool walk(const struct xfp_unit_file *unit, bool balanced, uint32_t end, uint64_t bytes[XFP_PARTS],
		 struct xfp_idx_matrix *matrices)
{
	struct xfp_idx_unit record = unit_record(unit);
	uint64_t own[XFP_PARTS];

	if (!xfp_unit_part_bytes(&record, balanced, bytes))
		return false;
	for (uint32_t e = 0; e < end; e++) {
		struct xfp_idx_matrix matrix = matrix_record(unit, e);

		if (!xfp_matrix_part_bytes(&record, &matrix, own))
			return false;
		for (int p = 0; p < XFP_PARTS; p++) {
			matrix.offset[p] = own[p] ? bytes[p] : 0;
			bytes[p] += own[p];
		}
		if (matrices)
			matrices[e] = matrix;
	}
	return true;
}

enum xfp_status xfp_unit_file_experts(struct xfp_unit_file *unit, struct xfp_error *err)
{
	unit->exponent = calloc(unit->experts, sizeof *unit->exponent);
	unit->outliers = calloc(unit->experts, sizeof *unit->outliers);
	if (unit->exponent && unit->outliers)
		return XFP_OK;
	xfp_unit_file_free(unit);
	return xfp_no_memory(err);
}

enum xfp_status xfp_unit_file_parts(struct xfp_unit_file *unit, bool balanced, struct xfp_error *err)
{
	if (!walk(unit, balanced, unit->experts, unit->bytes, NULL)) {
		xfp_unit_file_free(unit);
		return xfp_fail(err, XFP_FAILED, "a bundle cannot contain such a unit");
	}
	for (int p = 0; p < XFP_PARTS; p++) {
		unit->part[p] = unit->bytes[p] ? calloc(unit->bytes[p], 1) : NULL;
		if (unit->bytes[p] && !unit->part[p]) {
			xfp_unit_file_free(unit);
			return xfp_no_memory(err);
		}
	}
	return XFP_OK;
}

void xfp_unit_file_free(struct xfp_unit_file *unit)
{
	free(unit->exponent);
	free(unit->outliers);
	unit->exponent = NULL;
	unit->outliers = NULL;
	for (int p = 0; p < XFP_PARTS; p++) {
		free(unit->part[p]);
		unit->part[p] = NULL;
	}
}

uint64_t xfp_unit_file_offset(const struct xfp_unit_file *unit, enum xfp_part part, uint32_t expert)
{
	uint64_t bytes[XFP_PARTS] = { 0 };

	walk(unit, unit->bytes[XFP_PART_BALANCE] != 0, expert, bytes, NULL);
	return bytes[part];
}

/* ---- the file ------------------------------------------------------------------------------------- */

struct laid_out {
	struct xfp_idx_header header;
	struct xfp_idx_unit unit;
	struct xfp_idx_matrix *matrices;
	struct xfp_idx_part parts[XFP_PARTS];
	struct xfp_idx_tensor tensor;
	const char *strings;
	uint32_t count[XFP_TABLES];
	uint64_t padded[XFP_PARTS], idx, idx_bytes, end;
};

static void make_records(const struct xfp_unit_file *unit, struct laid_out *out)
{
	uint32_t part = 0;

	out->unit = unit_record(unit);
	for (int p = 0; p < XFP_PARTS; p++) {
		out->unit.part[p] = unit->bytes[p] ? part : XFP_NONE;
		if (unit->bytes[p])
			out->parts[part++] = (struct xfp_idx_part){ .kind = (uint8_t)(unit->tensor ? XFP_PARTS : p),
								    .size = unit->bytes[p] };
		out->unit.bytes += unit->bytes[p];
	}
	for (uint32_t e = 0; e < unit->experts; e++)
		out->unit.outliers += unit->outliers[e];
	out->tensor = (struct xfp_idx_tensor){
		.name = { unit->tensor ? 7 : 11, 1 },
		.reason = { unit->tensor ? 9 : 13, 0 },
		.class_ = XFP_CLASS_OTHER,
		.dtype = (uint8_t)unit->dtype,
		.fate = unit->mode == XFP_MODE_KEEP ? XFP_FATE_KEPT : XFP_FATE_QUANTIZED,
		.rank = 2,
		.part = unit->tensor ? 0 : XFP_NONE,
		.tied = XFP_NONE,
		.shape = { unit->experts * unit->rows, unit->cols },
	};
	out->strings = unit->tensor ? TENSOR_STRINGS : UNIT_STRINGS;
	out->count[XFP_TABLE_UNITS] = !unit->tensor;
	out->count[XFP_TABLE_MATRICES] = unit->tensor ? 0 : unit->experts;
	out->count[XFP_TABLE_PARTS] = part;
	out->count[XFP_TABLE_TENSORS] = 1;
	out->count[XFP_TABLE_STRINGS] = unit->tensor ? sizeof TENSOR_STRINGS : sizeof UNIT_STRINGS;
	out->header = (struct xfp_idx_header){ .magic = XFP_IDX_MAGIC,
					       .version = XFP_BUNDLE_VERSION,
					       .header_bytes = sizeof out->header,
					       .weights = unit->tensor ? 0 : unit->experts * unit->rows * unit->cols,
					       .family = { 0, 6 } };
}

static const void *records(const struct laid_out *out, int table, uint32_t *bytes)
{
	const struct {
		const void *records;
		size_t bytes;
	} all[XFP_TABLES] = { { &out->unit, sizeof out->unit },      { out->matrices, sizeof *out->matrices },
			      { out->parts, sizeof *out->parts },    { &out->tensor, sizeof out->tensor },
			      { NULL, sizeof(struct xfp_idx_file) }, { out->strings, 1 } };

	*bytes = (uint32_t)all[table].bytes;
	return all[table].records;
}

/* A member's place depends on those after it: compute sizes from the last to the first, then places. */
static void find_places(struct laid_out *out)
{
	uint64_t header = BLOCK, at = sizeof out->header;
	uint32_t bytes;

	for (int t = 0; t < XFP_TABLES; t++) {
		records(out, t, &bytes);
		at = xfp_align(at, 8);
		out->header.table[t].offset = at;
		out->header.table[t].count = out->count[t];
		out->header.table[t].record = bytes;
		at += (uint64_t)out->count[t] * bytes;
	}
	out->header.index_bytes = at;
	for (uint32_t i = out->count[XFP_TABLE_PARTS]; i-- > 0;) {
		out->padded[i] = xfp_padded_bytes(out->parts[i].size, header);
		header = xfp_tar_header_bytes(out->padded[i]);
	}
	out->idx = BLOCK + xfp_align(sizeof JSON - 1, BLOCK) + BLOCK;
	out->idx_bytes = xfp_idx_member_bytes(out->idx, at, 0, header);
	at = out->idx + out->idx_bytes;
	for (uint32_t i = 0; i < out->count[XFP_TABLE_PARTS]; i++) {
		out->parts[i].offset = at + xfp_tar_header_bytes(out->padded[i]);
		at = out->parts[i].offset + out->padded[i];
	}
	out->end = at;
}

static bool put(int file, const void *from, uint64_t bytes, uint64_t at)
{
	for (const uint8_t *byte = from; bytes;) {
		ssize_t some = pwrite(file, byte, bytes < (1 << 30) ? (size_t)bytes : 1 << 30, (off_t)at);

		if (some < 0 && errno == EINTR)
			continue;
		if (some <= 0)
			return false;
		byte += some;
		at += (uint64_t)some;
		bytes -= (uint64_t)some;
	}
	return true;
}

static bool put_member(int file, const char *name, const void *from, uint64_t bytes, uint64_t size, uint64_t at)
{
	uint8_t header[3 * XFP_TAR_BLOCK];
	size_t before = xfp_tar_header_bytes(size);

	xfp_tar_header(name, size, header);
	return put(file, header, before, at - before) && put(file, from, bytes, at);
}

static bool put_all(const struct xfp_unit_file *unit, const struct laid_out *out, uint8_t *index, int file)
{
	uint8_t json[32], idx[32];
	char sum[XFP_SUM_BYTES + 1], name[24];
	uint32_t bytes, part = 0;

	memcpy(index, &out->header, sizeof out->header);
	for (int t = 0; t < XFP_TABLES; t++) {
		const void *from = records(out, t, &bytes);

		if (out->count[t])
			memcpy(index + out->header.table[t].offset, from, (size_t)out->count[t] * bytes);
	}
	xfp_sha256(JSON, sizeof JSON - 1, json);
	xfp_sha256(index, out->idx_bytes, idx);
	xfp_sum_text(json, idx, sum);
	if (!put_member(file, XFP_MEMBER_JSON, JSON, sizeof JSON - 1, sizeof JSON - 1, BLOCK) ||
	    !put_member(file, XFP_MEMBER_IDX, index, out->idx_bytes, out->idx_bytes, out->idx) ||
	    !put_member(file, XFP_MEMBER_SUM, sum, XFP_SUM_BYTES, XFP_SUM_BYTES, out->end + BLOCK))
		return false;
	for (int p = 0; p < XFP_PARTS; p++) {
		if (!unit->bytes[p])
			continue;
		xfp_part_member(0, out->parts[part].kind, name);
		if (!put_member(file, name, unit->part[p], unit->bytes[p], out->padded[part], out->parts[part].offset))
			return false;
		part++;
	}
	/* Padding of the last member, and the two blocks that end a tar archive. */
	return !ftruncate(file, (off_t)(out->end + 4 * BLOCK));
}

enum xfp_status xfp_unit_file_write(const struct xfp_unit_file *unit, int file, struct xfp_error *err)
{
	struct laid_out out = { .matrices = calloc(unit->experts, sizeof *out.matrices) };
	enum xfp_status status = XFP_OK;
	uint64_t bytes[XFP_PARTS];
	uint8_t *index = NULL;

	if (!out.matrices)
		return xfp_no_memory(err);
	make_records(unit, &out);
	walk(unit, unit->bytes[XFP_PART_BALANCE] != 0, unit->experts, bytes, out.matrices);
	find_places(&out);
	if (!(index = calloc(out.idx_bytes, 1)))
		status = xfp_no_memory(err);
	else if (ftruncate(file, 0) || !put_all(unit, &out, index, file))
		status = xfp_fail_errno(err, errno, "cannot write a bundle for verification");
	free(index);
	free(out.matrices);
	return status;
}
