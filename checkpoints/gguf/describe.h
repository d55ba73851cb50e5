/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.h - metadata as text. Private to checkpoints/gguf/.
 */
#ifndef XFP_GGUF_DESCRIBE_H
#define XFP_GGUF_DESCRIBE_H

#include "checkpoints/header.h"

/* Implements `header` of struct xfp_checkpoint_format: all keys of all files; of arrays the beginning. */
enum xfp_status xfp_gguf_header(const struct xfp_checkpoint *checkpoint, struct xfp_header *header,
				struct xfp_error *err);

#endif
