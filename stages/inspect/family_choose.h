/* SPDX-License-Identifier: Apache-2.0 */
/*
 * family_choose.h - select the family whose rules apply to a model, and find its file.
 *
 * Families are searched in a list of folders, the user's own before xfp's: the first folder with a family for the model
 * decides.
 */
#ifndef XFP_FAMILY_CHOOSE_H
#define XFP_FAMILY_CHOOSE_H

#include "stages/inspect/family.h"

/* The user's request; NULL: not given. */
struct xfp_family_request {
	const char *family; /* a name; with a slash or ending in .family, a file */
	const char *folder; /* search only this folder */
};

/* The result; the caller frees all three. */
struct xfp_family_choice {
	struct xfp_family *family;
	char *path; /* its file */
	char *why;  /* "by model_type llama"; NULL: no family claims the model, and general is the fallback */
};

/* Find the requested family, or the one that `config` selects. XFP_USAGE: a name or file that does not exist.
 * XFP_FAILED: the folder does not exist. XFP_BAD_INPUT: a file that is not a family, or two families of a folder that
 * claim the model. */
enum xfp_status xfp_family_find(const struct xfp_family_request *request, const struct xfp_model_config *config,
				struct xfp_family_choice *choice, struct xfp_error *err);
void xfp_family_choice_free(struct xfp_family_choice *choice);

/* Find the file in the first of `count` folders that has a family for this model: by model_type, then that of
 * text_config, then architectures; otherwise in the first folder that has general, else in the last. `why` is as above;
 * the caller frees both. */
enum xfp_status xfp_family_choose(char *const *folders, uint32_t count, const struct xfp_model_config *config,
				  char **path, char **why, struct xfp_error *err);

#endif
