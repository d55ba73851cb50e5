/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold.h - from the tensors that a checkpoint stores to logical ones.
 *
 * Which tensors are packed is told by the tensors themselves: their names, dtypes and shapes. config.json tells by
 * which method, and what the shapes leave open; where it says nothing, quantize_config.json or quant_config.json does.
 * Where they contradict the tensors, or components are missing, left over or of a shape that cannot be, nothing is
 * guessed: XFP_BAD_INPUT names file, tensor and remedy. Methods that are not read are left as they are, for whoever
 * refuses them by name.
 */
#ifndef XFP_FOLD_H
#define XFP_FOLD_H

#include <jansson.h>

#include "checkpoints/checkpoint.h"
#include "schemas/recipe/recipe.h"

/* Fold what is packed in a checkpoint whose files and tensors are sorted and whose config is read: logical tensors take
 * the place of their components. Those that only serve activations go, with a note. Tensors are sorted by name
 * afterwards; a file may be added, so that files are to be sorted again. */
enum xfp_status xfp_checkpoint_fold(struct xfp_checkpoint *checkpoint, struct xfp_error *err);

/* ---- between its files ------------------------------------------------------------------------- */

struct xfp_fold;

/* Find the config, in config.json or beside it; its file becomes one of the checkpoint's. *root is what owns it. */
enum xfp_status xfp_fold_read_config(struct xfp_fold *fold, json_t **root);
/* Nothing was folded: that file is not one that tensors are made of. */
void xfp_fold_drop_config(struct xfp_fold *fold);

/* ---- for the folds of single forms --------------------------------------------------------------- */

struct xfp_fold {
	struct xfp_checkpoint *checkpoint;
	const json_t *config;                /* the quantization_config; NULL: there is none */
	const char *config_name;             /* of the file that has it, "config.json" where there is none */
	struct xfp_identity config_identity; /* of that file, from before it was read */
	const char *method;                  /* its quant_method; NULL: there is none */
	bool *gone;                          /* [tensors] taken as a component */
	uint32_t *cut;        /* [tensors] what is cut from the name of its codes to make that of a logical tensor */
	const char **ending;  /* [tensors] what is put there, no longer than what was; NULL: nothing */
	uint32_t config_file; /* number among the files of the one that has the config; UINT32_MAX: none */
	uint32_t folded;      /* tensors */
	uint32_t open_file;   /* number of the file that was read last; UINT32_MAX: none */
	int fd;               /* of it */
	struct xfp_error *err;
};

/* A form of packed weights. */
struct xfp_fold_form {
	const char *name;           /* as `packed` of the checkpoint says it, where it is the first of its forms */
	const char *const *methods; /* quant_methods that it is of, ending with NULL */
	const char *const *endings; /* of names that only its scales have, ending with NULL */
	enum xfp_status (*fold)(struct xfp_fold *fold);
};
extern const struct xfp_fold_form xfp_fold_fp8, xfp_fold_mxfp4, xfp_fold_gptq, xfp_fold_awq, xfp_fold_compressed,
	xfp_fold_modelopt, xfp_fold_exl2;

/* The tensor whose name is that of `tensor`, less its last `cut` bytes, with `ending`; UINT32_MAX: there is none that
 * is not taken. */
uint32_t xfp_fold_find(const struct xfp_fold *fold, const struct xfp_source_tensor *tensor, size_t cut,
		       const char *ending);

/* The elements of a small tensor that says how others are packed: all its bytes. */
enum xfp_status xfp_fold_read(struct xfp_fold *fold, const struct xfp_source_tensor *tensor, void *out);

/* A component that is a whole tensor; the other is the file of the config, which is the last of a part's. */
struct xfp_component xfp_fold_component(const struct xfp_source_tensor *tensor, enum xfp_component_role role);

/* Make tensor `number` the logical one of a single part, whose codes it is. `part` is borrowed; the file of the config
 * is added to its components, for which there must be room. */
enum xfp_status xfp_fold_take(struct xfp_fold *fold, uint32_t number, struct xfp_recipe_part *part);

/* XFP_BAD_INPUT: "FILE: tensor NAME: " and what the format makes of the rest. */
enum xfp_status xfp_fold_bad(const struct xfp_fold *fold, const struct xfp_source_tensor *tensor, const char *format,
			     ...) XFP_PRINTF(3, 4);

/* The same of the file that has the config: "FILE: " and what it says. */
enum xfp_status xfp_fold_bad_config(const struct xfp_fold *fold, const char *format, ...) XFP_PRINTF(2, 3);

/* "has no scales", or what else it should have; `ending` is that of the name that it lacks. */
enum xfp_status xfp_fold_lacks(const struct xfp_fold *fold, const struct xfp_source_tensor *tensor, const char *what,
			       const char *ending);

/* A shape as people write it. */
struct xfp_shape_text {
	char text[XFP_MAX_RANK * 22 + 3];
};
struct xfp_shape_text xfp_fold_shape(uint32_t rank, const uint64_t *shape);

#endif
