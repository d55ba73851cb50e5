/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h - what is in a checkpoint's folder. Private to checkpoints/.
 */
#ifndef XFP_CHECKPOINT_FOLDER_H
#define XFP_CHECKPOINT_FOLDER_H

#include <stdbool.h>

#include "checkpoints/checkpoint.h"

/* Names of a folder's entries but the hidden ones, sorted bytewise. */
enum xfp_status xfp_folder_list(const char *folder, char ***names, uint32_t *count, struct xfp_error *err);
void xfp_names_free(char **names, uint32_t count);

/* xfp_look at FOLDER/NAME: what is there but cannot be looked at fails, or a model would be converted without it. */
enum xfp_status xfp_folder_look(const char *folder, const char *name, struct stat *st, struct xfp_error *err);

/* Where MODEL is: the checkpoint's folder, absolute, and of a file its name in it, borrowed; of a folder NULL. Links to
 * files are kept: the Hugging Face cache keeps config.json beside the link and not beside the blob. */
enum xfp_status xfp_folder_place(struct xfp_checkpoint *checkpoint, const char *model, const char **name,
				 struct xfp_error *err);

#define XFP_EXTRA_MAX ((size_t)256 << 20) /* what is larger is not a small file, whatever its name */
/* Whether a name is that of weights, in any format; and whether one, relative to the checkpoint's folder, is that of a
 * small file that goes along. */
bool xfp_folder_holds_weights(const char *name);
bool xfp_folder_carries(const char *name);

/* The first bytes of a regular file that has as many; *there is whether it has. */
enum xfp_status xfp_file_head(const char *path, unsigned char *head, size_t size, bool *there, struct xfp_error *err);

/* Whether a small file is about packed weights and nothing else, so that it goes where these are unpacked. */
bool xfp_is_packing_file(const char *name);

/* Fill in `extras`: the small files that belong to a model beside its weights. */
enum xfp_status xfp_folder_extras(struct xfp_checkpoint *checkpoint, struct xfp_error *err);

/* The message for a MODEL whose links lead in a circle. */
#define XFP_MODEL_LOOP "%s: is a link that leads back to itself; name the checkpoint that it should lead to"

#endif
