/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/library_feedback.h"

#include <stdlib.h>

static enum xfp_status compute(struct xfp_library_feedback *fb, const struct xfp_training *training, unsigned group,
			       struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t m = 0; m < fb->matrices; m++) {
		for (size_t b = 0; !status && b < fb->blocks; b++) {
			struct xfp_feedback *f = &fb->f[m * fb->blocks + b];

			status = xfp_second_moments_block(training->moments, group, b, f, err);
			if (!status)
				status = xfp_second_moments_compute(training->moments, training->matrix[m], f, err);
		}
	}
	return status;
}

enum xfp_status xfp_library_feedback_init(struct xfp_library_feedback *fb, const struct xfp_training *training,
					  const struct xfp_grouping *grouping, uint64_t rows, uint64_t each,
					  struct xfp_error *err)
{
	struct xfp_grouping all = *grouping;
	bool good;

	fb->matrices = training->matrices;
	fb->blocks = training->blocks;
	fb->each = each;
	all.groups = rows * each;
	all.cols = all.groups * grouping->group;
	fb->f = calloc(fb->matrices * fb->blocks, sizeof *fb->f);
	fb->group = malloc((all.groups + 1) * sizeof *fb->group);
	fb->byte = malloc(all.groups + 1);
	fb->index = malloc(all.cols + XFP_COMPACT_GROUP);
	good = xfp_group_row_init(&fb->sample, &all) && fb->f && fb->group && fb->byte && fb->index;
	if (!good)
		return xfp_no_memory(err);
	if (xfp_feedback_rows_init(&fb->rows, rows, grouping->cols, training->moments->threads, err))
		return XFP_FAILED;
	return compute(fb, training, grouping->group, err);
}

void xfp_library_feedback_free(struct xfp_library_feedback *fb)
{
	for (size_t i = 0; fb->f && i < fb->matrices * fb->blocks; i++)
		xfp_second_moments_release(&fb->f[i]);
	free(fb->f);
	free(fb->group);
	free(fb->byte);
	free(fb->index);
	xfp_group_row_free(&fb->sample);
	xfp_feedback_rows_free(&fb->rows);
}

void xfp_library_feedback_add(struct xfp_library_feedback *fb, const struct xfp_training_row *row, uint64_t number)
{
	xfp_feedback_rows_set(&fb->rows, number, row->x, row->marked, row->marks);
	for (uint32_t m = row->matrix; m < fb->matrices; m++)
		fb->first[m + 1] = number + 1;
}

static void sample_row(void *own, const struct xfp_feedback_batch *batch, size_t at, uint64_t row)
{
	struct xfp_library_feedback *fb = own;
	const struct xfp_feedback *f = fb->current;
	const size_t first = f->first / f->group, count = f->padded / f->group;

	for (uint64_t i = row * fb->each; i < (row + 1) * fb->each; i++)
		if (fb->group[i] >= first && fb->group[i] - first < count)
			fb->byte[i] = xfp_feedback_sample(batch, at, fb->group[i] - first, &fb->sample.compact, i,
							  fb->index + i * f->group);
}

enum xfp_status xfp_library_feedback_round(struct xfp_library_feedback *fb, const struct xfp_compact_book *book,
					   struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t m = 0; m < fb->matrices; m++) {
		for (size_t b = 0; !status && b < fb->blocks; b++) {
			struct xfp_feedback_coder coder = { .book = book, .tried = 1, .visit = sample_row, .own = fb };

			coder.feedback = fb->current = &fb->f[m * fb->blocks + b];
			status = xfp_feedback_rows_encode(&fb->rows, fb->first[m], fb->first[m + 1], &coder, err);
		}
	}
	return status;
}
