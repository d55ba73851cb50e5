/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_v2.c - the parts of a v2 unit: packed indices, codebooks, balance, outliers.
 */
#include <stdlib.h>
#include <string.h>

#include "assign.h"
#include "bytes.h"
#include "encode.h"
#include "fit.h"
#include "index.h"
#include "marks.h"
#include "pack.h"
#include "rows.h"
#include "threads.h"

#define CODEBOOKS 1024 /* about as many are worth a call of HDF5 */

struct v2 {
	struct xfp_artifact outliers, fit;
	struct xfp_outliers known;
	struct xfp_part_writer index, code, outlier;
	unsigned k;
	uint64_t row_bytes; /* of packed indices */
	uint16_t *codebook; /* of rows [codebook_first, codebook_end) of the matrix */
	uint64_t codebook_first, codebook_end;
	uint64_t codebooks; /* read at once: whole blocks */
	uint8_t *packed;    /* of a block */
	uint16_t *residual; /* of the matrix, by mark */
	struct xfp_scaling scaling;
	struct room *rooms; /* one a thread */
	int threads;
};

/* One thread's room for a row. */
struct room {
	float *x;
	uint8_t *index;
};

static void pack_row(const struct v2 *v2, struct room *room, const struct xfp_rows *rows, const struct xfp_marks *marks,
		     uint64_t at)
{
	uint64_t cols = v2->known.cols, row = rows->first + at;
	struct xfp_quantizer quantizer;

	xfp_rows_scaled(rows, &v2->scaling, at, 1, NULL, room->x);
	xfp_quantizer_init(&quantizer, v2->k, v2->codebook + ((row - v2->codebook_first) << v2->k));
	xfp_assign_index(&quantizer, room->x, cols, room->index);
	xfp_index_pack(v2->k, room->index, cols, v2->packed + at * v2->row_bytes);
	for (uint64_t i = marks->first[row]; i < marks->first[row + 1]; i++) {
		uint32_t c = marks->column[i];

		v2->residual[i] = xfp_residual(room->x[c], quantizer.entry[room->index[c]]);
	}
}

static enum xfp_status pack_block(struct v2 *v2, const struct xfp_rows *rows, const struct xfp_marks *marks,
				  struct xfp_error *err)
{
#pragma omp parallel for
	for (uint64_t r = 0; r < rows->count; r++)
		pack_row(v2, &v2->rooms[xfp_thread()], rows, marks, r);
	return xfp_part_append(&v2->index, v2->packed, rows->count * v2->row_bytes, err);
}

/* A matrix's outliers as bundle_layout.h lays them out. */
static enum xfp_status write_outliers(struct v2 *v2, const struct xfp_marks *marks, struct xfp_error *err)
{
	uint64_t rows = v2->known.rows, cols = v2->known.cols, bytes = xfp_outlier_bytes(rows, cols, marks->count);
	size_t wide = cols > 65536 ? 4 : 2;
	uint8_t *data = calloc(bytes, 1), *column, *residual;
	enum xfp_status status;

	if (!data)
		return xfp_fail(err, XFP_FAILED, "out of memory");
	column = data + (rows + 1) * 4;
	residual = column + (marks->count * wide + 3) / 4 * 4;
	for (uint64_t r = 0; r <= rows; r++)
		xfp_store32(data + r * 4, (uint32_t)marks->first[r]);
	for (uint64_t i = 0; i < marks->count; i++) {
		uint32_t c = marks->column[i];

		memcpy(column + i * wide, &c, wide);
		xfp_store16(residual + i * 2, v2->residual[i]);
	}
	status = xfp_part_append(&v2->outlier, data, bytes, err);
	free(data);
	return status;
}

/* Have the codebooks of a block; they become part of the unit as they are read, many at a time. */
static enum xfp_status copy_codebooks(struct v2 *v2, uint32_t m, const struct xfp_rows *rows, struct xfp_error *err)
{
	uint64_t left = v2->known.rows - rows->first, count = left < v2->codebooks ? left : v2->codebooks;
	enum xfp_status status;

