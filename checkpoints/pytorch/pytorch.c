/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pytorch.c - checkpoints of torch.save: one file, shards with an index, or Meta's parts.
 *
 * Files of a model:
 *   MODEL is a file                       that file alone; for a part of Meta's format, all parts
 *   MODEL is an index, or a folder
 *   with pytorch_model.bin.index.json     the shards that the index lists, never any other
 *   a folder with pytorch_model.bin       that file alone
 *   a folder with consolidated.00.pth     all parts of Meta's format (meta.h)
 *   a folder with a single tensor file (.bin, .pth, .pt), ignoring training state
 *                                         that file
 *   any other folder                      refused: it is unknown which files belong together
 */
#include <string.h>

#include "base/text/glob.h"
#include "base/text/suffix.h"
#include "checkpoints/folder.h"
#include "checkpoints/format.h"
#include "checkpoints/note.h"
#include "checkpoints/pytorch/meta.h"
#include "checkpoints/pytorch/torch_file.h"

#define INDEX_NAME "pytorch_model.bin.index.json"
#define SINGLE_NAME "pytorch_model.bin"
#define SUFFIX ".bin"

const struct xfp_file_form xfp_form_pytorch = { SUFFIX, "PyTorch", INDEX_NAME, xfp_torch_file_read };

/* Files of training state next to a model. */
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

bool xfp_pytorch_may_be_weights(const char *name)
{
	return (xfp_ends_with(name, SUFFIX) || xfp_ends_with(name, ".pth") || xfp_ends_with(name, ".pt")) &&
	       !is_of_training(name);
}

static enum xfp_status is_of_torch(const char *path, bool *is, struct xfp_error *err)
{
	const struct xfp_place whole = xfp_place_of_file(path);
	enum xfp_torch_layout layout;
	enum xfp_status status = xfp_torch_layout(&whole, &layout, err);

	*is = !status && (layout == XFP_TORCH_ZIP || layout == XFP_TORCH_OLD);
	return status;
}

enum xfp_status xfp_pytorch_open_listing(struct xfp_checkpoint *c, const struct xfp_listing *listing,
					 struct xfp_error *err)
{
	if (xfp_listing_has(listing, INDEX_NAME))
		return xfp_shards_indexed(&xfp_form_pytorch, c, listing, INDEX_NAME, err);
	if (xfp_listing_has(listing, SINGLE_NAME)) {
		xfp_shards_note_others(c, listing, SINGLE_NAME, xfp_pytorch_may_be_weights);
		return xfp_shards_single(&xfp_form_pytorch, c, listing, SINGLE_NAME, err);
	}
	for (uint32_t i = 0; i < listing->count; i++)
		if (xfp_meta_is_part(listing->names[i]))
			return xfp_meta_open(&xfp_form_pytorch, c, listing, err);
	return xfp_shards_only(&xfp_form_pytorch, c, listing, xfp_pytorch_may_be_weights, err);
}

static enum xfp_status open_pytorch(const char *model, struct xfp_checkpoint *c, struct xfp_error *err)
{
	struct xfp_listing listing = { 0 };
	enum xfp_status status;
	const char *name;

	if ((status = xfp_folder_place(c, model, &name, err)) ||
	    (status = xfp_listing_of_folder(c->folder, &listing, err)))
		return status;
	status = c->is_folder             ? xfp_pytorch_open_listing(c, &listing, err)
		 : xfp_meta_is_part(name) ? xfp_meta_open(&xfp_form_pytorch, c, &listing, err)
					  : xfp_shards_named(&xfp_form_pytorch, c, &listing, name, err);
	xfp_listing_free(&listing);
	return status;
}

const struct xfp_checkpoint_format xfp_format_pytorch = {
	.name = "pytorch",
	.examine = is_of_torch,
	.open = open_pytorch,
};
