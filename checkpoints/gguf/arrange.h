/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrange.h - convert the tensors of a GGUF to logical ones. Private to checkpoints/gguf/.
 */
#ifndef XFP_GGUF_ARRANGE_H
#define XFP_GGUF_ARRANGE_H

#include "checkpoints/checkpoint.h"
#include "checkpoints/gguf/header.h"
#include "checkpoints/gguf/names.h"

#define XFP_GGUF_MAX_EXPERTS 1024
#define XFP_GGUF_MAX_TENSORS (1u << 18) /* limit of logical tensors, because a small header may define many */

struct xfp_gguf_stored {
	const struct xfp_gguf_tensor *tensor;
	uint32_t file; /* number among the model's files */
	bool used;
};

/* All files of a model. */
struct xfp_gguf_model {
	struct xfp_checkpoint *checkpoint; /* its files are the model's, in order, or the archive that contains them */
	const struct xfp_listing *listing; /* all files of the folder or archive */
	struct xfp_gguf_file *files;       /* the first has the metadata */
	uint32_t file_count;
	enum xfp_gguf_architecture architecture;
	const char *prefix;             /* prefix of the architecture's keys */
	uint64_t layers, drafts;        /* layers of the model, and multi-token prediction layers after them */
	struct xfp_gguf_stored *stored; /* all tensors, sorted by name */
	uint32_t stored_count;
	struct xfp_error *err;
};

/* Return the stored tensor of this name, or NULL. */
struct xfp_gguf_stored *xfp_gguf_stored(const struct xfp_gguf_model *model, const char *name);

/* Report an error of a tensor, "FILE: tensor NAME: ...", and return XFP_BAD_INPUT. */
enum xfp_status xfp_gguf_bad(const struct xfp_gguf_model *model, const struct xfp_gguf_stored *stored,
			     const char *format, ...) XFP_PRINTF(3, 4);

/* Report an error of a metadata key, "FILE: metadata PREFIX.KEY: ...", and return XFP_BAD_INPUT. */
enum xfp_status xfp_gguf_bad_key(const struct xfp_gguf_model *model, const char *key, const char *what);

/* Read a required integer of an architecture's key, from 1 to `max`; if the key has one value per layer, that of
 * `layer`. */
enum xfp_status xfp_gguf_read_number(const struct xfp_gguf_model *model, const char *key, uint64_t layer, uint64_t max,
				     uint64_t *number);

/* Add logical tensors for all stored tensors that are not used yet. */
enum xfp_status xfp_gguf_arrange(struct xfp_gguf_model *model);

#endif
