/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round.h - multiplies by one or several linears, a list of products at a time. Private to runtime/.
 */
#ifndef XFP_ROUND_H
#define XFP_ROUND_H

#include "runtime/linear.h"

/* From this many products of an expert on, rows are decoded first, and vectors take a third of the memory. Sets without
 * integers, which multiply stored rows in f32, too, need fewer. */
static inline size_t xfp_decoded_products(void)
{
	return xfp_matvec_set()->integers ? 32 : 16;
}

/* A call: the vectors of `x`, multiplied by every linear. All slices have the same number of columns. */
struct xfp_multiplication {
	struct xfp_team *team;
	const struct xfp_linear *const *linears;
	size_t linear_count;
	const struct xfp_input *x;
	const struct xfp_output *y; /* [linear_count] */
	struct xfp_error *err;
};

/* Multiply every linear by the same products, which were checked, and are ordered by y. */
enum xfp_status xfp_round_run(const struct xfp_multiplication *call, const struct xfp_product *products, size_t count);

/* Compare two uint64_t, for qsort. */
int xfp_compare_numbers(const void *a, const void *b);

static inline size_t xfp_float_bytes(enum xfp_float type)
{
	return type == XFP_FLOAT32 ? 4 : 2;
}

#endif
