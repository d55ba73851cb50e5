/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold.h - fold the stored tensors of a checkpoint to logical ones.
 *
 * The tensors themselves show whether they are packed: by names, dtypes and shapes. config.json contains the method,
 * and parameters that the shapes do not determine; if it does not, quantize_config.json or quant_config.json does.
 * Nothing is guessed: if they contradict the tensors, or components are missing, left over or of invalid shape,
 * XFP_BAD_INPUT names file, tensor and remedy. Tensors of unsupported methods are left unchanged; a later check refuses
 * them by name.
 */
#ifndef XFP_FOLD_H
#define XFP_FOLD_H

#include <jansson.h>

#include "checkpoints/checkpoint.h"
#include "schemas/recipe/recipe.h"

/* Fold a checkpoint whose files and tensors are sorted and whose config is read: logical tensors replace their
 * components. Tensors that only serve activations are dropped, with a note. Tensors are sorted afterwards; a file may
 * have been added, so files must be sorted again. */
enum xfp_status xfp_checkpoint_fold(struct xfp_checkpoint *checkpoint, struct xfp_error *err);

/* ---- between its files ------------------------------------------------------------------------- */

struct xfp_fold;

/* Find the config, in config.json or next to it, and add its file to the checkpoint's files. *root owns the tree. */
enum xfp_status xfp_fold_read_config(struct xfp_fold *fold, json_t **root);
/* Remove that file again if nothing was folded. */
void xfp_fold_drop_config(struct xfp_fold *fold);

/* ---- for the folds of single forms --------------------------------------------------------------- */

struct xfp_fold {
	struct xfp_checkpoint *checkpoint;
	const json_t *config;                /* quantization_config, or NULL */
	const char *config_name;             /* name of its file, "config.json" if missing */
	struct xfp_identity config_identity; /* of that file, taken before it was read */
	const char *method;                  /* quant_method, or NULL */
	bool *consumed;                      /* [tensors] true if used as a component */
	uint32_t *cut;                       /* [tensors] bytes to cut from the codes' name to get the logical name */
	const char **ending;                 /* [tensors] replacement of that ending, not longer; or NULL */
	uint32_t config_file;                /* number of the config's file, or UINT32_MAX */
	uint32_t folded;                     /* number of folded tensors */
	uint32_t open_file;                  /* number of the file that was read last, or UINT32_MAX */
	int fd;                              /* its descriptor */
	struct xfp_error *err;
};

/* A form of packed weights. */
struct xfp_fold_form {
	const char *name;           /* for `packed` of the checkpoint, if it is the first of its forms */
	const char *const *methods; /* its quant_methods, ending with NULL */
	const char *const *endings; /* name endings of its scales, ending with NULL */
	enum xfp_status (*fold)(struct xfp_fold *fold);
};
extern const struct xfp_fold_form xfp_fold_fp8, xfp_fold_mxfp4, xfp_fold_gptq, xfp_fold_awq, xfp_fold_compressed,
	xfp_fold_modelopt, xfp_fold_exl2;

/* Find the unused tensor whose name is that of `tensor`, minus the last `cut` bytes, plus `ending`; UINT32_MAX if there
 * is none. */
uint32_t xfp_fold_find(const struct xfp_fold *fold, const struct xfp_source_tensor *tensor, size_t cut,
		       const char *ending);

/* Read all bytes of a small tensor that describes packing. */
enum xfp_status xfp_fold_read(struct xfp_fold *fold, const struct xfp_source_tensor *tensor, void *out);

/* Return the component of a whole tensor. The only other kind is the file of the config, always last in a part. */
struct xfp_component xfp_fold_component(const struct xfp_source_tensor *tensor, enum xfp_component_role role);

/* Make tensor `number`, the codes, a logical tensor with a single part. `part` is borrowed; the file of the config is
 * appended to its components, which must have space for it. */
enum xfp_status xfp_fold_make_tensor(struct xfp_fold *fold, uint32_t number, struct xfp_recipe_part *part);

/* Report an error of a tensor, "FILE: tensor NAME: ...", and return XFP_BAD_INPUT. */
enum xfp_status xfp_fold_bad(const struct xfp_fold *fold, const struct xfp_source_tensor *tensor, const char *format,
			     ...) XFP_PRINTF(3, 4);

/* Report an error of the config, "FILE: ...", and return XFP_BAD_INPUT. */
enum xfp_status xfp_fold_bad_config(const struct xfp_fold *fold, const char *format, ...) XFP_PRINTF(2, 3);

/* Report a missing component: "has no scales"; `ending` is that of the missing name. */
enum xfp_status xfp_fold_missing(const struct xfp_fold *fold, const struct xfp_source_tensor *tensor, const char *what,
				 const char *ending);

/* A shape as text. */
struct xfp_shape_text {
	char text[XFP_MAX_RANK * 22 + 3];
};
struct xfp_shape_text xfp_fold_shape(uint32_t rank, const uint64_t *shape);

#endif
