/* SPDX-License-Identifier: Apache-2.0 */
/*
 * made.h - the files that a GGUF has none of, made of its metadata. Private to checkpoints/gguf/.
 *
 * Each is an algorithm: the same metadata gives the same bytes on every machine. Bundles record its version
 * (XFP_ALGORITHM_GGUF of cache/key.h stands for all of them); bump that where the same file would come out otherwise.
 */
#ifndef XFP_GGUF_MADE_H
#define XFP_GGUF_MADE_H

#include "checkpoints/checkpoint.h"
#include "checkpoints/gguf/header.h"
#include "checkpoints/gguf/metadata.h"

/* tokenizer.json and what goes with it; where the metadata does not tell how texts are split, none, and a note that
 * says so. The checkpoint has its folder and its config. */
enum xfp_status xfp_gguf_make_tokenizer(const struct xfp_gguf_metadata *metadata, struct xfp_checkpoint *checkpoint,
					struct xfp_error *err);

/* metadata.gguf: all of the metadata. */
enum xfp_status xfp_gguf_make_metadata(const struct xfp_gguf_file *file, struct xfp_checkpoint *checkpoint,
				       struct xfp_error *err);

#endif
