/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format.h - what a source format implements. Private to checkpoints/.
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
	/* Fill in everything of `checkpoint` but config and extras; sorting is left to the caller. `is_folder` is set
	 * before. */
	enum xfp_status (*open)(const char *model, struct xfp_checkpoint *checkpoint, struct xfp_error *err);
	/* What the files say of themselves beside their tensors; NULL: nothing. */
	enum xfp_status (*header)(const struct xfp_checkpoint *checkpoint, struct xfp_header *header,
				  struct xfp_error *err);
};

extern const struct xfp_checkpoint_format xfp_format_safetensors, xfp_format_pytorch, xfp_format_gguf, xfp_format_zip;

/* The format of a file or a folder; NULL if no format opens it. */
enum xfp_status xfp_checkpoint_probe(const char *model, bool folder, const struct xfp_checkpoint_format **format,
				     struct xfp_error *err);
/* Whether a name in a folder may be that of PyTorch weights. */
bool xfp_pytorch_may_be_weights(const char *name);

/* Files of tensors that indices list. */
extern const struct xfp_file_form xfp_form_safetensors, xfp_form_pytorch;

/* Open whichever files of a listing are a checkpoint of this format, or say why none is. */
enum xfp_status xfp_safetensors_open_listing(struct xfp_checkpoint *checkpoint, const struct xfp_listing *listing,
					     struct xfp_error *err);
enum xfp_status xfp_pytorch_open_listing(struct xfp_checkpoint *checkpoint, const struct xfp_listing *listing,
					 struct xfp_error *err);

/* The same of the GGUF of this name, and of what belongs to it; NULL: of the only model there is. */
enum xfp_status xfp_gguf_open_listing(struct xfp_checkpoint *checkpoint, const struct xfp_listing *listing,
				      const char *name, struct xfp_error *err);

/* Have a file made, whose bytes, allocated, are the checkpoint's from now on, failure or not. One that lies in the
 * folder and goes along takes its place, but for config.json, which names and shapes of tensors go with. */
enum xfp_status xfp_checkpoint_make(struct xfp_checkpoint *checkpoint, const char *name, char *bytes, size_t size,
				    struct xfp_error *err);

/* Whether a file of this name that lies there goes along: not a config.json where one was made. Any other that was made
 * is dropped. */
bool xfp_checkpoint_yields(struct xfp_checkpoint *checkpoint, const char *name);

/* Once all are made and the files of the folder are listed: each that was made is among the extras then. */
enum xfp_status xfp_checkpoint_settle_made(struct xfp_checkpoint *checkpoint, struct xfp_error *err);

#endif
