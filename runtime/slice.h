/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice.h - what is asked for by number: the slice of a matrix, the unit that a tensor is. By the public header alone,
 * for libxfp and for libxfp-cuda.
 */
#ifndef XFP_SLICE_H
#define XFP_SLICE_H

#include "runtime/xfp.h"

/* XFP_USAGE: there is no unit, or tensor (`what`), of that number. */
enum xfp_status xfp_no_such(const struct xfp_bundle *bundle, const char *what, uint32_t number, struct xfp_error *err);

/* What `slice` (NULL: all) is of a matrix of rows and cols, with counts that are not 0; `name` is the unit's or
 * tensor's. XFP_USAGE when there is no such part. */
enum xfp_status xfp_slice_cut(const struct xfp_bundle *bundle, const char *name, uint64_t rows, uint64_t cols,
			      const struct xfp_slice *slice, struct xfp_slice *out, struct xfp_error *err);

/* What a tensor is stored as: `tensor` is it, or the one that it equals; *unit the unit whose one matrix it is, just as
 * it lies there, or XFP_NOT_FOUND where it was kept. XFP_USAGE when it has no weights of two dimensions, as one
 * matrix. */
enum xfp_status xfp_tensor_matrix(const struct xfp_bundle *bundle, uint32_t number, struct xfp_tensor_info *tensor,
				  uint32_t *unit, struct xfp_error *err);

#endif
