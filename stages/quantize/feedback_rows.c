/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/feedback_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/memory.h"
#include "stages/quantize/group_row.h"
#include "stages/quantize/threads.h"

#define BATCH_ROWS ((uint64_t)256)
#define BATCH_VALUES ((uint64_t)1 << 20) /* of longer rows, fewer make a batch */

/* A thread's memory for a batch. */
struct xfp_feedback_thread {
	void *buffer;
	size_t bytes;
};

static uint64_t batch_rows(uint64_t cols)
{
	const uint64_t rows = BATCH_VALUES / cols / XFP_LANES * XFP_LANES;

	return rows > BATCH_ROWS ? BATCH_ROWS : rows ? rows : XFP_LANES;
}

uint64_t xfp_feedback_rows_wanted(uint64_t cols, int threads)
{
	return batch_rows(cols) * (uint64_t)threads;
}

static uint64_t stride_of(uint64_t cols)
{
	return (cols + XFP_COMPACT_GROUP - 1) / XFP_COMPACT_GROUP * XFP_COMPACT_GROUP;
}

uint64_t xfp_feedback_rows_bytes(uint64_t cols)
{
	return stride_of(cols) * sizeof(float) + stride_of(cols) / 8 + 1;
}

uint64_t xfp_feedback_batches_bytes(uint64_t cols, int threads)
{
	const struct xfp_feedback shape = { .padded = stride_of(cols), .group = XFP_COMPACT_GROUP };

	return (uint64_t)threads * xfp_feedback_batch_bytes(&shape, batch_rows(cols));
}

enum xfp_status xfp_feedback_rows_init(struct xfp_feedback_rows *rows, uint64_t max, uint64_t cols, int threads,
				       struct xfp_error *err)
{
	const uint64_t stride = stride_of(cols);

	*rows = (struct xfp_feedback_rows){ .max = max, .cols = cols, .stride = stride, .threads = threads };
	rows->x = xfp_aligned_new(max * stride * sizeof *rows->x);
	rows->mark = xfp_aligned_new(max * stride / 16 * sizeof *rows->mark);
	rows->byte = xfp_aligned_new(max);
	rows->thread = calloc((size_t)threads, sizeof *rows->thread);
	return rows->x && rows->mark && rows->byte && rows->thread ? XFP_OK : xfp_no_memory(err);
}

void xfp_feedback_rows_free(struct xfp_feedback_rows *rows)
{
	for (int t = 0; rows->thread && t < rows->threads; t++)
		free(rows->thread[t].buffer);
	free(rows->thread);
	free(rows->x);
	free(rows->mark);
	free(rows->byte);
	*rows = (struct xfp_feedback_rows){ 0 };
}

void xfp_feedback_rows_set(struct xfp_feedback_rows *rows, uint64_t row, const float *x, const uint32_t *marked,
			   uint64_t marks)
{
	float *to = rows->x + row * rows->stride;
	uint16_t *mark = rows->mark + row * rows->stride / 16;

	memcpy(to, x, rows->cols * sizeof *to);
	memset(mark, 0, rows->stride / 16 * sizeof *mark);
	for (uint64_t i = 0; i < marks; i++)
		to[marked[i]] = 0;
	rows->byte[row] = xfp_group_row_byte(to, rows->cols, marks);
	for (uint64_t i = 0; i < marks; i++) {
		to[marked[i]] = x[marked[i]];
		mark[marked[i] / 16] |= (uint16_t)(1u << marked[i] % 16);
	}
}

static void encode_batch(struct xfp_feedback_rows *rows, uint64_t first, uint64_t end,
			 const struct xfp_feedback_coder *coder, void *buffer)
{
	const struct xfp_feedback *f = coder->feedback;
	struct xfp_feedback_batch batch;

	xfp_feedback_batch_init(&batch, f, buffer, end - first);
	for (uint64_t r = first; r < end; r++)
		xfp_feedback_load(&batch, r - first, rows->x + r * rows->stride + f->first,
				  rows->mark + (r * rows->stride + f->first) / 16, xfp_compact_row(rows->byte[r]));
	xfp_feedback_encode(&batch, coder->book, coder->tried);
	for (unsigned i = 0; i < coder->passes; i++)
		xfp_feedback_pass(&batch, coder->book);
	for (uint64_t r = first; r < end; r++)
		coder->visit(coder->own, &batch, r - first, r);
}

static enum xfp_status reserve(struct xfp_feedback_rows *rows, size_t bytes, struct xfp_error *err)
{
	for (int t = 0; t < rows->threads; t++) {
		struct xfp_feedback_thread *thread = &rows->thread[t];

		if (thread->bytes >= bytes)
			continue;
		free(thread->buffer);
		thread->buffer = xfp_aligned_new(bytes);
		thread->bytes = thread->buffer ? bytes : 0;
		if (!thread->buffer)
			return xfp_no_memory(err);
	}
	return XFP_OK;
}

/* A batch has no more rows than keep all threads busy; tiles of sixteen rows are independent of each other. */
enum xfp_status xfp_feedback_rows_encode(struct xfp_feedback_rows *rows, uint64_t first, uint64_t end,
					 const struct xfp_feedback_coder *coder, struct xfp_error *err)
{
	const uint64_t share = (end - first + (uint64_t)rows->threads - 1) / (uint64_t)rows->threads;
	const uint64_t whole = (share + XFP_LANES - 1) / XFP_LANES * XFP_LANES, max = batch_rows(rows->cols);
	const uint64_t each = whole < max ? whole : max;
	enum xfp_status status = reserve(rows, xfp_feedback_batch_bytes(coder->feedback, each), err);

	if (status || first == end)
		return status;
#pragma omp parallel for schedule(dynamic, 1)
	for (uint64_t r = first; r < end; r += each)
		encode_batch(rows, r, end - r < each ? end : r + each, coder, rows->thread[xfp_thread()].buffer);
	return XFP_OK;
}
