/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/quantize/library_train.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "kernels/common/number.h"
#include "kernels/encode/encode.h"
#include "kernels/encode/lloyd.h"
#include "kernels/encode/scaled_published.h"
#include "stages/quantize/library_feedback.h"

#define COMPACT_MIN 2048 /* groups of a sample: a 64th of all, within these bounds */
#define PUBLISHED_GROUPS 8192

/* Work per weight of a sampled row: for reading it, and for fitting codebooks of its groups with the published
 * recipe. */
#define READING_WORK 1
#define PUBLISHING_WORK 16
#define TRAINING_WORK ((uint64_t)1 << 22) /* a library, for a sample of any size */

/* The groups in the sample. */
struct sampling {
	uint64_t rows;   /* rows of the sample */
	uint64_t groups; /* the first groups of a row, among which are those of the sample */
	uint64_t each;   /* groups of a sampled row */
};

struct sample {
	struct xfp_grouping grouping;
	struct sampling sampling;
	uint64_t count; /* groups collected so far */
	/* Receiver of progress, and the work of a row and of a library. */
	struct xfp_watcher *watcher;
	uint64_t row_work, library_work;
	/* v2c */
	struct xfp_group_row row, sampled; /* the current row; the sample in the form of a row */
	float *weight;                     /* [groups] square of the row scale */
	uint64_t peaks[XFP_COMPACT_PEAKS];
	const struct xfp_training *training;
	struct xfp_library_feedback feedback; /* if the training has moments */
	/* v2a */
	struct xfp_scaled_sample scaled;
	void *scaled_buffer;
	/* v2a with the published recipe: codebooks of the current row, and of the sample, by candidate */
	unsigned published; /* rounds; 0: refined */
	struct xfp_group_codes codes;
	const struct xfp_candidate *const *candidates;
	float *codebook[XFP_MAX_K + 1];
};

static uint64_t wanted(const struct sample *s, uint64_t groups)
{
	uint64_t count = groups / 64;

	if (s->published)
		return groups < PUBLISHED_GROUPS ? groups : PUBLISHED_GROUPS;
	if (s->grouping.mode == XFP_MODE_V2A)
		return xfp_scaled_sample_count(groups, s->candidates[0]->library);
	count = count < COMPACT_MIN ? COMPACT_MIN : count > XFP_SAMPLE_COMPACT ? XFP_SAMPLE_COMPACT : count;
	return count < groups ? count : groups;
}

/* The groups of a row that the sample is drawn from: all, or those of the blocks that are trained on. */
static uint64_t groups_of(const struct sample *s)
{
	const struct xfp_grouping *grouping = &s->grouping;
	size_t blocks = xfp_feedback_blocks(grouping->cols);

	if (!s->training->moments)
		return grouping->groups;
	return xfp_compact_groups_of(xfp_feedback_first(grouping->cols, grouping->group, blocks, s->training->blocks),
				     grouping->group);
}

static struct sampling sampling_of(const struct sample *s, uint64_t rows)
{
	uint64_t groups = groups_of(s), count = wanted(s, rows * groups), min = (count + groups - 1) / groups;
	struct sampling sampling = { .groups = groups, .rows = min > XFP_SAMPLE_ROWS ? min : XFP_SAMPLE_ROWS };

	sampling.rows = sampling.rows < rows ? sampling.rows : rows;
	sampling.each = (count + sampling.rows - 1) / sampling.rows;
	sampling.each = sampling.each < groups ? sampling.each : groups;
	return sampling;
}

static enum xfp_status sample_init(struct sample *s, const struct xfp_grouping *grouping, uint64_t rows, uint32_t count,
				   struct xfp_error *err)
{
	uint64_t max;
	bool good;

	s->grouping = *grouping;
	s->sampling = sampling_of(s, rows);
	max = s->sampling.rows * s->sampling.each;
	if (s->published) {
		good = xfp_group_codes_init(&s->codes, grouping);
		for (uint32_t c = 0; c < count; c++)
			good = (s->codebook[c] = malloc((max << s->candidates[c]->k) * sizeof(float))) && good;
		return good ? XFP_OK : xfp_no_memory(err);
	}
	if (grouping->mode == XFP_MODE_V2A) {
		size_t bytes = xfp_align(xfp_scaled_sample_bytes(max, grouping->fine), 64);

		good = (s->scaled_buffer = aligned_alloc(64, bytes)) != NULL;
		if (good)
			xfp_scaled_sample_init(&s->scaled, s->scaled_buffer, max, grouping->fine);
	} else {
		struct xfp_grouping all = *grouping;

		all.groups = max;
		all.cols = max * grouping->group;
		good = xfp_group_row_init(&s->row, grouping);
		good = xfp_group_row_init(&s->sampled, &all) && good;
		good = (s->weight = malloc(max * sizeof *s->weight)) && good;
	}
	if (good && s->training->moments)
		return xfp_library_feedback_init(&s->feedback, s->training, grouping, s->sampling.rows,
						 s->sampling.each, err);
	return good ? XFP_OK : xfp_no_memory(err);
}

