/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice.h - resolves numbers that the caller passes: the slice of a matrix, the unit of a tensor. Uses only the public
 * header, for libxfp and libxfp-cuda.
 */
#ifndef XFP_SLICE_H
#define XFP_SLICE_H

#include "runtime/xfp.h"

/* Report that there is no unit, or tensor (`what`), of that number, and return XFP_USAGE. */
enum xfp_status xfp_no_such(const struct xfp_bundle *bundle, const char *what, uint32_t number, struct xfp_error *err);

/* Resolve `slice` (NULL: all) for a matrix of rows and cols; the counts of the result are not 0. `name` is the unit's
 * or tensor's. XFP_USAGE if the slice exceeds the matrix. */
enum xfp_status xfp_slice_resolve(const struct xfp_bundle *bundle, const char *name, uint64_t rows, uint64_t cols,
				  const struct xfp_slice *slice, struct xfp_slice *out, struct xfp_error *err);

/* Find the storage of a tensor. `tensor` receives its description, or that of the tensor that it is tied to; *unit the
 * unit whose only matrix it is, or XFP_NOT_FOUND if it was kept. XFP_USAGE if the weights are not stored as one
 * two-dimensional matrix. */
enum xfp_status xfp_tensor_matrix(const struct xfp_bundle *bundle, uint32_t number, struct xfp_tensor_info *tensor,
				  uint32_t *unit, struct xfp_error *err);

#endif
