/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outliers.h - those of an expert that are in a slice, checked as the CPU checks them.
 */
#ifndef XFP_CUDA_OUTLIERS_H
#define XFP_CUDA_OUTLIERS_H

#include "runtime/cuda/plan.h"

/* How many there are. All columns of all rows have what the index says; anything else has to be looked for:
 * XFP_BAD_INPUT names the row where they are outside the matrix or out of order. */
enum xfp_status xfp_cuda_outliers_count(const struct xfp_cuda_plan *plan, uint32_t expert, uint64_t *count,
					struct xfp_error *err);

/* Them: pointer[rows + 1], and `count` columns of the image and residuals. XFP_BAD_INPUT as above, and where there are
 * not as many. */
enum xfp_status xfp_cuda_outliers_gather(const struct xfp_cuda_plan *plan, uint32_t expert, uint64_t count,
					 uint32_t *pointer, uint32_t *column, uint16_t *residual,
					 struct xfp_error *err);

/* XFP_BAD_INPUT: what is wrong with a row of a unit. */
enum xfp_status xfp_cuda_damaged(const struct xfp_cuda_plan *plan, uint32_t expert, uint64_t row, const char *wrong,
				 struct xfp_error *err);

#endif
