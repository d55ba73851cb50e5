/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shards.h - the files of a checkpoint's tensors: a single one, or several with an index. Private to checkpoints/.
 */
#ifndef XFP_SHARDS_H
#define XFP_SHARDS_H

#include <stdbool.h>

#include "checkpoints/checkpoint.h"
#include "checkpoints/place.h"
#include "checkpoints/zip.h"

/* The available files: those of a folder, or the members of a zip. */
struct xfp_listing {
	char *folder; /* their folder, also for messages; for a zip, its path and that of a folder in it */
	char **names; /* sorted */
	uint32_t count;
	const char *path;          /* path of the zip; NULL for files of the checkpoint's folder */
	const struct xfp_zip *zip; /* the zip, borrowed; or NULL */
	const char *inside;        /* prefix of member names, which `names` omit */
};

enum xfp_status xfp_listing_of_folder(const char *folder, struct xfp_listing *out, struct xfp_error *err);
void xfp_listing_free(struct xfp_listing *listing);
bool xfp_listing_has(const struct xfp_listing *listing, const char *name);

/* Locate a file. `*path` is allocated; `place` borrows it. XFP_BAD_INPUT if the member is compressed. */
enum xfp_status xfp_listing_place(const struct xfp_listing *listing, const char *name, struct xfp_place *place,
				  char **path, struct xfp_error *err);

/* Add a file to the checkpoint, without its identity; for a zip, the zip is the only file. */
enum xfp_status xfp_listing_file(struct xfp_checkpoint *checkpoint, const struct xfp_listing *listing, const char *name,
				 struct xfp_source_file **out, struct xfp_error *err);

/* A file of tensors. */
struct xfp_tensor_file {
	struct xfp_source_tensor *tensors; /* sorted by name, unique; `file` is 0, also in recipes */
	uint32_t count;
	struct xfp_identity identity;
};
void xfp_tensor_file_free(struct xfp_tensor_file *file); /* initialize with zeros */

/* A kind of tensor file. */
struct xfp_file_form {
	const char *suffix; /* suffix of file names */
	const char *what;   /* "safetensors" */
	const char *index;  /* usual name of an index */
	/* Read a file; notes are added to `notes`. XFP_BAD_INPUT if anything is wrong with the file. */
	enum xfp_status (*read)(const struct xfp_place *place, struct xfp_checkpoint *notes,
				struct xfp_tensor_file *out, struct xfp_error *err);
};

/* Return whether a name ends in "-00001-of-00004" and the suffix: one of several files. */
bool xfp_is_shard(const char *name, const char *suffix);

/* Add a file to the checkpoint, and its tensors to `file` and, except those whose name is NULL, to the checkpoint. No
 * other file may be added in between. */
enum xfp_status xfp_shards_add(const struct xfp_file_form *form, struct xfp_checkpoint *checkpoint,
			       const struct xfp_listing *listing, const char *name, struct xfp_tensor_file *file,
			       struct xfp_error *err);
enum xfp_status xfp_shards_add_tensors(struct xfp_checkpoint *checkpoint, struct xfp_tensor_file *file,
				       struct xfp_error *err);

/* Fill in files and tensors of a checkpoint: from one file; from all that an index lists. */
enum xfp_status xfp_shards_single(const struct xfp_file_form *form, struct xfp_checkpoint *checkpoint,
				  const struct xfp_listing *listing, const char *name, struct xfp_error *err);
enum xfp_status xfp_shards_indexed(const struct xfp_file_form *form, struct xfp_checkpoint *checkpoint,
				   const struct xfp_listing *listing, const char *index_name, struct xfp_error *err);

/* Fill in a checkpoint of which one file was named: an index, or one of files that stand alone. */
enum xfp_status xfp_shards_named(const struct xfp_file_form *form, struct xfp_checkpoint *checkpoint,
				 const struct xfp_listing *listing, const char *name, struct xfp_error *err);

/* Find the only file whose name has the form's suffix, or report why there is none. */
enum xfp_status xfp_shards_only(const struct xfp_file_form *form, struct xfp_checkpoint *checkpoint,
				const struct xfp_listing *listing, bool (*may_be)(const char *name),
				struct xfp_error *err);
/* Note all other files of the form. */
void xfp_shards_note_others(struct xfp_checkpoint *checkpoint, const struct xfp_listing *listing, const char *taken,
			    bool (*may_be)(const char *name));

#endif
