/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors_header.h - read and check the header of a safetensors file. Private to checkpoints/.
 *
 *   0    8   N, length of the header
 *   8    N   JSON object: name -> {"dtype": .., "shape": [..], "data_offsets": [BEGIN, END]}, and
 *            "__metadata__" -> {string: string}
 *   8+N      data; BEGIN and END are relative to it. Tensors are adjacent and fill the file exactly.
 */
#ifndef XFP_SAFETENSORS_HEADER_H
#define XFP_SAFETENSORS_HEADER_H

#include "checkpoints/header.h"
#include "checkpoints/shards.h"

#define XFP_SAFETENSORS_HEADER_MAX 100000000

/* Read a header. XFP_BAD_INPUT if anything is wrong with the file. */
enum xfp_status xfp_safetensors_read(const struct xfp_place *place, struct xfp_tensor_file *out, struct xfp_error *err);
/* The same, and add __metadata__ to `header` for file number `number`. */
enum xfp_status xfp_safetensors_read_all(const struct xfp_place *place, uint32_t number, struct xfp_tensor_file *out,
					 struct xfp_header *header, struct xfp_error *err);

#endif
