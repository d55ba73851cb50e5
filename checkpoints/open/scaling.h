/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scaling.h - codes that have a scale for each block of rows and columns, made logical tensors. Private to
 * checkpoints/open/, for folds of methods that have several such forms.
 */
#ifndef XFP_SCALING_H
#define XFP_SCALING_H

#include "checkpoints/open/fold.h"

/* Rows and columns that have a scale together. 0: all of them. */
struct xfp_scale_blocks {
	uint64_t rows, cols;
};

/* Whether a matrix [rows, cols] has scales of this shape then; if so, the blocks, where a single one is as large as the
 * matrix. Blocks may be cut off at the edges. Scales have a dimension for each of the matrix's, or two, or none where
 * there is but one. */
bool xfp_scaling_fits(const struct xfp_scale_blocks *scaling, const struct xfp_source_tensor *scale, uint64_t rows,
		      uint64_t cols, uint64_t block[2]);

/* The dtype of weights that have such scales. */
enum xfp_dtype xfp_scaling_dtype(const struct xfp_source_tensor *scale);

/* ---- what folds share: tensors by number, names that are cut by so many bytes --------------------- */

/* 8-bit floats, and 8-bit integers with zeros, which may be UINT32_MAX. Scales of U8 are powers of 2. */
enum xfp_status xfp_fold_bytes(struct xfp_fold *fold, uint32_t codes, uint32_t scales, uint32_t zeros,
			       const uint64_t block[2]);

/* 4-bit floats in U8 [.., out, in / 2]: with a global scale as NVFP4, without (UINT32_MAX) as MXFP4. */
enum xfp_status xfp_fold_fp4(struct xfp_fold *fold, uint32_t codes, size_t cut, uint32_t scales, uint32_t global,
			     bool divides);

#endif
