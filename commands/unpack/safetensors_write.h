/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_write.h - write a safetensors file whose data may be filled in in any order.
 */
#ifndef XFP_SAFETENSORS_WRITE_H
#define XFP_SAFETENSORS_WRITE_H

#include <stdint.h>

#include "base/dtype.h"
#include "base/system/file.h"

struct xfp_safetensor {
	const char *name;
	enum xfp_dtype dtype;
	uint32_t rank;
	uint64_t shape[8];
	uint64_t bytes;
	uint64_t offset; /* of the data in the file; set by xfp_safetensors_begin */
};

/* Open `path` as a pending file of the final size and write its header. Data are ordered as in the format's own
 * library, larger elements first, then by name, so that all are aligned. The order of `tensors` does not change. The
 * caller writes all data to file->fd and publishes the file. */
enum xfp_status xfp_safetensors_begin(const char *path, struct xfp_safetensor *tensors, uint32_t count,
				      struct xfp_pending *file, struct xfp_error *err);

#endif