static void sample_free(struct sample *s)
{
	xfp_group_row_free(&s->row);
	xfp_group_row_free(&s->sampled);
	xfp_group_codes_free(&s->codes);
	for (unsigned c = 0; c <= XFP_MAX_K; c++)
		free(s->codebook[c]);
	free(s->weight);
	free(s->scaled_buffer);
	xfp_library_feedback_free(&s->feedback);
}

/* The ith sampled group of sampled row `number`. */
static uint64_t group_of(const struct sample *s, uint64_t i, uint64_t number)
{
	return (i * s->sampling.groups / s->sampling.each + number) % s->sampling.groups;
}

/* Fit codebooks of the groups of a row, for every candidate. */
static void publish_row(struct sample *s, const struct xfp_training_row *row, uint64_t number)
{
	const struct xfp_grouping *grouping = &s->grouping;

	for (unsigned c = 0; s->codebook[c]; c++) {
		unsigned k = s->candidates[c]->k;

		xfp_scaled_published_row(k, s->published, row->x, grouping->cols, grouping->group, row->marked,
					 row->marks, s->codes.codebook, s->codes.scale, s->codes.midpoint);
		for (uint64_t i = 0; i < s->sampling.each; i++)
			memcpy(s->codebook[c] + ((s->count + i) << k),
			       s->codes.codebook + (group_of(s, i, number) << k), sizeof(float) << k);
	}
	s->count += s->sampling.each;
}

static void add_row(void *own, const struct xfp_training_row *row, uint64_t number)
{
	struct sample *s = own;
	const struct xfp_grouping *grouping = &s->grouping;
	float scale;

	xfp_watch_done(s->watcher, s->row_work);
	if (s->published) {
		publish_row(s, row, number);
		return;
	}
	if (grouping->mode == XFP_MODE_V2C)
		xfp_group_row_load(&s->row, row->x, row->marked, row->marks);
	if (s->training->moments)
		xfp_library_feedback_add(&s->feedback, row, number);
	scale = xfp_compact_row(s->row.row);
	for (uint64_t i = 0; i < s->sampling.each; i++) {
		uint64_t group = group_of(s, i, number);

		if (grouping->mode == XFP_MODE_V2C) {
			xfp_compact_copy(&s->sampled.compact, s->count, &s->row.compact, group);
			s->weight[s->count] = scale * scale;
			if (s->training->moments)
				s->feedback.group[s->count] = (uint32_t)group;
		} else {
			xfp_scaled_sample_set(&s->scaled, s->count, row->x, grouping->cols, group * grouping->group,
					      grouping->group, row->marked, row->marks);
		}
		s->count++;
	}
}

/* ---- training ---------------------------------------------------------------------------------- */

static void update_compact(const struct sample *s, struct xfp_compact_book *book,
			   const struct xfp_compact_groups *groups, const uint8_t *byte, const uint8_t *index,
			   struct xfp_compact_sums *sums)
{
	memset(sums, 0, sizeof *sums);
	xfp_compact_train(book, groups, s->count, s->weight, byte, index, sums);
	xfp_compact_update(book, sums, true);
}

static enum xfp_status train_with_feedback(struct sample *s, struct xfp_compact_book *book,
					   struct xfp_compact_sums *sums, struct xfp_error *err)
{
	struct xfp_library_feedback *feedback = &s->feedback;
	enum xfp_status status = XFP_OK;

	for (int round = 0; !status && s->training->moments && round < XFP_FEEDBACK_ROUNDS; round++) {
		xfp_compact_prepare(book);
		status = xfp_library_feedback_round(feedback, book, err);
		if (!status)
			update_compact(s, book, &feedback->sample.compact, feedback->byte, feedback->index, sums);
	}
	return status;
}

