/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outliers.h - the outliers of an expert within a slice, checked as on the CPU.
 */
#ifndef XFP_CUDA_OUTLIERS_H
#define XFP_CUDA_OUTLIERS_H

#include "runtime/cuda/plan.h"

/* Count the outliers. For a slice of the whole matrix the index has the number; otherwise the outliers are searched:
 * XFP_BAD_INPUT names the row in which they are out of order or outside the matrix. */
enum xfp_status xfp_cuda_outliers_count(const struct xfp_cuda_plan *plan, uint32_t expert, uint64_t *count,
					struct xfp_error *err);

/* Gather the outliers: pointer[rows + 1], and `count` columns (of the image) and residuals. XFP_BAD_INPUT as above, and
 * if there are fewer than `count`. */
enum xfp_status xfp_cuda_outliers_gather(const struct xfp_cuda_plan *plan, uint32_t expert, uint64_t count,
					 uint32_t *pointer, uint32_t *column, uint16_t *residual,
					 struct xfp_error *err);

/* Report a damaged row of a unit and return XFP_BAD_INPUT. */
enum xfp_status xfp_cuda_damaged(const struct xfp_cuda_plan *plan, uint32_t expert, uint64_t row, const char *wrong,
				 struct xfp_error *err);

#endif
