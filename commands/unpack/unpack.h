/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.h - a tensor of a bundle as the checkpoint had it, written into a file.
 */
#ifndef XFP_UNPACK_H
#define XFP_UNPACK_H

#include "base/dtype.h"
#include "base/system/signals.h"
#include "runtime/xfp.h"

/* The matrices of every tensor: list[first[t]] ... list[first[t + 1] - 1]. */
struct xfp_tensor_views {
	uint32_t *first, *list;
};
enum xfp_status xfp_tensor_views(const struct xfp_bundle *bundle, struct xfp_tensor_views *views,
				 struct xfp_error *err);
void xfp_tensor_views_free(struct xfp_tensor_views *views);

/* Write the elements of tensor `number` as `dtype` at `offset` of a file whose data region exists already:
 * bytes that were kept are copied, others decoded. Memory is bounded whatever the tensor. A value
 * that `dtype` cannot hold is XFP_FAILED naming the tensor; so, within milliseconds, is a signal. */
enum xfp_status xfp_unpack_tensor(const struct xfp_bundle *bundle, const struct xfp_tensor_views *views,
				  uint32_t number, enum xfp_dtype dtype, int fd, uint64_t offset, const char *path,
				  struct xfp_signals *signals, struct xfp_error *err);

#endif
