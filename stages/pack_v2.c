/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_v2.c - the parts of a v2 unit: packed indices, codebooks, balance, outliers.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/lane_index.h"
#include "kernels/encode/assign.h"
#include "kernels/encode/encode.h"
#include "stages/chosen.h"
#include "stages/pack.h"
#include "stages/quantize/rows.h"
#include "stages/quantize/threads.h"

#define CODEBOOKS 1024 /* about as many are worth a call of HDF5 */

struct v2 {
	struct xfp_chosen chosen;
	struct xfp_part_writer index, code, outlier;
	unsigned k;
	const struct xfp_candidate *candidate;
	uint64_t row_bytes; /* of packed indices */
	uint16_t *codebook; /* of rows [codebook_first, codebook_end) of the matrix */
	uint64_t codebook_first, codebook_end;
	uint64_t codebooks; /* read at once: whole blocks */
	uint8_t *packed;    /* of a block */
	uint16_t *residual; /* of the matrix, by mark */
	struct xfp_scaling scaling;
	struct row_buffers *rooms; /* one a thread */
	int threads;
};

/* One thread's room for a row. */
struct row_buffers {
	float *x;
	uint8_t *index;
};

static void pack_row(const struct v2 *v2, struct row_buffers *room, const struct xfp_rows *rows,
		     const struct xfp_marks *marks, uint64_t at)
{
	uint64_t cols = v2->chosen.known.cols, row = rows->first + at;
	struct xfp_quantizer quantizer;

	xfp_rows_scaled(rows, &v2->scaling, at, 1, NULL, room->x);
	xfp_quantizer_init(&quantizer, v2->k, v2->codebook + ((row - v2->codebook_first) << v2->k));
	xfp_assign_index(&quantizer, room->x, cols, room->index);
	xfp_lane_index_pack(v2->k, room->index, cols, v2->packed + at * v2->row_bytes);
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

/* Have the codebooks of a block; they become part of the unit as they are read, many at a time. */
static enum xfp_status copy_codebooks(struct v2 *v2, uint32_t m, const struct xfp_rows *rows, struct xfp_error *err)
{
	uint64_t left = v2->chosen.known.rows - rows->first, count = left < v2->codebooks ? left : v2->codebooks;
	enum xfp_status status;

	if (rows->first && rows->first + rows->count <= v2->codebook_end)
		return XFP_OK;
	/* Blocks are all of one size but the last, and so many of them are read at once. */
	v2->codebook_first = rows->first;
	v2->codebook_end = rows->first + count;
	status = xfp_fit_read_rows(&v2->chosen.fit, v2->candidate, m * v2->chosen.known.rows + rows->first, count,
				   v2->codebook, NULL, err);
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
	enum xfp_status status = xfp_chosen_marks(&v2->chosen, m, &marks, err);

	matrix->offset[XFP_PART_INDEX] = v2->index.offset;
	matrix->offset[XFP_PART_CODE] = v2->code.offset;
	matrix->offset[XFP_PART_OUTLIER] = marks.count ? v2->outlier.offset : 0;
	xfp_scaling_set(&v2->scaling, v2->chosen.known.balance, v2->chosen.known.exponent[m]);
	v2->residual = malloc((marks.count + 1) * sizeof *v2->residual);
	if (!status && !v2->residual)
		status = xfp_no_memory(err);
	if (!status)
		status = xfp_rows_open_again(&source, matrix->source, &rows, err);
	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
		status = copy_codebooks(v2, m, &rows, err);
		if (!status)
			status = pack_block(v2, &rows, &marks, err);
	}
	if (!status && marks.count)
		status = xfp_chosen_write_outliers(&v2->chosen, &marks, v2->residual, &v2->outlier, err);
	xfp_rows_close(&rows);
	xfp_marks_free(&marks);
	free(v2->residual);
	v2->residual = NULL;
	return status;
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
		status = xfp_part_append(&balance, v2->chosen.known.balance, packed->cols, err);
	for (uint32_t m = 0; !status && m < packed->matrices; m++)
		status = pack_matrix(job, v2, m, packed, err);
	xfp_part_end(&v2->index, packed);
	xfp_part_end(&v2->code, packed);
	xfp_part_end(&v2->outlier, packed);
	xfp_part_end(&balance, packed);
	return status;
}

static enum xfp_status v2_init(struct v2 *v2, uint64_t cols, uint64_t block, struct xfp_error *err)
{
	bool short_of_memory;

	v2->row_bytes = xfp_index_row_bytes(cols, v2->k);
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
	return short_of_memory ? xfp_no_memory(err) : xfp_scaling_init(&v2->scaling, cols, err);
}

static void v2_free(struct v2 *v2)
{
	xfp_chosen_close(&v2->chosen);
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
	struct v2 v2 = { .k = choice->candidate.k, .candidate = &choice->candidate };
	enum xfp_status status = xfp_chosen_open(job, choice, &v2.chosen, err);

	if (!status)
		status = v2_init(&v2, packed->cols, xfp_rows_block(&source), err);
	if (!status) {
		xfp_chosen_describe(&v2.chosen, choice, packed);
		status = write_parts(job, &v2, artifact, packed, err);
	}
	v2_free(&v2);
	return status;
}
