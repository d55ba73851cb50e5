/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_grouped.h - code that the folds of AWQ and GPTQ share: X.qweight, X.qzeros and X.scales become X.weight.
 * Private to checkpoints/open/.
 */
#ifndef XFP_FOLD_GROUPED_H
#define XFP_FOLD_GROUPED_H

#include "checkpoints/open/fold.h"

#define XFP_QWEIGHT ".qweight"

/* Settings of the config for all tensors. */
struct xfp_grouped_config {
	uint64_t bits;
	uint64_t group; /* 0 for one group of all columns */
};

/* The tensors of one matrix. */
struct xfp_grouped {
	uint32_t number; /* number of the codes */
	struct xfp_source_tensor *codes;
	const struct xfp_source_tensor *zeros, *scales;
	uint64_t rows, cols, groups; /* groups: lines of scales, including padding */
};

bool xfp_grouped_is_codes(const struct xfp_fold *fold, uint32_t number);

/* Read bits or w_bit, group_size or q_group_size. */
enum xfp_status xfp_grouped_read_config(const struct xfp_fold *fold, struct xfp_grouped_config *config);

/* Read a string of the config in lower case, by the first of these keys (may be NULL) that exists; else `missing`. */
struct xfp_config_word {
	char text[32];
};
struct xfp_config_word xfp_grouped_word(const struct xfp_fold *fold, const char *key, const char *other,
					const char *missing);

/* Find the required tensors of these codes, and check that they are matrices and that the scales' type is supported. */
enum xfp_status xfp_grouped_find(struct xfp_fold *fold, uint32_t number, struct xfp_grouped *matrix);

/* Report that shapes do not match each other or the config. */
enum xfp_status xfp_grouped_bad_shapes(const struct xfp_fold *fold, const struct xfp_grouped *matrix, const char *form,
				       const char *expected);

/* Fold a matrix: rows and cols are set, `part` has codec and parameters and space for all components; `groups` is its
 * g_idx or NULL. */
enum xfp_status xfp_grouped_fold(struct xfp_fold *fold, struct xfp_grouped *matrix, struct xfp_recipe_part *part,
				 uint32_t groups);

#endif
