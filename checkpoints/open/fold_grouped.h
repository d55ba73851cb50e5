/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_grouped.h - what the folds of AWQ and GPTQ have in common: X.qweight, X.qzeros and X.scales make X.weight.
 * Private to checkpoints/open/.
 */
#ifndef XFP_FOLD_GROUPED_H
#define XFP_FOLD_GROUPED_H

#include "checkpoints/open/fold.h"

#define XFP_QWEIGHT ".qweight"

/* What the config says of all tensors. */
struct xfp_grouped_config {
	uint64_t bits;
	uint64_t group; /* 0: all columns are one */
};

/* The tensors of one matrix. */
struct xfp_grouped {
	uint32_t number; /* of the codes */
	struct xfp_source_tensor *codes;
	const struct xfp_source_tensor *zeros, *scales;
	uint64_t rows, cols, groups; /* groups: lines of scales, padded ones included */
};

bool xfp_grouped_is_codes(const struct xfp_fold *fold, uint32_t number);

/* bits or w_bit, group_size or q_group_size. */
enum xfp_status xfp_grouped_read_config(const struct xfp_fold *fold, struct xfp_grouped_config *config);

/* A string of the config in lower case, by the first of these keys (NULL: none) that has one; `missing` otherwise. */
struct xfp_config_word {
	char text[32];
};
struct xfp_config_word xfp_grouped_word(const struct xfp_fold *fold, const char *key, const char *other,
					const char *missing);

/* The tensors that belong to these codes, which must be there: matrices, scales of a type that is read. */
enum xfp_status xfp_grouped_find(struct xfp_fold *fold, uint32_t number, struct xfp_grouped *matrix);

/* Shapes do not fit each other or the config: what is said of them all. */
enum xfp_status xfp_grouped_bad_shapes(const struct xfp_fold *fold, const struct xfp_grouped *matrix, const char *form,
				       const char *expected);

/* Take it: rows and cols are known, `part` has codec and parameters and room for all components; `groups` is its g_idx
 * or NULL. */
enum xfp_status xfp_grouped_take(struct xfp_fold *fold, struct xfp_grouped *matrix, struct xfp_recipe_part *part,
				 uint32_t groups);

#endif
