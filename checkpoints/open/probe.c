/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.c - detect the format of a file or folder: the first matching row decides.
 */
#include <string.h>

#include "base/system/path.h"
#include "base/text/glob.h"
#include "checkpoints/folder.h"
#include "checkpoints/format.h"

struct probe {
	const struct xfp_checkpoint_format *format;
	const char *pattern;               /* pattern of the file name */
	bool (*matches)(const char *name); /* in place of a pattern; without either the file's contents decide */
};

static const struct probe of_file[] = {
	{ .format = &xfp_format_gguf },
	{ &xfp_format_safetensors, .pattern = "*.safetensors" },
	{ &xfp_format_safetensors, .pattern = "*.safetensors.index.json" },
	{ &xfp_format_pytorch, .pattern = "*.bin.index.json" },
	{ &xfp_format_gguf, .pattern = "*.gguf" },
	{ &xfp_format_zip, .pattern = "*.zip" },
	{ .format = &xfp_format_pytorch },
	{ .format = &xfp_format_safetensors }, /* for instance a blob of the Hugging Face cache */
};

/* Rows for folders: one file of the folder matches. */
static const struct probe of_folder[] = {
	{ &xfp_format_safetensors, .pattern = "*.safetensors" },
	{ &xfp_format_safetensors, .pattern = "model.safetensors.index.json" },
	{ &xfp_format_pytorch, .pattern = "pytorch_model.bin" },
	{ &xfp_format_pytorch, .pattern = "pytorch_model.bin.index.json" },
	{ &xfp_format_pytorch, .pattern = "consolidated.[0-9][0-9].pth" },
	{ &xfp_format_gguf, .pattern = "*.gguf" },
	{ &xfp_format_pytorch, .matches = xfp_pytorch_may_be_weights },
};

static bool is_named(const struct probe *probe, const char *name)
{
	return probe->pattern ? xfp_glob_matches(probe->pattern, name) : probe->matches && probe->matches(name);
}

static enum xfp_status probe_file(const char *path, const struct xfp_checkpoint_format **format, struct xfp_error *err)
{
	for (const struct probe *p = of_file; p < of_file + sizeof of_file / sizeof *of_file; p++) {
		enum xfp_status status = XFP_OK;
		bool is = is_named(p, xfp_base_name(path));

		if (!p->pattern && (status = p->format->examine(path, &is, err)))
			return status;
		if (is) {
			*format = p->format;
			break;
		}
	}
	return XFP_OK;
}

enum xfp_status xfp_checkpoint_probe(const char *model, bool folder, const struct xfp_checkpoint_format **format,
				     struct xfp_error *err)
{
	char **names = NULL;
	uint32_t count = 0;
	enum xfp_status status;

	*format = NULL;
	if (!folder)
		return probe_file(model, format, err);
	status = xfp_folder_list(model, &names, &count, err);
	for (size_t p = 0; !*format && p < sizeof of_folder / sizeof *of_folder; p++)
		for (uint32_t i = 0; !*format && i < count; i++)
			if (is_named(&of_folder[p], names[i]))
				*format = of_folder[p].format;
	xfp_names_free(names, count);
	return status;
}
