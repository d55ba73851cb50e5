/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feedback_rows.h - rows in memory, which threads encode with error feedback in batches (kernels/feedback/feedback.h).
 */
#ifndef XFP_FEEDBACK_ROWS_H
#define XFP_FEEDBACK_ROWS_H

#include "base/xfp_error.h"
#include "kernels/feedback/feedback.h"

struct xfp_feedback_rows {
	uint64_t max, cols;
	uint64_t stride; /* cols in whole groups of any size */
	float *x;        /* [max][stride] scaled rows */
	uint16_t *mark;  /* [max][stride / 16] a bit per marked column */
	uint8_t *byte;   /* [max] of their row scales */
	int threads;
	struct xfp_feedback_thread *thread;
};

/* What encodes them. */
struct xfp_feedback_coder {
	const struct xfp_feedback *feedback;
	const struct xfp_compact_book *book;
	unsigned tried, passes;
	/* Called for each row of an encoded batch, in the batch's thread. */
	void (*visit)(void *own, const struct xfp_feedback_batch *batch, size_t at, uint64_t row);
	void *own;
};

/* The number of rows that keeps all threads busy. */
uint64_t xfp_feedback_rows_wanted(uint64_t cols, int threads);

/* Bytes per row, and of all threads' batches. */
uint64_t xfp_feedback_rows_bytes(uint64_t cols);
uint64_t xfp_feedback_batches_bytes(uint64_t cols, int threads);

/* Allocate memory for `max` rows of `cols` columns. The caller frees it even after a failure. */
enum xfp_status xfp_feedback_rows_init(struct xfp_feedback_rows *rows, uint64_t max, uint64_t cols, int threads,
				       struct xfp_error *err);
void xfp_feedback_rows_free(struct xfp_feedback_rows *rows);

/* Store a padded row, scaled; `marked` are the numbers of its `marks` marked columns, which are stored as x has them;
 * the row scale is that of the others. Rows may be stored by several threads. */
void xfp_feedback_rows_set(struct xfp_feedback_rows *rows, uint64_t row, const float *x, const uint32_t *marked,
			   uint64_t marks);

/* Encode the feedback's columns of rows [first, end). */
enum xfp_status xfp_feedback_rows_encode(struct xfp_feedback_rows *rows, uint64_t first, uint64_t end,
					 const struct xfp_feedback_coder *coder, struct xfp_error *err);

#endif
