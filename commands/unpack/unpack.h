/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.h - restore a tensor of a bundle to its original form and write it into a file.
 */
#ifndef XFP_UNPACK_H
#define XFP_UNPACK_H

#include "base/dtype.h"
#include "base/system/signals.h"
#include "runtime/xfp.h"

/* Matrices by tensor: tensor t has list[first[t]] ... list[first[t + 1] - 1]. */
struct xfp_tensor_views {
	uint32_t *first, *list;
};
enum xfp_status xfp_tensor_views(const struct xfp_bundle *bundle, struct xfp_tensor_views *views,
				 struct xfp_error *err);
void xfp_tensor_views_free(struct xfp_tensor_views *views);

/* Write tensor `number` as `dtype` at `offset` of a file of full size: kept bytes are copied, others decoded. Memory
 * use does not depend on the tensor. XFP_FAILED, naming the tensor, if `dtype` cannot represent a value; XFP_FAILED
 * within milliseconds of a signal. */
enum xfp_status xfp_unpack_tensor(const struct xfp_bundle *bundle, const struct xfp_tensor_views *views,
				  uint32_t number, enum xfp_dtype dtype, int fd, uint64_t offset, const char *path,
				  struct xfp_signals *signals, struct xfp_error *err);

#endif
