/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - open a checkpoint: pick its format, sort files and tensors, read the config, fold packed tensors.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/sort.h"
#include "base/system/filesystem.h"
#include "base/text/suffix.h"
#include "checkpoints/folder.h"
#include "checkpoints/format.h"
#include "checkpoints/note.h"
#include "checkpoints/open/fold.h"
#include "schemas/recipe/recipe.h"

#define CONFIG_MAX ((size_t)64 << 20)

static const struct xfp_checkpoint_format *const formats[] = { &xfp_format_safetensors, &xfp_format_pytorch,
							       &xfp_format_gguf, &xfp_format_zip };

static int by_file_name(const void *a, const void *b)
{
	return strcmp(((const struct xfp_source_file *)a)->name, ((const struct xfp_source_file *)b)->name);
}

static int by_tensor_name(const void *a, const void *b)
{
	const struct xfp_source_tensor *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	/* Equal names are an error; sorting by file makes its message deterministic. */
	return order ? order : (x->file > y->file) - (x->file < y->file);
}

static void renumber(struct xfp_source_tensor *tensor, const uint32_t *moved)
{
	struct xfp_recipe *recipe = tensor->recipe;

	tensor->file = moved[tensor->file];
	for (uint32_t i = 0; recipe && i < recipe->part_count; i++)
		for (uint32_t k = 0; k < recipe->parts[i].component_count; k++) {
			struct xfp_component *component = &recipe->parts[i].components[k];

			component->file = moved[component->file];
		}
}

/* Sort files by name and renumber the tensors' files. */
static enum xfp_status sort_files(struct xfp_checkpoint *c, struct xfp_error *err)
{
	struct xfp_source_file *sorted = malloc(c->file_count * sizeof *sorted + 1);
	uint32_t *moved = malloc(c->file_count * sizeof *moved + 1);

	if (!sorted || !moved) {
		free(sorted);
		free(moved);
		return xfp_no_memory_for(err, c->folder);
	}
	if (c->file_count) {
		memcpy(sorted, c->files, c->file_count * sizeof *sorted);
		qsort(sorted, c->file_count, sizeof *sorted, by_file_name);
	}
	for (uint32_t i = 0; i < c->file_count; i++) {
		const struct xfp_source_file *at =
			bsearch(&c->files[i], sorted, c->file_count, sizeof *sorted, by_file_name);

		moved[i] = (uint32_t)(at - sorted);
	}
	for (uint32_t i = 0; i < c->tensor_count; i++)
		renumber(&c->tensors[i], moved);
	free(c->files);
	free(moved);
	c->files = sorted;
	return XFP_OK;
}

static enum xfp_status sort_tensors(struct xfp_checkpoint *c, struct xfp_error *err)
{
	if (!c->tensor_count)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: contains no tensors; download it again",
				c->file_count == 1 ? c->files[0].path : c->folder);
	xfp_sort(c->tensors, c->tensor_count, sizeof *c->tensors, by_tensor_name);
	for (uint32_t i = 1; i < c->tensor_count; i++) {
		const struct xfp_source_tensor *a = &c->tensors[i - 1], *b = &c->tensors[i];

		if (!strcmp(a->name, b->name))
			return xfp_fail(err, XFP_BAD_INPUT,
					"%s: tensor %s: is in %s and in %s; remove one of the"
					" files, or list the tensor in the index",
					c->folder, xfp_printable(a->name).text,
					xfp_printable(c->files[a->file].name).text,
					xfp_printable(c->files[b->file].name).text);
	}
	return XFP_OK;
}

static enum xfp_status read_config(struct xfp_checkpoint *c, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	char *path, *text = NULL;
	size_t size;
	struct stat st = { 0 };

	if (c->config || c->apart || c->synthesized_count)
		return XFP_OK;
	if (!(path = xfp_path(c->folder, "config.json")))
		return xfp_no_memory_for(err, c->folder);
	if (stat(path, &st) && errno == ENOENT)
		goto done;
	if ((status = xfp_slurp_regular(path, CONFIG_MAX, &text, &size, err)))
		goto done;
	if (strlen(text) != size) {
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: contains NUL, so it is not JSON; download it again", path);
		goto done;
	}
	c->config = text;
	c->config_identity = xfp_identity_at(path, &st);
	text = NULL;

done:
	free(text);
	free(path);
	return status;
}

/* Report what the file is instead of a checkpoint, and what to do with it. */
static enum xfp_status refuse_file(const char *model, struct xfp_error *err)
{
	char start[9] = "";
	const char *what = "is not a safetensors, PyTorch or GGUF file; name one, or the folder of a checkpoint";
	FILE *file = fopen(model, "rb");
	size_t size = file ? fread(start, 1, sizeof start, file) : 0;
	int failed = !file || ferror(file) ? errno : 0;

