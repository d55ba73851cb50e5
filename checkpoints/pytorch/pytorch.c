/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pytorch.c - checkpoints of torch.save: one file, shards with an index, or Meta's parts.
 *
 * Which files count:
 *   MODEL is a file                       that file alone; a part of Meta's, all parts
 *   MODEL is an index, or a folder
 *   with pytorch_model.bin.index.json     the shards that the index lists, never any other
 *   a folder with pytorch_model.bin       that file alone
 *   a folder with consolidated.00.pth     all of Meta's parts (meta.h)
 *   a folder with a single file of tensors (.bin, .pth, .pt), what is left of a training aside
 *                                         that file
 *   any other folder                      refused: nothing says which files belong together
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/printable.h"
#include "base/text/glob.h"
#include "base/text/suffix.h"
#include "checkpoints/folder.h"
#include "checkpoints/format.h"
#include "checkpoints/note.h"
#include "checkpoints/pytorch/meta.h"
#include "checkpoints/pytorch/torch_file.h"

#define INDEX_NAME "pytorch_model.bin.index.json"
#define SINGLE_NAME "pytorch_model.bin"
#define INDEX_SUFFIX ".bin.index.json"
#define SUFFIX ".bin"

const struct xfp_file_form xfp_form_pytorch = { SUFFIX, "PyTorch", INDEX_NAME, xfp_torch_file_read };

/* What a training leaves beside a model. */
static const char *const of_training[] = {
	"training_args.bin", "optimizer.*", "scheduler.*", "rng_state*", "scaler.*", "random_states*",
};

static bool is_of_training(const char *name)
{
	for (size_t i = 0; i < sizeof of_training / sizeof *of_training; i++)
		if (xfp_glob_matches(of_training[i], name))
			return true;
	return false;
}

static bool may_be_weights(const char *name)
{
	return (xfp_ends_with(name, SUFFIX) || xfp_ends_with(name, ".pth") || xfp_ends_with(name, ".pt")) &&
	       !is_of_training(name);
}

static enum xfp_status probe(const char *model, int *sure, struct xfp_error *err)
{
	const struct xfp_place whole = xfp_whole_file(model);
	enum xfp_torch_layout layout;
	struct xfp_listing listing;
	enum xfp_status status;
	struct stat st;

	*sure = 0;
	if (stat(model, &st))
		return xfp_fail_errno(err, errno, "%s: cannot open", model);
	if (!S_ISDIR(st.st_mode)) {
		if (xfp_ends_with(model, INDEX_SUFFIX)) {
			*sure = 100;
			return XFP_OK;
		}
		if (!(status = xfp_torch_layout(&whole, &layout, err)) &&
		    (layout == XFP_TORCH_ZIP || layout == XFP_TORCH_OLD) && !xfp_ends_with(model, ".zip"))
			*sure = 70;
		return status;
	}
	if ((status = xfp_listing_of_folder(model, &listing, err)))
		return status;
	if (xfp_listing_has(&listing, INDEX_NAME) || xfp_listing_has(&listing, SINGLE_NAME))
		*sure = 55;
	for (uint32_t i = 0; i < listing.count && !*sure; i++)
		if (xfp_meta_is_part(listing.names[i]))
			*sure = 54;
	for (uint32_t i = 0; i < listing.count && !*sure; i++)
		if (may_be_weights(listing.names[i]))
			*sure = 20;
	xfp_listing_free(&listing);
	return XFP_OK;
}

enum xfp_status xfp_pytorch_open_listing(struct xfp_checkpoint *c, const struct xfp_listing *listing,
					 struct xfp_error *err)
{
	if (xfp_listing_has(listing, INDEX_NAME))
		return xfp_shards_indexed(&xfp_form_pytorch, c, listing, INDEX_NAME, err);
	if (xfp_listing_has(listing, SINGLE_NAME)) {
		xfp_shards_note_others(c, listing, SINGLE_NAME, may_be_weights);
		return xfp_shards_single(&xfp_form_pytorch, c, listing, SINGLE_NAME, err);
	}
	for (uint32_t i = 0; i < listing->count; i++)
		if (xfp_meta_is_part(listing->names[i]))
			return xfp_meta_open(&xfp_form_pytorch, c, listing, err);
	return xfp_shards_only(&xfp_form_pytorch, c, listing, may_be_weights, err);
}

static enum xfp_status open_pytorch(const char *model, struct xfp_checkpoint *c, struct xfp_error *err)
{
	struct xfp_listing listing = { 0 };
	enum xfp_status status;
	const char *name;

	if ((status = xfp_folder_place(c, model, &name, err)) ||
	    (status = xfp_listing_of_folder(c->folder, &listing, err)))
		return status;
	if (c->is_folder) {
		status = xfp_pytorch_open_listing(c, &listing, err);
	} else if (xfp_ends_with(name, INDEX_SUFFIX)) {
		status = xfp_shards_indexed(&xfp_form_pytorch, c, &listing, name, err);
	} else if (xfp_meta_is_part(name)) {
		status = xfp_meta_open(&xfp_form_pytorch, c, &listing, err);
	} else {
		if (xfp_is_shard(name, SUFFIX))
			xfp_checkpoint_note(c, "%s: is one of several files; the others are not read",
					    xfp_printable(name).text);
		status = xfp_shards_single(&xfp_form_pytorch, c, &listing, name, err);
	}
	xfp_listing_free(&listing);
	return status;
}

const struct xfp_checkpoint_format xfp_format_pytorch = {
	.name = "pytorch",
	.probe = probe,
	.open = open_pytorch,
};
