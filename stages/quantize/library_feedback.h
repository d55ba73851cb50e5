/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library_feedback.h - rounds of training a library on the targets that error feedback results in.
 *
 * The sampled rows of each matrix are encoded with its R and one byte a group. The sampled groups of these rows, with
 * their targets, are then the sample to train on (xfp_feedback_sample). Marked weights count as zero.
 */
#ifndef XFP_LIBRARY_FEEDBACK_H
#define XFP_LIBRARY_FEEDBACK_H

#include "stages/quantize/feedback_rows.h"
#include "stages/quantize/fit_rows.h"
#include "stages/quantize/group_row.h"

struct xfp_library_feedback {
	uint32_t matrices;
	size_t blocks;
	struct xfp_feedback *f;                   /* [matrices][blocks] */
	uint64_t first[XFP_TRAINED_MATRICES + 1]; /* the first sampled row of each matrix */
	struct xfp_feedback_rows rows;
	uint64_t each;               /* sampled groups of a row */
	uint32_t *group;             /* [rows][each] their numbers */
	struct xfp_group_row sample; /* [rows][each] groups, in the form of a row */
	/* the results of a round, and the block that is encoded */
	uint8_t *byte, *index;
	const struct xfp_feedback *current;
};

/* Compute R of the training's matrices, and allocate memory for a sample of `rows` rows and `each` groups of each row.
 * The caller frees the struct even after a failure. */
enum xfp_status xfp_library_feedback_init(struct xfp_library_feedback *feedback, const struct xfp_training *training,
					  const struct xfp_grouping *grouping, uint64_t rows, uint64_t each,
					  struct xfp_error *err);
void xfp_library_feedback_free(struct xfp_library_feedback *feedback);

/* Add row `number` of the sample, in order; the caller sets its elements of `group`. */
void xfp_library_feedback_add(struct xfp_library_feedback *feedback, const struct xfp_training_row *row,
			      uint64_t number);

/* Encode the sampled rows with a prepared book: sets byte, index and sample. */
enum xfp_status xfp_library_feedback_round(struct xfp_library_feedback *feedback, const struct xfp_compact_book *book,
					   struct xfp_error *err);

#endif