	if (file)
		fclose(file);
	if (failed)
		return xfp_fail_errno(err, failed, "%s: cannot read", model);
	if (size == 9 && !memcmp(start, "xfp.json", 9))
		what = "is an .xfp bundle; use xfp info to list it, or xfp unpack to get a checkpoint";
	else if (size >= 4 && !memcmp(start, "\200\002", 2))
		what = "is a pickle, but not a file of tensors from torch.save";
	else if (xfp_ends_with(model, ".json"))
		what = "does not contain weights; name its folder";
	return xfp_fail(err, XFP_BAD_INPUT, "%s: %s", model, what);
}

static enum xfp_status refuse_folder(const char *model, struct xfp_error *err)
{
	static const struct {
		const char *suffix, *remedy;
	} others[] = {
		{ ".xfp", "a bundle; use xfp unpack to get a checkpoint" },
		{ ".bin", "training state, not the model's weights" },
		{ ".pt", "training state, not the model's weights" },
		{ ".pth", "training state, not the model's weights" },
		{ ".ckpt", "name that file if it contains the model" },
	};
	char **names = NULL;
	uint32_t count = 0;
	enum xfp_status status = xfp_folder_list(model, &names, &count, err);

	for (size_t k = 0; !status && k < sizeof others / sizeof *others; k++)
		for (uint32_t i = 0; !status && i < count; i++)
			if (xfp_ends_with(names[i], others[k].suffix))
				status = xfp_fail(err, XFP_BAD_INPUT, "%s: contains no checkpoint, but %s: %s", model,
						  xfp_printable(names[i]).text, others[k].remedy);
	xfp_names_free(names, count);
	return status ? status
		      : xfp_fail(err, XFP_BAD_INPUT,
				 "%s: no checkpoint that can be read: model.safetensors, pytorch_model.bin, shards of"
				 " either with an index, or a .gguf, are expected",
				 model);
}

/* Fold the packed tensors of a container. */
static enum xfp_status fold_packed(struct xfp_checkpoint *c, struct xfp_error *err)
{
	enum xfp_status status = xfp_checkpoint_fold(c, err);

	return status || !c->packed ? status : sort_files(c, err);
}

static enum xfp_status open_model(const char *model, bool fold, struct xfp_checkpoint **out, struct xfp_error *err)
{
	const struct xfp_checkpoint_format *format;
	struct xfp_checkpoint *c = NULL;
	enum xfp_status status;
	struct stat st;

	if (stat(model, &st))
		return errno == ENOENT  ? xfp_fail(err, XFP_BAD_INPUT, "%s: no such file or folder", model)
		       : errno == ELOOP ? xfp_fail(err, XFP_BAD_INPUT, XFP_MODEL_LOOP, model)
					: xfp_fail_errno(err, errno, "%s: cannot open", model);
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: is a pipe or a device; name a file of weights, or the folder of a checkpoint",
				model);
	if ((status = xfp_checkpoint_probe(model, S_ISDIR(st.st_mode), &format, err)))
		return status;
	if (!format)
		return S_ISDIR(st.st_mode) ? refuse_folder(model, err) : refuse_file(model, err);
	c = calloc(1, sizeof *c);
	if (!c)
		return xfp_no_memory_for(err, model);
	c->format = format->name;
	c->is_folder = S_ISDIR(st.st_mode);
	if ((status = format->open(model, c, err)) || (status = sort_files(c, err)) ||
	    (status = sort_tensors(c, err)) || (status = read_config(c, err)) ||
	    (fold && !c->arranged && (status = fold_packed(c, err))) ||
	    (!c->apart && (status = xfp_folder_extras(c, err))) ||
	    (c->synthesized_count && (status = xfp_checkpoint_add_synthesized(c, err))))
		goto done;
	if (c->without_crc)
		xfp_checkpoint_note(c,
				    "%" PRIu32 " of %" PRIu32
				    " members of its archive%s have no CRC-32: damage to them is "
				    "not noticed",
				    c->without_crc, c->members, c->file_count > 1 ? "s" : "");
	*out = c;
	c = NULL;

done:
	xfp_checkpoint_close(c);
	return status;
}

enum xfp_status xfp_checkpoint_open(const char *model, struct xfp_checkpoint **out, struct xfp_error *err)
{
	return open_model(model, true, out, err);
}

enum xfp_status xfp_checkpoint_open_stored(const char *model, struct xfp_checkpoint **out, struct xfp_error *err)
{
	return open_model(model, false, out, err);
}

enum xfp_status xfp_header_read(const struct xfp_checkpoint *c, struct xfp_header *header, struct xfp_error *err)
{
	*header = (struct xfp_header){ 0 };
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
		if (!strcmp(formats[i]->name, c->format) && formats[i]->header)
			return formats[i]->header(c, header, err);
	return XFP_OK;
}
