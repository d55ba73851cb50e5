/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack_groups.c - the parts of a v2a or v2c unit: packed indices, library, groups, balance, outliers.
 *
 * The library is that of the fit; what groups take from it is found again, the same.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/lane_index.h"
#include "kernels/encode/assign.h"
#include "stages/chosen.h"
#include "stages/quantize/group_row.h"
#include "stages/quantize/rows.h"
#include "stages/quantize/threads.h"

struct packing {
	struct xfp_chosen chosen;
	struct xfp_part_writer index, code, group, outlier;
	struct xfp_group_library library;
	struct xfp_grouping grouping;
	uint64_t row_bytes; /* of packed indices */
	struct xfp_library_code stored;
	uint8_t *packed;      /* of a block */
	uint8_t *entry, *row; /* of the matrix: by group; v2c: by row */
	uint16_t *pair;       /* v2a: scale and midpoint by group */
	uint16_t *residual;   /* of the matrix, by mark */
	struct xfp_scaling scaling;
	struct group_buffers *rooms; /* one a thread */
	int threads;
};

/* One thread's room for a row. */
struct group_buffers {
	float *x, *value, *marked;
	struct xfp_group_row row;
	struct xfp_group_codes codes;
};

static void pack_row(const struct packing *p, struct group_buffers *room, const struct xfp_rows *rows,
		     const struct xfp_marks *marks, uint64_t at)
{
	uint64_t row = rows->first + at, groups = p->grouping.groups, first = row * groups;
	const uint32_t *column = marks->column + marks->first[row];
	uint64_t count = marks->first[row + 1] - marks->first[row];

	xfp_rows_scaled(rows, &p->scaling, at, 1, NULL, room->x);
	for (uint64_t i = 0; i < count; i++) {
		room->marked[i] = room->x[column[i]];
		room->x[column[i]] = 0;
	}
	xfp_group_row_load(&room->row, room->x, column, count);
	xfp_group_encode(&p->library, &room->row, &room->codes, room->value);
	xfp_lane_index_pack(p->library.candidate->k, room->codes.index, p->grouping.cols,
			    p->packed + at * p->row_bytes);
	memcpy(p->entry + first, room->codes.entry, groups);
	if (p->row)
		p->row[row] = room->codes.row;
	for (uint64_t g = 0; p->pair && g < groups; g++) {
		p->pair[2 * (first + g)] = room->codes.scale[g];
		p->pair[2 * (first + g) + 1] = room->codes.midpoint[g];
	}
	for (uint64_t i = 0; i < count; i++)
		p->residual[marks->first[row] + i] = xfp_residual(room->marked[i], room->value[column[i]]);
}

/* Groups of a matrix, as bundle_layout.h lays them out. */
static enum xfp_status write_groups(struct packing *p, uint64_t bytes, struct xfp_error *err)
{
	static const uint8_t zeros[XFP_ROW_ALIGN];
	uint64_t rows = p->chosen.known.rows, groups = rows * p->grouping.groups;
	uint64_t used = p->pair ? groups * 5 : groups + rows;
	enum xfp_status status = XFP_OK;

	if (p->pair)
		status = xfp_part_append(&p->group, p->pair, groups * 4, err);
	if (!status)
		status = xfp_part_append(&p->group, p->entry, groups, err);
	if (!status && p->row)
		status = xfp_part_append(&p->group, p->row, rows, err);
	return status ? status : xfp_part_append(&p->group, zeros, bytes - used, err);
}

static enum xfp_status pack_matrix(struct xfp_job *job, struct packing *p, uint32_t m, uint64_t group_bytes,
				   struct xfp_packed *packed, struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, m);
	struct xfp_packed_matrix *matrix = &packed->matrix[m];
	const struct xfp_outliers *known = &p->chosen.known;
	struct xfp_marks marks = { 0 };
	struct xfp_rows rows = { 0 };
	enum xfp_status status = xfp_chosen_marks(&p->chosen, m, &marks, err);

	matrix->offset[XFP_PART_INDEX] = p->index.offset;
	matrix->offset[XFP_PART_GROUP] = p->group.offset;
	matrix->offset[XFP_PART_OUTLIER] = marks.count ? p->outlier.offset : 0;
	xfp_scaling_set(&p->scaling, known->balance, known->exponent[m]);
	p->residual = malloc((marks.count + 1) * sizeof *p->residual);
	if (!status && !p->residual)
		status = xfp_no_memory(err);
	if (!status)
		status = xfp_rows_open_again(&source, matrix->source, &rows, err);
	while (!status && !(status = xfp_rows_next(&rows, err)) && rows.count) {
#pragma omp parallel for
		for (uint64_t r = 0; r < rows.count; r++)
			pack_row(p, &p->rooms[xfp_thread()], &rows, &marks, r);
		status = xfp_part_append(&p->index, p->packed, rows.count * p->row_bytes, err);
	}
	if (!status)
		status = write_groups(p, group_bytes, err);
	if (!status && marks.count)
		status = xfp_chosen_write_outliers(&p->chosen, &marks, p->residual, &p->outlier, err);
	xfp_rows_close(&rows);
	xfp_marks_free(&marks);
	free(p->residual);
	p->residual = NULL;
	return status;
}