static enum xfp_status train_compact(struct sample *s, const struct xfp_candidate *candidate,
				     const struct xfp_library_code *code, struct xfp_error *err)
{
	size_t values = s->count * s->grouping.group;
	uint8_t *byte = malloc(s->count + 1), *index = malloc(values + XFP_COMPACT_GROUP);
	struct xfp_compact_sums *sums = malloc(sizeof *sums);
	struct xfp_group_library library = { 0 };
	enum xfp_status status =
		byte && index && sums && xfp_library_init(&library, candidate, 0) ? XFP_OK : xfp_no_memory(err);

	if (!status) {
		struct xfp_compact_book *book = library.compact;

		xfp_compact_seed(book, candidate->k, candidate->group, candidate->library, s->peaks);
		for (int round = 0; round < XFP_COMPACT_ROUNDS; round++) {
			xfp_compact_prepare(book);
			xfp_encoder()->compact->assign(book, &s->sampled.compact, 0, s->count, byte, index, NULL);
			update_compact(s, book, &s->sampled.compact, byte, index, sums);
			xfp_watch_done(s->watcher, s->library_work / XFP_COMPACT_ROUNDS);
		}
		status = train_with_feedback(s, book, sums, err);
		xfp_compact_finish(book, code->code);
	}
	xfp_library_free(&library);
	free(byte);
	free(index);
	free(sums);
	return status;
}

static enum xfp_status train_scaled(struct sample *s, const struct xfp_candidate *candidate,
				    const struct xfp_library_code *code, struct xfp_error *err)
{
	struct xfp_scaled_training *sums = malloc(sizeof *sums);
	struct xfp_group_library library = { 0 };
	enum xfp_status status = sums && xfp_library_init(&library, candidate, 0) ? XFP_OK : xfp_no_memory(err);

	if (!status)
		xfp_scaled_train(library.scaled, candidate->k, candidate->library, &s->scaled, XFP_SCALED_ROUNDS, sums,
				 code->code, (struct xfp_scaled_moments *)(void *)code->hints);
	xfp_watch_done(s->watcher, s->library_work);
	xfp_library_free(&library);
	free(sums);
	return status;
}

static enum xfp_status publish(struct sample *s, uint32_t number, const struct xfp_library_code *code,
			       struct xfp_error *err)
{
	const struct xfp_candidate *candidate = s->candidates[number];
	size_t centres = (size_t)candidate->library * ((1u << candidate->k) + 1);
	double *buffer = malloc((s->count + centres) * sizeof *buffer);
	float *library = malloc(((size_t)candidate->library << candidate->k) * sizeof *library);
	bool good = buffer && library;

	if (good)
		xfp_scaled_published_library(candidate->k, candidate->library, XFP_PUBLISHED_CENTRE_ROUNDS,
					     s->codebook[number], s->count, buffer, library, code->code);
	free(buffer);
	free(library);
	xfp_watch_done(s->watcher, s->library_work);
	return good ? XFP_OK : xfp_no_memory(err);
}

static uint64_t rows_work(uint64_t rows, uint64_t cols, bool published)
{
	uint64_t sampled = rows < XFP_SAMPLE_ROWS ? rows : XFP_SAMPLE_ROWS;

	return sampled * cols * (published ? PUBLISHING_WORK : READING_WORK);
}

uint64_t xfp_library_work(const struct xfp_parameters *parameters, uint64_t rows, uint64_t cols)
{
	return rows_work(rows, cols, xfp_library_published(parameters)) + TRAINING_WORK;
}

enum xfp_status xfp_library_train(const struct xfp_training *training, unsigned published,
				  const struct xfp_grouping *grouping, const struct xfp_candidate *const *candidates,
				  uint32_t count, struct xfp_library_code *const *code, struct xfp_error *err)
{
	struct sample s = { .training = training, .published = published, .candidates = candidates };
	enum xfp_status status = sample_init(&s, grouping, training->rows, count, err);

	if (!status) {
		uint64_t rows = rows_work(training->rows, grouping->cols, published);

		s.watcher = training->watcher;
		s.row_work = rows * count / s.sampling.rows;
		s.library_work = TRAINING_WORK;
		status = training->walk(training->context, s.sampling.rows, add_row, &s, err);
	}
	if (!status && grouping->mode == XFP_MODE_V2C)
		xfp_compact_count(&s.sampled.compact, 0, s.count, s.peaks);
	for (uint32_t i = 0; !status && i < count; i++)
		status = grouping->mode == XFP_MODE_V2C ? train_compact(&s, candidates[i], code[i], err)
			 : s.published                  ? publish(&s, i, code[i], err)
							: train_scaled(&s, candidates[i], code[i], err);
	sample_free(&s);
	return status;
}
