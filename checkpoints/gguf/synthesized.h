/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synthesized.h - synthesize the files that a GGUF replaces by metadata. Private to checkpoints/gguf/.
 *
 * Each function is an algorithm: the same metadata gives the same bytes on every machine. Bundles record their common
 * version (XFP_ALGORITHM_GGUF of cache/key.h); bump it if the output for the same file changes.
 */
#ifndef XFP_GGUF_SYNTHESIZED_H
#define XFP_GGUF_SYNTHESIZED_H

#include "checkpoints/checkpoint.h"
#include "checkpoints/gguf/header.h"
#include "checkpoints/gguf/metadata.h"

/* Synthesize tokenizer.json and related files. If the metadata does not say how texts are split, only add a note. The
 * checkpoint has its folder and its config. */
enum xfp_status xfp_gguf_make_tokenizer(const struct xfp_gguf_metadata *metadata, struct xfp_checkpoint *checkpoint,
					struct xfp_error *err);

/* Synthesize metadata.gguf: all of the metadata. */
enum xfp_status xfp_gguf_make_metadata(const struct xfp_gguf_file *file, struct xfp_checkpoint *checkpoint,
				       struct xfp_error *err);

#endif