static enum xfp_status write_parts(struct xfp_job *job, struct packing *p, struct xfp_artifact *artifact,
				   struct xfp_packed *packed, struct xfp_error *err)
{
	uint64_t codes = xfp_candidate_code(p->library.candidate) * sizeof *p->stored.code;
	uint64_t groups = packed->bytes[XFP_PART_GROUP] / packed->matrices;
	struct xfp_part_writer balance = { 0 };
	enum xfp_status status = xfp_packed_begin(artifact, packed, err);

	xfp_part_begin(&p->index, artifact, XFP_PART_INDEX);
	xfp_part_begin(&p->code, artifact, XFP_PART_CODE);
	xfp_part_begin(&p->group, artifact, XFP_PART_GROUP);
	xfp_part_begin(&balance, artifact, XFP_PART_BALANCE);
	xfp_part_begin(&p->outlier, artifact, XFP_PART_OUTLIER);
	if (!status)
		status = xfp_part_append(&p->code, p->stored.code, codes, err);
	if (!status && packed->bytes[XFP_PART_BALANCE])
		status = xfp_part_append(&balance, p->chosen.known.balance, packed->cols, err);
	for (uint32_t m = 0; !status && m < packed->matrices; m++)
		status = pack_matrix(job, p, m, groups, packed, err);
	xfp_part_end(&p->index, packed);
	xfp_part_end(&p->code, packed);
	xfp_part_end(&p->group, packed);
	xfp_part_end(&balance, packed);
	xfp_part_end(&p->outlier, packed);
	return status;
}

static enum xfp_status packing_init(struct packing *p, const struct xfp_candidate *candidate, unsigned published,
				    uint64_t block, struct xfp_error *err)
{
	uint64_t cols = p->chosen.known.cols, rows = p->chosen.known.rows, groups;
	bool good;

	p->grouping = xfp_grouping_of(candidate, cols);
	groups = rows * p->grouping.groups;
	p->row_bytes = xfp_index_row_bytes(cols, candidate->k);
	p->packed = malloc(block * p->row_bytes);
	p->entry = malloc(groups);
	if (candidate->mode == XFP_MODE_V2A)
		p->pair = malloc(groups * 4);
	else
		p->row = malloc(rows);
	p->threads = xfp_threads();
	p->rooms = calloc((size_t)p->threads, sizeof *p->rooms);
	good = xfp_library_init(&p->library, candidate, published) && xfp_library_code_init(&p->stored, candidate) &&
	       p->packed && p->entry && (p->pair || p->row) && p->rooms;
	for (int i = 0; good && i < p->threads; i++) {
		struct group_buffers *room = &p->rooms[i];

		room->x = xfp_row_new(cols);
		room->value = xfp_row_new(cols);
		room->marked = xfp_row_new(cols);
		good = xfp_group_row_init(&room->row, &p->grouping) &&
		       xfp_group_codes_init(&room->codes, &p->grouping) && room->x && room->value && room->marked;
	}
	return good ? xfp_scaling_init(&p->scaling, cols, err) : xfp_no_memory(err);
}

static void packing_free(struct packing *p)
{
	xfp_chosen_close(&p->chosen);
	xfp_scaling_free(&p->scaling);
	xfp_library_free(&p->library);
	for (int i = 0; p->rooms && i < p->threads; i++) {
		free(p->rooms[i].x);
		free(p->rooms[i].value);
		free(p->rooms[i].marked);
		xfp_group_row_free(&p->rooms[i].row);
		xfp_group_codes_free(&p->rooms[i].codes);
	}
	free(p->rooms);
	xfp_library_code_free(&p->stored);
	free(p->packed);
	free(p->entry);
	free(p->pair);
	free(p->row);
}

enum xfp_status xfp_pack_groups(struct xfp_job *job, const struct xfp_choice *choice, struct xfp_artifact *artifact,
				struct xfp_packed *packed, struct xfp_error *err)
{
	struct xfp_matrix_source source = xfp_ledger_source(job->ledger, 0);
	struct packing p = { .row_bytes = 0 };
	enum xfp_status status = xfp_chosen_open(job, choice, &p.chosen, err);

	if (!status)
		status = packing_init(&p, &choice->candidate, xfp_library_published(&job->parameters),
				      xfp_rows_block(&source), err);
	if (!status)
		status = xfp_fit_read_library(&p.chosen.fit, &choice->candidate, p.stored.code, p.stored.hints, err);
	if (!status) {
		xfp_library_open(&p.library, &p.stored);
		xfp_chosen_describe(&p.chosen, choice, packed);
		status = write_parts(job, &p, artifact, packed, err);
	}
	packing_free(&p);
	return status;
}
