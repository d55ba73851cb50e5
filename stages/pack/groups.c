/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups.c - the parts of a v2a or v2c unit: packed indices, library, groups, balance, outliers.
 *
 * The library comes from the fit. A fit of few candidates contains the bytes of v2c, too, so only indices are computed;
 * otherwise all codes are computed again, with the same result. A calibrated fit contains all codes, because they
 * depend on the inputs of the unit's matrices.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/lane_index.h"
#include "kernels/encode/assign.h"
#include "kernels/encode/encode.h"
#include "stages/pack/fitted.h"
#include "stages/quantize/group_row.h"

struct group_packing {
	struct xfp_packing packing;
	struct xfp_group_library library;
	struct xfp_grouping grouping;
	struct xfp_library_code stored;
	uint8_t *entry, *row;          /* codes of the matrix: by group; v2c: by row */
	uint16_t *pair;                /* v2a: scale and midpoint by group */
	struct group_buffers *buffers; /* one per thread */
};

/* One thread's buffers for a row. */
struct group_buffers {
	float *x, *value, *marked;
	struct xfp_group_row row;
	struct xfp_group_codes codes;
};

/* Read the bytes of a matrix, before its first block. */
static enum xfp_status read_bytes(void *own, uint32_t m, const struct xfp_rows *rows, struct xfp_error *err)
{
	struct group_packing *p = own;
	const struct xfp_fit_codes codes = { p->entry, p->row, NULL };
	const uint64_t count = p->packing.packed->rows;

	return rows->first ? XFP_OK
			   : xfp_fit_read_codes(&p->packing.chosen.fit, p->library.candidate, p->grouping.cols,
						m * count, count, &codes, err);
}

/* Compute the codes of a row from its weights. */
static void encode_row(const struct group_packing *p, struct group_buffers *buffers, const uint32_t *column,
		       uint64_t count, uint64_t row)
{
	uint64_t groups = p->grouping.groups, first = row * groups;

	xfp_group_row_load(&buffers->row, buffers->x, column, count);
	xfp_group_encode(&p->library, &buffers->row, &buffers->codes, buffers->value);
	memcpy(p->entry + first, buffers->codes.entry, groups);
	if (p->row)
		p->row[row] = buffers->row.row;
	for (uint64_t g = 0; p->pair && g < groups; g++) {
		p->pair[2 * (first + g)] = buffers->codes.scale[g];
		p->pair[2 * (first + g) + 1] = buffers->codes.midpoint[g];
	}
}

static void pack_row(void *own, int thread, const struct xfp_rows *rows, const struct xfp_marks *marks, uint64_t at)
{
	const struct group_packing *p = own;
	struct group_buffers *buffers = &p->buffers[thread];
	uint64_t row = rows->first + at;
	const uint32_t *column = marks->column + marks->first[row];
	uint64_t count = marks->first[row + 1] - marks->first[row];
	struct xfp_compact_book *book = p->library.compact;
	uint8_t *index = buffers->codes.index, *byte = p->entry + row * p->grouping.groups;

	xfp_rows_scaled(rows, &p->packing.scaling, at, 1, NULL, buffers->x);
	for (uint64_t i = 0; i < count; i++) {
		buffers->marked[i] = buffers->x[column[i]];
		buffers->x[column[i]] = 0;
	}
	if (book && p->packing.chosen.bytes)
		xfp_encoder()->compact->index(book, buffers->x, byte, xfp_compact_row(p->row[row]), p->grouping.cols,
					      index);
	else
		encode_row(p, buffers, column, count, row);
	xfp_lane_index_pack(p->library.candidate->k, index, p->grouping.cols,
			    p->packing.index + at * p->packing.row_bytes);
	for (uint64_t i = 0; i < count; i++) {
		uint32_t c = column[i];
		float value = book ? xfp_compact_value(book, byte[c / p->grouping.group], index[c], p->row[row])
				   : buffers->value[c];

		p->packing.residual[marks->first[row] + i] = xfp_residual(buffers->marked[i], value);
	}
}

/* Copy the codes of a matrix from the fit. */
static enum xfp_status copy_matrix(void *own, uint32_t m, const struct xfp_marks *marks, struct xfp_error *err)
{
	struct group_packing *p = own;
	struct xfp_packing *packing = &p->packing;
	struct xfp_artifact *fit = &packing->chosen.fit;
	const struct xfp_candidate *candidate = p->library.candidate;
	const uint64_t rows = packing->packed->rows, cols = packing->packed->cols;
	enum xfp_status status = xfp_fit_read_residuals(fit, candidate, packing->chosen.known.first[m], marks->count,
							packing->residual, err);

