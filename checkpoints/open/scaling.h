/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaling.h - codes that have a scale for each block of rows and columns, made logical tensors. Private to
 * checkpoints/open/, for folds of methods that have several such forms.
 */
#ifndef XFP_SCALING_H
#define XFP_SCALING_H

#include "checkpoints/open/fold.h"

/* Rows and columns per scale; 0 for all. */
struct xfp_scale_blocks {
	uint64_t rows, cols;
};

/* Return whether a matrix [rows, cols] can have scales of this shape; if so, compute the blocks (a single one is as
 * large as the matrix). Blocks may be smaller at the edges. Scales have one dimension per dimension of the matrix, or
 * two, or none if there is only one. */
bool xfp_scaling_fits(const struct xfp_scale_blocks *scaling, const struct xfp_source_tensor *scale, uint64_t rows,
		      uint64_t cols, uint64_t block[2]);

/* Return the dtype of weights with such scales. */
enum xfp_dtype xfp_scaling_dtype(const struct xfp_source_tensor *scale);

/* ---- for folds: tensors are given by number; names are shortened by a number of bytes ------------- */

/* Fold 8-bit floats, or 8-bit integers with zeros, which may be UINT32_MAX. U8 scales are powers of 2. */
enum xfp_status xfp_fold_bytes(struct xfp_fold *fold, uint32_t codes, uint32_t scales, uint32_t zeros,
			       const uint64_t block[2]);

/* Fold 4-bit floats in U8 [.., out, in / 2]: NVFP4 with a global scale, MXFP4 without (UINT32_MAX). */
enum xfp_status xfp_fold_fp4(struct xfp_fold *fold, uint32_t codes, size_t cut, uint32_t scales, uint32_t global,
			     bool divides);

#endif
