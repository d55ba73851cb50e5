/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v2.c - the parts of a v2 unit: packed indices, codebooks, balance, outliers.
 */
#include <stdlib.h>

#include "kernels/common/lane_index.h"
#include "kernels/encode/assign.h"
#include "kernels/encode/encode.h"
#include "stages/pack/fitted.h"

#define CODEBOOKS 1024 /* about this many per HDF5 call are efficient */

struct v2 {
	struct xfp_packing packing;
	unsigned k;
	const struct xfp_candidate *candidate;
	uint16_t *codebook; /* codebooks of rows [codebook_first, codebook_end) of the matrix */
	uint64_t codebook_first, codebook_end;
	uint64_t codebooks;          /* read at once: whole blocks */
	struct row_buffers *buffers; /* one per thread */
};

/* One thread's buffers for a row. */
struct row_buffers {
	float *x;
	uint8_t *index;
};

static void pack_row(void *own, int thread, const struct xfp_rows *rows, const struct xfp_marks *marks, uint64_t at)
{
	const struct v2 *v2 = own;
	const struct xfp_packing *p = &v2->packing;
	struct row_buffers *buffers = &v2->buffers[thread];
	uint64_t cols = p->packed->cols, row = rows->first + at;
	struct xfp_quantizer quantizer;

	xfp_rows_scaled(rows, &p->scaling, at, 1, NULL, buffers->x);
	xfp_quantizer_init(&quantizer, v2->k, v2->codebook + ((row - v2->codebook_first) << v2->k));
	xfp_assign_index(&quantizer, buffers->x, cols, buffers->index);
	xfp_lane_index_pack(v2->k, buffers->index, cols, p->index + at * p->row_bytes);
	for (uint64_t i = marks->first[row]; i < marks->first[row + 1]; i++) {
		uint32_t c = marks->column[i];

		p->residual[i] = xfp_residual(buffers->x[c], quantizer.entry[buffers->index[c]]);
	}
}

/* Provide the codebooks of a block; they are written to the unit as they are read, many at a time. */
static enum xfp_status copy_codebooks(void *own, uint32_t m, const struct xfp_rows *rows, struct xfp_error *err)
{
	struct v2 *v2 = own;
	struct xfp_packing *p = &v2->packing;
	uint64_t left = p->packed->rows - rows->first, count = left < v2->codebooks ? left : v2->codebooks;
	enum xfp_status status;

	if (rows->first && rows->first + rows->count <= v2->codebook_end)
		return XFP_OK;
	/* All blocks but the last have the same size, and a fixed number of them is read at once. */
	v2->codebook_first = rows->first;
	v2->codebook_end = rows->first + count;
	status = xfp_fit_read_rows(&p->chosen.fit, v2->candidate, m * p->packed->rows + rows->first, count,
				   v2->codebook, NULL, err);
	if (!status)
		status = xfp_part_append(&p->part[XFP_PART_CODE], v2->codebook, (count << v2->k) * sizeof *v2->codebook,
					 err);
	return status;
}

static enum xfp_status v2_init(struct v2 *v2, struct xfp_error *err)
{
	uint64_t cols = v2->packing.packed->cols, block = v2->packing.block;
	bool good;

	v2->codebooks = (1 + CODEBOOKS / block) * block;
	v2->codebook = malloc((v2->codebooks << v2->k) * sizeof *v2->codebook);
	v2->buffers = calloc((size_t)v2->packing.threads, sizeof *v2->buffers);
	good = v2->codebook && v2->buffers;
	for (int i = 0; good && i < v2->packing.threads; i++) {
		v2->buffers[i].x = xfp_row_new(cols);
		v2->buffers[i].index = malloc(xfp_padded(cols));
		good = v2->buffers[i].x && v2->buffers[i].index;
	}
	return good ? XFP_OK : xfp_no_memory(err);
}

static void v2_free(struct v2 *v2)
{
	for (int i = 0; v2->buffers && i < v2->packing.threads; i++) {
		free(v2->buffers[i].x);
		free(v2->buffers[i].index);
	}
	free(v2->buffers);
	free(v2->codebook);
	xfp_packing_close(&v2->packing);
}

enum xfp_status xfp_pack_v2(struct xfp_job *job, const struct xfp_choice *choice, struct xfp_artifact *artifact,
			    struct xfp_packed *packed, struct xfp_error *err)
{
	static const struct xfp_packing_methods methods = { .block = copy_codebooks, .row = pack_row };
	struct v2 v2 = { .k = choice->candidate.k, .candidate = &choice->candidate };
	enum xfp_status status = xfp_packing_open(&v2.packing, job, choice, packed, err);

	if (!status)
		status = v2_init(&v2, err);
	if (!status)
		status = xfp_packing_write(&v2.packing, choice, &methods, &v2, artifact, err);
	v2_free(&v2);
	return status;
}
