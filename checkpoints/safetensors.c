/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors.c - Hugging Face checkpoints: one safetensors file, or shards with an index.
 *
 * Files of a model:
 *   MODEL is a .safetensors file          that file alone
 *   MODEL is an index, or a folder
 *   that contains one                     the shards that the index lists, never any other
 *   a folder with output*.safetensors     those, from EXL2's converter; it leaves an index of other files
 *   a folder with model.safetensors       that file alone
 *   a folder with a single .safetensors   that file, unless its name says that it is one of several
 *   any other folder                      refused: it is unknown which files belong together
 *
 * With an index, every listed shard must exist and contain every tensor that is mapped to it. Nothing else in the
 * shards is lost silently: tensors that the index omits are used, copies that it maps to another shard are ignored, and
 * both are noted, as are files that it does not list.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/text/suffix.h"
#include "checkpoints/folder.h"
#include "checkpoints/format.h"
#include "checkpoints/note.h"
#include "checkpoints/safetensors_header.h"
#include "checkpoints/safetensors_index.h"

#define INDEX_NAME "model.safetensors.index.json"
#define SINGLE_NAME "model.safetensors"
#define SUFFIX ".safetensors"

static enum xfp_status read_file(const struct xfp_place *place, struct xfp_checkpoint *notes,
				 struct xfp_tensor_file *out, struct xfp_error *err)
{
	(void)notes;
	return xfp_safetensors_read(place, out, err);
}

const struct xfp_file_form xfp_form_safetensors = { SUFFIX, "safetensors", INDEX_NAME, read_file };

/* ---- probe -------------------------------------------------------------------------------------- */

/* Check a file without the usual name, such as a blob of the Hugging Face cache: a plausible length and '{'. */
static enum xfp_status has_plausible_header(const char *path, bool *right, struct xfp_error *err)
{
	unsigned char head[9];
	enum xfp_status status = xfp_file_head(path, head, sizeof head, right, err);

	*right = !status && *right && xfp_load64(head) <= XFP_SAFETENSORS_HEADER_MAX && head[8] == '{';
	return status;
}

/* ---- files of EXL2's converter ------------------------------------------------------------------ */

/* The converter chooses these names, writes no index, and copies its source's index, which lists files that do not
 * exist. */
#define OUTPUT "output"

static bool is_output(const char *name)
{
	size_t length = strlen(OUTPUT);

	return !strncmp(name, OUTPUT, length) && xfp_ends_with(name, SUFFIX) &&
	       (name[length] == '-' || !strcmp(name + length, SUFFIX));
}

/* Return whether none of the files that the index lists exists. */
static enum xfp_status is_stale(const struct xfp_listing *listing, const char *index_name, bool *stale,
				struct xfp_error *err)
{
	struct xfp_index index = { 0 };
	enum xfp_status status;
	struct xfp_place place;
	char *path = NULL;

	if (!(status = xfp_listing_place(listing, index_name, &place, &path, err)))
		status = xfp_index_read(&place, &xfp_form_safetensors, &index, err);
	*stale = !status;
	for (uint32_t i = 0; !status && *stale && i < index.shard_count; i++)
		*stale = !xfp_listing_has(listing, index.shards[i]);
	xfp_index_free(&index);
	free(path);
	return status;
}

/* Open all outputs: output.safetensors, or output-00001-of-00003.safetensors and so on, which the listing has in
 * order. */
static enum xfp_status open_outputs(struct xfp_checkpoint *c, const struct xfp_listing *listing, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	unsigned number = 0, total = 0, read = 0;
	char expected[64];

	for (uint32_t i = 0; !status && i < listing->count; i++) {
		const char *name = listing->names[i];

		if (!is_output(name))
			continue;
		number++;
		if (number == 1 && sscanf(name, OUTPUT "-%*5u-of-%5u", &total) != 1)
			total = 1;
		snprintf(expected, sizeof expected, OUTPUT "-%05u-of-%05u" SUFFIX, number, total);
		if (strcmp(name, expected) != 0 && (total > 1 || strcmp(name, OUTPUT SUFFIX) != 0))
			break;
		status = xfp_shards_single(&xfp_form_safetensors, c, listing, name, err);
		read++;
	}
	if (!status && read != total)
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: must contain %u files named " OUTPUT "-00001-of-%05u" SUFFIX
				  " and so on; download the missing ones",
				  listing->folder, total, total);
	return status;
}

/* ---- which files -------------------------------------------------------------------------------- */

static bool may_be_weights(const char *name)
{
	return xfp_ends_with(name, SUFFIX);
}

enum xfp_status xfp_safetensors_open_listing(struct xfp_checkpoint *c, const struct xfp_listing *listing,
					     struct xfp_error *err)
{
	bool index = xfp_listing_has(listing, INDEX_NAME), outputs = false, stale = false;
	enum xfp_status status;

	for (uint32_t i = 0; i < listing->count; i++)
		outputs |= is_output(listing->names[i]);
	if (index && outputs && (status = is_stale(listing, INDEX_NAME, &stale, err)))
		return status;
	if (stale)
		xfp_checkpoint_note(c, INDEX_NAME ": lists no existing file; ignored");
	if (outputs && !xfp_listing_has(listing, SINGLE_NAME) && (stale || !index))
		return open_outputs(c, listing, err);
	if (index)
		return xfp_shards_indexed(&xfp_form_safetensors, c, listing, INDEX_NAME, err);
	if (!xfp_listing_has(listing, SINGLE_NAME))
		return xfp_shards_only(&xfp_form_safetensors, c, listing, may_be_weights, err);
	xfp_shards_note_others(c, listing, SINGLE_NAME, may_be_weights);
	return xfp_shards_single(&xfp_form_safetensors, c, listing, SINGLE_NAME, err);
}

static enum xfp_status open_safetensors(const char *model, struct xfp_checkpoint *c, struct xfp_error *err)
{
	struct xfp_listing listing = { 0 };
	enum xfp_status status;
	const char *name;

	if ((status = xfp_folder_place(c, model, &name, err)) ||
	    (status = xfp_listing_of_folder(c->folder, &listing, err)))
		return status;
	status = c->is_folder ? xfp_safetensors_open_listing(c, &listing, err)
			      : xfp_shards_named(&xfp_form_safetensors, c, &listing, name, err);
	xfp_listing_free(&listing);
	return status;
}

/* Read the headers of all files except that of the config, which is among those of a packed checkpoint. */
static enum xfp_status read_headers(const struct xfp_checkpoint *c, struct xfp_header *header, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < c->file_count; i++) {
		struct xfp_place place = xfp_place_of_file(c->files[i].path);
		struct xfp_tensor_file file = { 0 };

		if (xfp_ends_with(c->files[i].name, ".json"))
			continue;
		status = xfp_safetensors_read_all(&place, i, &file, header, err);
		xfp_tensor_file_free(&file);
	}
	return status;
}

const struct xfp_checkpoint_format xfp_format_safetensors = {
	.name = "safetensors",
	.examine = has_plausible_header,
	.open = open_safetensors,
	.header = read_headers,
};
