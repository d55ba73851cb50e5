/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - the interface of a source format. Private to checkpoints/.
 */
#ifndef XFP_CHECKPOINT_FORMAT_H
#define XFP_CHECKPOINT_FORMAT_H

#include "checkpoints/checkpoint.h"
#include "checkpoints/header.h"
#include "checkpoints/shards.h"

struct xfp_checkpoint_format {
	const char *name;
	/* Whether a file is of this format by its first bytes; NULL: only its name says so. */
	enum xfp_status (*examine)(const char *path, bool *is, struct xfp_error *err);
	/* Fill in `checkpoint` except config and extras; the caller sorts. `is_folder` is already set. */
	enum xfp_status (*open)(const char *model, struct xfp_checkpoint *checkpoint, struct xfp_error *err);
	/* List the headers' metadata; NULL if the format has none. */
	enum xfp_status (*header)(const struct xfp_checkpoint *checkpoint, struct xfp_header *header,
				  struct xfp_error *err);
};

extern const struct xfp_checkpoint_format xfp_format_safetensors, xfp_format_pytorch, xfp_format_gguf, xfp_format_zip;

/* The format of a file or a folder; NULL if no format opens it. */
enum xfp_status xfp_checkpoint_probe(const char *model, bool folder, const struct xfp_checkpoint_format **format,
				     struct xfp_error *err);
/* Whether a name in a folder may be that of PyTorch weights. */
bool xfp_pytorch_may_be_weights(const char *name);

/* Forms of tensor files that an index can list. */
extern const struct xfp_file_form xfp_form_safetensors, xfp_form_pytorch;

/* Open the files of a listing that form a checkpoint of this format, or report why there is none. */
enum xfp_status xfp_safetensors_open_listing(struct xfp_checkpoint *checkpoint, const struct xfp_listing *listing,
					     struct xfp_error *err);
enum xfp_status xfp_pytorch_open_listing(struct xfp_checkpoint *checkpoint, const struct xfp_listing *listing,
					 struct xfp_error *err);

/* Open the GGUF of this name and its other parts; NULL: the only model in the listing. */
enum xfp_status xfp_gguf_open_listing(struct xfp_checkpoint *checkpoint, const struct xfp_listing *listing,
				      const char *name, struct xfp_error *err);

/* Add a synthesized file. The checkpoint takes ownership of `bytes`, even on failure. An existing file in the folder
 * takes precedence, except config.json, which must match the names and shapes of the tensors. */
enum xfp_status xfp_checkpoint_make(struct xfp_checkpoint *checkpoint, const char *name, char *bytes, size_t size,
				    struct xfp_error *err);

/* Return whether an existing file of this name is carried along: false for config.json if one was synthesized. Any
 * other synthesized file of this name is dropped. */
bool xfp_checkpoint_keeps_file(struct xfp_checkpoint *checkpoint, const char *name);

/* Add all synthesized files to the extras; call after the files of the folder are listed. */
enum xfp_status xfp_checkpoint_add_synthesized(struct xfp_checkpoint *checkpoint, struct xfp_error *err);

#endif
