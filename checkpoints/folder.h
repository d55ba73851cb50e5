/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder.h - files in a checkpoint's folder. Private to checkpoints/.
 */
#ifndef XFP_CHECKPOINT_FOLDER_H
#define XFP_CHECKPOINT_FOLDER_H

#include <stdbool.h>

#include "checkpoints/checkpoint.h"

/* List the names of a folder's entries, without hidden ones, sorted bytewise. */
enum xfp_status xfp_folder_list(const char *folder, char ***names, uint32_t *count, struct xfp_error *err);
void xfp_names_free(char **names, uint32_t count);

/* Stat FOLDER/NAME. Fails if an entry exists but cannot be examined, so that a model is never converted without it. */
enum xfp_status xfp_folder_stat(const char *folder, const char *name, struct stat *st, struct xfp_error *err);

/* Locate MODEL: set the checkpoint's absolute folder, and *name to the file's name in it (borrowed), or to NULL if
 * MODEL is a folder. Links to files are not resolved: the Hugging Face cache keeps config.json next to the link, not
 * next to the blob. */
enum xfp_status xfp_folder_place(struct xfp_checkpoint *checkpoint, const char *model, const char **name,
				 struct xfp_error *err);

#define XFP_EXTRA_MAX ((size_t)256 << 20) /* maximum size of a small file */
/* Return whether a name is that of a weights file of any format; and whether a path, relative to the checkpoint's
 * folder, is that of a small file to carry along. */
bool xfp_folder_holds_weights(const char *name);
bool xfp_folder_carries(const char *name);

/* Read the first `size` bytes of a regular file; *there is false if it is shorter or not regular. */
enum xfp_status xfp_file_head(const char *path, unsigned char *head, size_t size, bool *there, struct xfp_error *err);

/* Return whether a small file only describes packed weights, so that it is dropped when they are unpacked. */
bool xfp_is_packing_file(const char *name);

/* Fill in `extras`: the small files of a model. */
enum xfp_status xfp_folder_extras(struct xfp_checkpoint *checkpoint, struct xfp_error *err);

/* The message for a MODEL whose links form a loop. */
#define XFP_MODEL_LOOP "%s: is a link to itself; name the checkpoint that it should point to"

#endif
