/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.c - write parts in order with their digests; and the two modes that need no fit.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/decode.h"
#include "kernels/encode/assign.h"
#include "kernels/encode/cosine.h"
#include "schemas/digest.h"
#include "stages/pack/pack.h"
#include "stages/quantize/rows.h"

void xfp_part_begin(struct xfp_part_writer *writer, struct xfp_artifact *artifact, enum xfp_part part)
{
	*writer = (struct xfp_part_writer){ .artifact = artifact, .part = part };
	xfp_sha256_init(&writer->sha256);
	writer->xxh3 = xfp_digest_new();
}

enum xfp_status xfp_part_append(struct xfp_part_writer *writer, const void *data, uint64_t bytes, struct xfp_error *err)
{
	uint64_t offset = writer->offset;

	if (!writer->xxh3)
		return xfp_no_memory(err);
	writer->offset += bytes;
	xfp_sha256_update(&writer->sha256, data, bytes);
	xfp_digest_update(writer->xxh3, data, bytes);
	return xfp_packed_write(writer->artifact, writer->part, offset, bytes, data, err);
}

void xfp_part_end(struct xfp_part_writer *writer, struct xfp_packed *packed)
{
	struct xfp_part_digest *digest = &packed->digest[writer->part];

	if (packed->bytes[writer->part])
		xfp_sha256_final(&writer->sha256, digest->sha256);
	if (writer->xxh3)
		xfp_digest_final(writer->xxh3, packed->bytes[writer->part] ? digest->xxh3 : NULL);
	writer->xxh3 = NULL;
}

enum xfp_status xfp_pack_keep(struct xfp_job *job, struct xfp_artifact *artifact, struct xfp_packed *packed,
			      struct xfp_error *err)
{
	uint64_t row_bytes = packed->cols * (xfp_dtype_bits(job->unit->dtype) / 8);
	struct xfp_part_writer index = { 0 };
	enum xfp_status status;

	packed->bytes[XFP_PART_INDEX] = packed->matrices * packed->rows * row_bytes;
	packed->cos_median = packed->cos_p5 = 1;
	status = xfp_packed_begin(artifact, packed, err);
	xfp_part_begin(&index, artifact, XFP_PART_INDEX);
	for (uint32_t m = 0; !status && m < packed->matrices; m++) {
		struct xfp_matrix_source source = xfp_ledger_source(job->ledger, m);
		struct xfp_rows rows = { 0 };

		packed->matrix[m].offset[XFP_PART_INDEX] = index.offset;
		status = xfp_rows_open_again(&source, packed->matrix[m].source, &rows, err);
		while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count)
			status = xfp_part_append(&index, rows.raw, rows.count * row_bytes, err);
		xfp_rows_close(&rows);
	}
	xfp_part_end(&index, packed);
	return status;
}

/* State of fp8 packing that is carried from matrix to matrix. */
struct fp8 {
	struct xfp_part_writer index, code;
	uint8_t *codes; /* codes of a block */
	float *scales, *w, *decoded;
	double *cosine; /* cosines of all rows of the unit */
	double error, norm;
	uint64_t done; /* rows */
};

static enum xfp_status fp8_block(struct fp8 *fp8, const struct xfp_rows *rows, struct xfp_error *err)
{
	enum xfp_status status;

	for (uint64_t r = 0; r < rows->count; r++) {
		uint8_t *code = fp8->codes + r * rows->cols;
		struct xfp_row_error row;

		xfp_rows_load(rows, r, fp8->w);
		fp8->scales[r] = xfp_encode_fp8(fp8->w, rows->cols, code);
		xfp_decode_fp8(code, fp8->scales[r], rows->cols, fp8->decoded);
		row = xfp_row_compare(fp8->w, fp8->decoded, rows->cols);
		fp8->cosine[fp8->done++] = row.cosine;
		fp8->error += row.error;
		fp8->norm += row.norm;
	}
	status = xfp_part_append(&fp8->index, fp8->codes, rows->count * rows->cols, err);
	return status ? status : xfp_part_append(&fp8->code, fp8->scales, rows->count * sizeof *fp8->scales, err);
}

enum xfp_status xfp_pack_fp8(struct xfp_job *job, struct xfp_artifact *artifact, struct xfp_packed *packed,
			     struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, 0);
	uint64_t block = xfp_rows_block(&source), total = packed->matrices * packed->rows;
	struct fp8 fp8 = { .codes = malloc(block * packed->cols),
			   .scales = malloc(block * sizeof(float)),
			   .w = xfp_row_new(packed->cols),
			   .decoded = malloc(packed->cols * sizeof(float)),
			   .cosine = malloc(total * sizeof(double)) };
	enum xfp_status status = XFP_OK;

	if (!fp8.codes || !fp8.scales || !fp8.w || !fp8.decoded || !fp8.cosine)
		status = xfp_no_memory(err);
	packed->bytes[XFP_PART_INDEX] = total * packed->cols;
	packed->bytes[XFP_PART_CODE] = total * sizeof(float);
	if (!status)
		status = xfp_packed_begin(artifact, packed, err);
	xfp_part_begin(&fp8.index, artifact, XFP_PART_INDEX);
	xfp_part_begin(&fp8.code, artifact, XFP_PART_CODE);
	for (uint32_t m = 0; !status && m < packed->matrices; m++) {
		struct xfp_rows rows = { 0 };

		source = xfp_ledger_source(job->ledger, m);
		packed->matrix[m].offset[XFP_PART_INDEX] = fp8.index.offset;
		packed->matrix[m].offset[XFP_PART_CODE] = fp8.code.offset;
		status = xfp_rows_open_again(&source, packed->matrix[m].source, &rows, err);
		while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count)
			status = fp8_block(&fp8, &rows, err);
		xfp_rows_close(&rows);
	}
	if (!status) {
		xfp_cosine_summary(fp8.cosine, total, &packed->cos_median, &packed->cos_p5);
		packed->error = fp8.norm > 0 ? fp8.error / fp8.norm : 0;
	}
	xfp_part_end(&fp8.index, packed);
	xfp_part_end(&fp8.code, packed);
	free(fp8.codes);
	free(fp8.scales);
	free(fp8.w);
	free(fp8.decoded);
	free(fp8.cosine);
	return status;
}