	if (rows->first && rows->first + rows->count <= v2->codebook_end)
		return XFP_OK;
	/* Blocks are all of one size but the last, and so many of them are read at once. */
	v2->codebook_first = rows->first;
	v2->codebook_end = rows->first + count;
	status = xfp_fit_read_rows(&v2->fit, v2->k, m * v2->known.rows + rows->first, count, v2->codebook, NULL, err);
	if (!status)
		status = xfp_part_append(&v2->code, v2->codebook, (count << v2->k) * sizeof *v2->codebook, err);
	return status;
}

static enum xfp_status pack_matrix(struct xfp_job *job, struct v2 *v2, uint32_t m, struct xfp_packed *packed,
				   struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, m);
	struct xfp_packed_matrix *matrix = &packed->matrix[m];
	struct xfp_marks marks = { 0 };
	struct xfp_rows rows = { 0 };
	enum xfp_status status = xfp_marks_load(&v2->outliers, &v2->known, m, &marks, err);

	matrix->exponent = v2->known.exponent[m];
	matrix->outliers = marks.count;
	matrix->offset[XFP_PART_INDEX] = v2->index.offset;
	matrix->offset[XFP_PART_CODE] = v2->code.offset;
	matrix->offset[XFP_PART_OUTLIER] = marks.count ? v2->outlier.offset : 0;
	xfp_scaling_set(&v2->scaling, v2->known.balance, v2->known.exponent[m]);
	if (!status && marks.count > UINT32_MAX)
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "more outliers than 32-bit row pointers can count; raise --outlier-sigma");
	v2->residual = malloc((marks.count + 1) * sizeof *v2->residual);
	if (!status && !v2->residual)
		status = xfp_fail(err, XFP_FAILED, "out of memory");
	if (!status)
		status = xfp_rows_open(&source, &rows, err);
	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
		status = copy_codebooks(v2, m, &rows, err);
		if (!status)
			status = pack_block(v2, &rows, &marks, err);
	}
	if (!status && marks.count)
		status = write_outliers(v2, &marks, err);
	xfp_rows_close(&rows);
	xfp_marks_free(&marks);
	free(v2->residual);
	v2->residual = NULL;
	return status;
}

/* Sizes of all parts, before any is written. */
static void lay_out(const struct v2 *v2, struct xfp_packed *packed)
{
	const struct xfp_outliers *known = &v2->known;
	uint64_t rows = packed->matrices * packed->rows;

	packed->bytes[XFP_PART_INDEX] = rows * v2->row_bytes;
	packed->bytes[XFP_PART_CODE] = (rows << v2->k) * sizeof(uint16_t);
	for (uint64_t c = 0; c < packed->cols; c++)
		if (known->balance[c])
			packed->bytes[XFP_PART_BALANCE] = packed->cols;
	for (uint32_t m = 0; m < packed->matrices; m++)
		packed->bytes[XFP_PART_OUTLIER] +=
			xfp_outlier_bytes(packed->rows, packed->cols, known->first[m + 1] - known->first[m]);
	packed->outliers = known->first[packed->matrices];
}

static enum xfp_status write_parts(struct xfp_job *job, struct v2 *v2, struct xfp_artifact *artifact,
				   struct xfp_packed *packed, struct xfp_error *err)
{
	struct xfp_part_writer balance = { 0 };
	enum xfp_status status = xfp_packed_begin(artifact, packed, err);

	xfp_part_begin(&v2->index, artifact, XFP_PART_INDEX);
	xfp_part_begin(&v2->code, artifact, XFP_PART_CODE);
	xfp_part_begin(&v2->outlier, artifact, XFP_PART_OUTLIER);
	xfp_part_begin(&balance, artifact, XFP_PART_BALANCE);
	if (!status && packed->bytes[XFP_PART_BALANCE])
		status = xfp_part_append(&balance, v2->known.balance, packed->cols, err);
	for (uint32_t m = 0; !status && m < packed->matrices; m++)
		status = pack_matrix(job, v2, m, packed, err);
	xfp_part_end(&v2->index, packed);
	xfp_part_end(&v2->code, packed);
	xfp_part_end(&v2->outlier, packed);
	xfp_part_end(&balance, packed);
	return status;
}

