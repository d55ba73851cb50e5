/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zipped.c - a checkpoint in a zip archive with stored members, as from zip -0. Tensors are read in place; small files
 * are carried along like synthesized files. A torch.save file is a zip as well, and counts as one file.
 *
 * The checkpoint is in the least nested folder of the archive that contains weights.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/path.h"
#include "base/text/glob.h"
#include "base/text/suffix.h"
#include "checkpoints/folder.h"
#include "checkpoints/format.h"
#include "checkpoints/note.h"
#include "checkpoints/zip.h"

/* Return whether a member is hidden, or in a folder that operating systems add. */
static bool is_hidden(const char *name)
{
	return *name == '.' || strstr(name, "/.") || !strncmp(name, "__MACOSX/", 9);
}

static size_t depth_of(const char *name)
{
	size_t depth = 0;

	while ((name = strchr(name, '/'))) {
		name++;
		depth++;
	}
	return depth;
}

/* Find the length of the checkpoint's folder name, with slash; returns false if no member is weights. */
static bool find_inside(const struct xfp_zip *zip, const char **first, size_t *length)
{
	const struct xfp_zip_member *best = NULL;

	for (uint32_t i = 0; i < zip->count; i++) {
		const char *name = zip->members[i].name;

		if (xfp_folder_holds_weights(name) && !is_hidden(name) &&
		    (!best || depth_of(name) < depth_of(best->name)))
			best = &zip->members[i];
	}
	if (!best)
		return false;
	*first = best->name;
	*length = (size_t)(xfp_base_name(best->name) - best->name);
	return true;
}

/* A torch.save file has its pickle in the only folder. */
static bool is_torch_file(const struct xfp_zip *zip)
{
	for (uint32_t i = 0; i < zip->count; i++) {
		const char *slash = strchr(zip->members[i].name, '/');

		if (slash && !strcmp(slash, "/data.pkl"))
			return true;
	}
	return false;
}

/* List the names in the folder, and the small files in its subfolders. */
static enum xfp_status list(const struct xfp_zip *zip, const char *path, char *inside, struct xfp_listing *listing,
			    struct xfp_error *err)
{
	size_t length = strlen(inside);

	*listing = (struct xfp_listing){ .path = path, .zip = zip, .inside = inside };
	listing->folder = xfp_formatted("%s/%.*s", path, (int)(length ? length - 1 : 0), inside);
	listing->names = malloc(zip->count * sizeof *listing->names + 1);
	if (!listing->folder || !listing->names)
		return xfp_no_memory_for(err, path);
	if (!length)
		listing->folder[strlen(path)] = 0;
	for (uint32_t i = 0; i < zip->count; i++) {
		const char *name = zip->members[i].name;

		if (strncmp(name, inside, length) || is_hidden(name) ||
		    (strchr(name + length, '/') && !xfp_folder_carries(name + length)))
			continue;
		if (!(listing->names[listing->count] = strdup(name + length)))
			return xfp_no_memory_for(err, path);
		listing->count++;
	}
	return XFP_OK;
}

/* Carry small files along. */
static enum xfp_status add_extras(struct xfp_checkpoint *c, const struct xfp_listing *listing, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < listing->count; i++) {
		const char *name = listing->names[i];
		char *path = NULL, *text = NULL;
		struct xfp_place place;
		size_t size;

		if (!xfp_folder_carries(name) && !xfp_is_packing_file(name)) {
			if (!xfp_folder_holds_weights(name))
				xfp_checkpoint_leave_out(c, name);
			continue;
		}
		if (!xfp_checkpoint_keeps_file(c, name))
			continue;
		if (!(status = xfp_listing_place(listing, name, &place, &path, err)) &&
		    !(status = xfp_place_slurp(&place, XFP_EXTRA_MAX, &text, &size, err))) {
			if (!strcmp(name, "config.json") && !(c->config = strdup(text)))
				status = xfp_no_memory_for(err, path);
			if (status)
				free(text);
			else
				status = xfp_checkpoint_make(c, name, text, size, err);
		}
		free(path);
	}
	return status;
}

static enum xfp_status open_listing(struct xfp_checkpoint *c, const struct xfp_listing *listing, const char *first,
				    struct xfp_error *err)
{
	bool safetensors = false, gguf = xfp_ends_with(first, ".gguf");
	enum xfp_status status;

	for (uint32_t i = 0; i < listing->count; i++)
		safetensors |= xfp_ends_with(listing->names[i], ".safetensors") ||
			       xfp_ends_with(listing->names[i], ".safetensors.index.json");
	c->format = safetensors ? "safetensors in a zip" : gguf ? "gguf in a zip" : "pytorch in a zip";
	/* A GGUF is self-contained, so small files next to it are unrelated. */
	if (gguf && !safetensors)
		return (status = xfp_gguf_open_listing(c, listing, NULL, err)) ? status : add_extras(c, listing, err);
	if (!safetensors && !xfp_ends_with(first, ".bin") && !xfp_ends_with(first, ".pth") &&
	    !xfp_ends_with(first, ".pt") && !xfp_ends_with(first, ".index.json"))
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s/%s: is not supported in an archive; unpack it, and name the file or its folder",
				listing->folder, xfp_printable(xfp_base_name(first)).text);
	status = add_extras(c, listing, err);
	if (status)
		return status;
	return safetensors ? xfp_safetensors_open_listing(c, listing, err) : xfp_pytorch_open_listing(c, listing, err);
}

static enum xfp_status open_zip(const char *model, struct xfp_checkpoint *c, struct xfp_error *err)
{
	struct xfp_listing listing = { 0 };
	struct xfp_identity identity;
	struct xfp_place place;
	struct xfp_zip zip = { 0 };
	char *path = NULL, *inside = NULL;
	const char *first = NULL, *name;
	enum xfp_status status;
	size_t length = 0;
	int fd = -1;

	if ((status = xfp_folder_place(c, model, &name, err)))
		return status;
	if (!(path = xfp_path(c->folder, name))) {
		status = xfp_no_memory_for(err, model);
		goto done;
	}
	place = xfp_place_of_file(path);
	if ((status = xfp_place_open(&place, &fd, &place.bytes, &identity, err)) ||
	    (status = xfp_zip_read(fd, &place, &zip, err)))
		goto done;
	if (is_torch_file(&zip)) {
		free(c->folder);
		c->folder = NULL;
		c->format = xfp_format_pytorch.name;
		status = xfp_format_pytorch.open(model, c, err);
	} else if (!find_inside(&zip, &first, &length)) {
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: contains no supported weights", path);
	} else if (!(inside = strndup(first, length))) {
		status = xfp_no_memory_for(err, path);
	} else {
		c->apart = true;
		xfp_zip_count(&zip, c);
		if (!(status = list(&zip, path, inside, &listing, err)))
			status = open_listing(c, &listing, first, err);
	}

done:
	xfp_listing_free(&listing);
	xfp_zip_free(&zip);
	free(inside);
	free(path);
	if (fd >= 0)
		close(fd);
	return status;
}

const struct xfp_checkpoint_format xfp_format_zip = {
	.name = "zip",
	.open = open_zip,
};
