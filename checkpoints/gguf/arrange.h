/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrange.h - from the tensors of a GGUF to logical ones. Private to checkpoints/gguf/.
 */
#ifndef XFP_GGUF_ARRANGE_H
#define XFP_GGUF_ARRANGE_H

#include "checkpoints/checkpoint.h"
#include "checkpoints/gguf/header.h"
#include "checkpoints/gguf/names.h"

#define XFP_GGUF_MOST_EXPERTS 1024
#define XFP_GGUF_MOST_TENSORS (1u << 18) /* logical ones: few bytes of a header may make many of them */

struct xfp_gguf_stored {
	const struct xfp_gguf_tensor *tensor;
	uint32_t file; /* of the model's */
	bool used;
};

/* All files of a model. */
struct xfp_gguf_model {
	struct xfp_checkpoint
		*checkpoint; /* its files are those of the model, in order, or the archive that they are in */
	const struct xfp_listing *listing; /* what they are among */
	struct xfp_gguf_file *files;       /* the first has the metadata */
	uint32_t file_count;
	enum xfp_gguf_architecture architecture;
	const char *prefix;             /* of the keys of the architecture */
	uint64_t layers, drafts;        /* of the model, and of multi-token prediction behind them */
	struct xfp_gguf_stored *stored; /* all tensors, sorted by name */
	uint32_t stored_count;
	struct xfp_error *err;
};

/* NULL: there is none of that name. */
struct xfp_gguf_stored *xfp_gguf_stored(const struct xfp_gguf_model *model, const char *name);

/* "FILE: tensor NAME: " and what is wrong with it, XFP_BAD_INPUT. */
enum xfp_status xfp_gguf_bad(const struct xfp_gguf_model *model, const struct xfp_gguf_stored *stored,
			     const char *format, ...) XFP_PRINTF(3, 4);

/* "FILE: metadata PREFIX.KEY: " and what is wrong with it, likewise. */
enum xfp_status xfp_gguf_bad_key(const struct xfp_gguf_model *model, const char *key, const char *what);

/* An integer of a key of the architecture, of a layer where there is one for each. It must be there; from 1 to `most`.
 */
enum xfp_status xfp_gguf_take_number(const struct xfp_gguf_model *model, const char *key, uint64_t layer, uint64_t most,
				     uint64_t *number);

/* Add logical tensors for all that are stored and not used. */
enum xfp_status xfp_gguf_arrange(struct xfp_gguf_model *model);

#endif
