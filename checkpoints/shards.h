/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shards.h - the files that a checkpoint's tensors are in: one alone, or several with an index that says which. Private
 * to checkpoints/.
 */
#ifndef XFP_SHARDS_H
#define XFP_SHARDS_H

#include <stdbool.h>

#include "checkpoints/checkpoint.h"
#include "checkpoints/place.h"
#include "checkpoints/zip.h"

/* What files there are to choose from: those of a folder, or the members of a zip. */
struct xfp_listing {
	char *folder; /* that they are in, for messages too; of a zip, its path with that of a folder in it */
	char **names; /* sorted */
	uint32_t count;
	const char *path;          /* of the zip; NULL: they are files of the checkpoint's folder */
	const struct xfp_zip *zip; /* likewise; borrowed */
	const char *inside;        /* what names of members begin with, and these do not */
};

enum xfp_status xfp_listing_of_folder(const char *folder, struct xfp_listing *out, struct xfp_error *err);
void xfp_listing_free(struct xfp_listing *listing);
bool xfp_listing_has(const struct xfp_listing *listing, const char *name);

/* Where a file is. `*path` is allocated for `place` to borrow. A member that is compressed is XFP_BAD_INPUT. */
enum xfp_status xfp_listing_place(const struct xfp_listing *listing, const char *name, struct xfp_place *place,
				  char **path, struct xfp_error *err);

/* Make it a file of the checkpoint, without its identity; of a zip, that is the one file that there is. */
enum xfp_status xfp_listing_file(struct xfp_checkpoint *checkpoint, const struct xfp_listing *listing, const char *name,
				 struct xfp_source_file **out, struct xfp_error *err);

/* A file that holds tensors. */
struct xfp_tensor_file {
	struct xfp_source_tensor *tensors; /* sorted by name, no two alike; `file` is 0, also of recipes */
	uint32_t count;
	struct xfp_identity identity;
};
void xfp_tensor_file_free(struct xfp_tensor_file *file); /* one that was never filled in must be zero */

/* A kind of them. */
struct xfp_file_form {
	const char *suffix; /* of their names */
	const char *what;   /* "safetensors" */
	const char *index;  /* the usual name of one */
	/* `notes` is the checkpoint to note oddities of. Anything wrong with the file is XFP_BAD_INPUT. */
	enum xfp_status (*read)(const struct xfp_place *place, struct xfp_checkpoint *notes,
				struct xfp_tensor_file *out, struct xfp_error *err);
};

/* Whether a name ends in "-00001-of-00004" and the suffix: one of several files. */
bool xfp_is_shard(const char *name, const char *suffix);

/* Add a file to the checkpoint, its tensors to `file`; and these, but those whose name is NULL, to the checkpoint,
 * while no other file was added. */
enum xfp_status xfp_shards_add(const struct xfp_file_form *form, struct xfp_checkpoint *checkpoint,
			       const struct xfp_listing *listing, const char *name, struct xfp_tensor_file *file,
			       struct xfp_error *err);
enum xfp_status xfp_shards_take(struct xfp_checkpoint *checkpoint, struct xfp_tensor_file *file, struct xfp_error *err);

/* Fill in files and tensors of a checkpoint: of one file; of all that an index lists. */
enum xfp_status xfp_shards_single(const struct xfp_file_form *form, struct xfp_checkpoint *checkpoint,
				  const struct xfp_listing *listing, const char *name, struct xfp_error *err);
enum xfp_status xfp_shards_indexed(const struct xfp_file_form *form, struct xfp_checkpoint *checkpoint,
				   const struct xfp_listing *listing, const char *index_name, struct xfp_error *err);

/* Fill in a checkpoint of which one file was named: an index, or one of files that stand alone. */
enum xfp_status xfp_shards_named(const struct xfp_file_form *form, struct xfp_checkpoint *checkpoint,
				 const struct xfp_listing *listing, const char *name, struct xfp_error *err);

/* Where no name says which file it is: the only one whose name may be one of the form's, or why there is none. */
enum xfp_status xfp_shards_only(const struct xfp_file_form *form, struct xfp_checkpoint *checkpoint,
				const struct xfp_listing *listing, bool (*may_be)(const char *name),
				struct xfp_error *err);
/* Note all files that may be of the form, but the one that is taken. */
void xfp_shards_note_others(struct xfp_checkpoint *checkpoint, const struct xfp_listing *listing, const char *taken,
			    bool (*may_be)(const char *name));

/* The last part of a path. */
const char *xfp_base_name(const char *path);

#endif