/* The fit that the choice names, and the outliers that it was made from: whatever the stamps say. */
static enum xfp_status open_inputs(struct xfp_job *job, const struct xfp_choice *choice, struct v2 *v2,
				   struct xfp_error *err)
{
	struct xfp_fit table;
	char key[33];
	bool more = xfp_stamp_read(job->work, job->number, XFP_STAMP_MORE, key) && !strcmp(key, choice->fit);
	enum xfp_status status = xfp_job_open_key(job, more ? XFP_STAMP_MORE : XFP_STAMP_FIT, choice->fit, XFP_FIT_KIND,
						  XFP_FIT_VERSION, &v2->fit, err);

	if (!status)
		status = xfp_fit_read(&v2->fit, &table, err);
	if (!status)
		status = xfp_job_open_key(job, XFP_STAMP_OUTLIERS, table.outliers, XFP_OUTLIERS_KIND,
					  XFP_OUTLIERS_VERSION, &v2->outliers, err);
	return status ? status : xfp_outliers_read(&v2->outliers, &v2->known, err);
}

static enum xfp_status v2_init(struct v2 *v2, uint64_t cols, uint64_t block, struct xfp_error *err)
{
	bool short_of_memory;

	v2->row_bytes = xfp_v2_row_bytes(cols, v2->k);
	v2->codebooks = (1 + CODEBOOKS / block) * block;
	v2->codebook = malloc((v2->codebooks << v2->k) * sizeof *v2->codebook);
	v2->packed = malloc(block * v2->row_bytes);
	v2->threads = xfp_threads();
	v2->rooms = calloc((size_t)v2->threads, sizeof *v2->rooms);
	short_of_memory = !v2->codebook || !v2->packed || !v2->rooms;
	for (int i = 0; !short_of_memory && i < v2->threads; i++) {
		v2->rooms[i].x = xfp_row_new(cols);
		v2->rooms[i].index = malloc(xfp_padded(cols));
		short_of_memory = !v2->rooms[i].x || !v2->rooms[i].index;
	}
	return short_of_memory ? xfp_fail(err, XFP_FAILED, "out of memory") : xfp_scaling_init(&v2->scaling, cols, err);
}

static void v2_free(struct v2 *v2)
{
	xfp_artifact_close(&v2->fit);
	xfp_artifact_close(&v2->outliers);
	xfp_outliers_free(&v2->known);
	xfp_scaling_free(&v2->scaling);
	for (int i = 0; v2->rooms && i < v2->threads; i++) {
		free(v2->rooms[i].x);
		free(v2->rooms[i].index);
	}
	free(v2->rooms);
	free(v2->codebook);
	free(v2->packed);
}

enum xfp_status xfp_pack_v2(struct xfp_job *job, const struct xfp_choice *choice, struct xfp_artifact *artifact,
			    struct xfp_packed *packed, struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, 0);
	struct v2 v2 = { .k = choice->candidate.k };
	enum xfp_status status = open_inputs(job, choice, &v2, err);

	if (!status)
		status = v2_init(&v2, packed->cols, xfp_rows_block(&source), err);
	if (!status) {
		lay_out(&v2, packed);
		packed->cos_median = choice->candidate.cos_median;
		packed->cos_p5 = choice->candidate.cos_p5;
		packed->error = choice->candidate.error;
		status = write_parts(job, &v2, artifact, packed, err);
	}
	for (uint32_t m = 0; !status && m < packed->matrices; m++)
		memcpy(packed->matrix[m].source, v2.known.source[m], sizeof packed->matrix[m].source);
	v2_free(&v2);
	return status;
}
