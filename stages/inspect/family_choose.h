/* SPDX-License-Identifier: Apache-2.0 */
/*
 * family_choose.h - which family's rules a model is read by, and where they are.
 *
 * Families are looked for in a list of folders, the user's own before xfp's: the first folder that has
 * one for the model decides.
 */
#ifndef XFP_FAMILY_CHOOSE_H
#define XFP_FAMILY_CHOOSE_H

#include "stages/inspect/family.h"

/* What decides; NULL: nothing was said. */
struct xfp_family_wish {
	const char *family; /* a name; with a slash or ending in .family, a file */
	const char *folder; /* look here alone */
};

/* What was found; the caller frees all three. */
struct xfp_family_choice {
	struct xfp_family *family;
	char *path; /* its file */
	char *why;  /* "by model_type llama"; NULL: no family claims the model, and general is a guess */
};

/* The family's rules, as wished for or by what `config` says. A name or a file that is not there is XFP_USAGE, a folder
 * XFP_FAILED; a file that is no family, or two of a folder that claim the model, XFP_BAD_INPUT. */
enum xfp_status xfp_family_find(const struct xfp_family_wish *wish, const struct xfp_model_config *config,
				struct xfp_family_choice *choice, struct xfp_error *err);
void xfp_family_choice_free(struct xfp_family_choice *choice);

/* The file of the first of `count` folders that has a family for this model: by model_type, then that of
 * text_config, then architectures; where none has, the first that has general, else the last's. `why` as
 * above; the caller frees both. */
enum xfp_status xfp_family_choose(char *const *folders, uint32_t count, const struct xfp_model_config *config,
				  char **path, char **why, struct xfp_error *err);

#endif