	for (uint64_t first = 0; !status && first < rows; first += packing->block) {
		const uint64_t count = rows - first < packing->block ? rows - first : packing->block;
		const struct xfp_fit_codes codes = { p->entry + first * p->grouping.groups, p->row + first,
						     packing->index };

		status = xfp_fit_read_codes(fit, candidate, cols, m * rows + first, count, &codes, err);
		if (!status)
			status = xfp_part_append(&packing->part[XFP_PART_INDEX], packing->index,
						 count * packing->row_bytes, err);
		xfp_watch_done(packing->job->ledger->watcher, count * cols);
	}
	return status;
}

/* Write the groups of a matrix in the layout of bundle_layout.h. */
static enum xfp_status write_groups(void *own, struct xfp_error *err)
{
	static const uint8_t zeros[XFP_ROW_ALIGN];
	struct group_packing *p = own;
	const struct xfp_packed *packed = p->packing.packed;
	struct xfp_part_writer *part = &p->packing.part[XFP_PART_GROUP];
	uint64_t rows = packed->rows, groups = rows * p->grouping.groups;
	uint64_t bytes = packed->bytes[XFP_PART_GROUP] / packed->matrices;
	uint64_t used = p->pair ? groups * 5 : groups + rows;
	enum xfp_status status = XFP_OK;

	if (p->pair)
		status = xfp_part_append(part, p->pair, groups * 4, err);
	if (!status)
		status = xfp_part_append(part, p->entry, groups, err);
	if (!status && p->row)
		status = xfp_part_append(part, p->row, rows, err);
	return status ? status : xfp_part_append(part, zeros, bytes - used, err);
}

static enum xfp_status write_library(void *own, struct xfp_error *err)
{
	struct group_packing *p = own;
	uint64_t codes = xfp_candidate_code(p->library.candidate) * sizeof *p->stored.code;

	return xfp_part_append(&p->packing.part[XFP_PART_CODE], p->stored.code, codes, err);
}

static enum xfp_status packing_init(struct group_packing *p, const struct xfp_candidate *candidate, unsigned published,
				    struct xfp_error *err)
{
	uint64_t cols = p->packing.packed->cols, rows = p->packing.packed->rows, groups;
	bool good;

	p->grouping = xfp_grouping_of(candidate, cols);
	groups = rows * p->grouping.groups;
	p->entry = malloc(groups);
	if (candidate->mode == XFP_MODE_V2A)
		p->pair = malloc(groups * 4);
	else
		p->row = malloc(rows);
	p->buffers = calloc((size_t)p->packing.threads, sizeof *p->buffers);
	good = xfp_library_init(&p->library, candidate, published) && xfp_library_code_init(&p->stored, candidate) &&
	       p->entry && (p->pair || p->row) && p->buffers;
	for (int i = 0; good && i < p->packing.threads; i++) {
		struct group_buffers *buffers = &p->buffers[i];

		buffers->x = xfp_row_new(cols);
		buffers->value = xfp_row_new(cols);
		buffers->marked = xfp_row_new(cols);
		good = xfp_group_row_init(&buffers->row, &p->grouping) &&
		       xfp_group_codes_init(&buffers->codes, &p->grouping) && buffers->x && buffers->value &&
		       buffers->marked;
	}
	return good ? XFP_OK : xfp_no_memory(err);
}

static void packing_free(struct group_packing *p)
{
	xfp_library_free(&p->library);
	for (int i = 0; p->buffers && i < p->packing.threads; i++) {
		free(p->buffers[i].x);
		free(p->buffers[i].value);
		free(p->buffers[i].marked);
		xfp_group_row_free(&p->buffers[i].row);
		xfp_group_codes_free(&p->buffers[i].codes);
	}
	free(p->buffers);
	xfp_library_code_free(&p->stored);
	free(p->entry);
	free(p->pair);
	free(p->row);
	xfp_packing_close(&p->packing);
}

enum xfp_status xfp_pack_groups(struct xfp_job *job, const struct xfp_choice *choice, struct xfp_artifact *artifact,
				struct xfp_packed *packed, struct xfp_error *err)
{
	struct xfp_packing_methods methods = { .begin = write_library, .row = pack_row, .end = write_groups };
	struct group_packing p = { .entry = NULL };
	enum xfp_status status = xfp_packing_open(&p.packing, job, choice, packed, err);

	if (!status)
		status = packing_init(&p, &choice->candidate, xfp_library_published(&job->parameters), err);
	if (!status)
		status = xfp_fit_read_library(&p.packing.chosen.fit, &choice->candidate, p.stored.code, p.stored.hints,
					      err);
	if (p.packing.chosen.coded)
		methods.copy = copy_matrix;
	else if (p.packing.chosen.bytes && p.library.compact)
		methods.block = read_bytes;
	if (!status) {
		xfp_library_open(&p.library, &p.stored);
		status = xfp_packing_write(&p.packing, choice, &methods, &p, artifact, err);
	}
	packing_free(&p);
	return status;
}
