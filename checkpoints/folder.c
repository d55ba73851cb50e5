/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/text/glob.h"
#include "base/text/suffix.h"
#include "checkpoints/note.h"

/* Files to carry along: config, tokenizer, templates, processors, sentence-transformers modules, code named by auto_map
 * (carried, never run), licence and model card. */
static const char *const extras[] = {
	"config.json",
	"generation_config.json",
	"tokenizer*.*",
	"vocab.*",
	"merges.txt",
	"special_tokens_map.json",
	"added_tokens.json",
	"spiece.model",
	"sentencepiece*.model",
	"*.tiktoken",
	"tiktoken.model",
	"tekken.json",
	"params.json",
	"*.jinja",
	"chat_template.json",
	"*preprocessor_config.json",
	"processor_config.json",
	"modules.json",
	"sentence_bert_config.json",
	"config_sentence_transformers.json",
	"*.py",
	"LICENSE*",
	"README.md",
};

/* Files to carry along from subfolders of the checkpoint. */
static const struct {
	const char *folder, *file;
} nested[] = {
	{ "[0-9]_*", "config.json" }, /* sentence-transformers modules: 1_Pooling ... */
	{ "additional_chat_templates", "*.jinja" },
};

static const char *const weights[] = {
	".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".h5", ".msgpack", ".onnx", ".index.json",
};

enum xfp_status xfp_folder_place(struct xfp_checkpoint *c, const char *model, const char **name, struct xfp_error *err)
{
	const char *slash = c->is_folder ? NULL : strrchr(model, '/');
	char *folder = c->is_folder ? strdup(model) : slash ? strndup(model, (size_t)(slash + 1 - model)) : strdup(".");
	enum xfp_status status = XFP_OK;

	if (!folder)
		return xfp_no_memory_for(err, model);
	*name = c->is_folder ? NULL : slash ? slash + 1 : model;
	/* Absolute, so that stages find the files from any working directory. */
	if (!(c->folder = realpath(folder, NULL)))
		status = xfp_fail_errno(err, errno, "%s: cannot open", folder);
	free(folder);
	return status;
}

enum xfp_status xfp_file_head(const char *path, unsigned char *head, size_t size, bool *there, struct xfp_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum xfp_status status = XFP_OK;
	struct stat st;

	*there = false;
	if (fd < 0 || fstat(fd, &st))
		status = xfp_fail_errno(err, errno, "%s: cannot open", path);
	else if (S_ISREG(st.st_mode) && st.st_size >= (off_t)size)
		*there = !(status = xfp_pread(fd, head, size, 0, path, err));
	if (fd >= 0)
		close(fd);
	return status;
}

bool xfp_is_packing_file(const char *name)
{
	static const char *const names[] = { "hf_quant_config.json", "quantize_config.json", "quant_config.json" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum xfp_status append(char ***names, uint32_t *count, char *name, struct xfp_error *err)
{
	char **grown;

	if (!name)
		goto failed;
	if (!(*count & (*count - 1))) { /* full at each power of two */
		grown = realloc(*names, (*count ? (size_t)*count * 2 : 1) * sizeof *grown);
		if (!grown)
			goto failed;
		*names = grown;
	}
	(*names)[(*count)++] = name;
	return XFP_OK;

failed:
	free(name);
	return xfp_fail(err, XFP_FAILED, "out of memory for a list of file names");
}

void xfp_names_free(char **names, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

enum xfp_status xfp_folder_list(const char *folder, char ***names, uint32_t *count, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	struct dirent *entry;
	char **found = NULL;
	uint32_t n = 0;
	DIR *dir = opendir(folder);

	if (!dir)
		return xfp_fail_errno(err, errno, "%s: cannot open this folder", folder);
	while (!status && (errno = 0, entry = readdir(dir))) {
		if (entry->d_name[0] != '.')
			status = append(&found, &n, strdup(entry->d_name), err);
	}
	if (!status && errno)
		status = xfp_fail_errno(err, errno, "%s: cannot read this folder", folder);
	closedir(dir);
	if (status) {
		xfp_names_free(found, n);
		return status;
	}
	if (n)
		qsort(found, n, sizeof *found, by_name);
	*names = found;
	*count = n;
	return XFP_OK;
}

enum xfp_status xfp_folder_stat(const char *folder, const char *name, struct stat *st, struct xfp_error *err)
{
	char *path = xfp_path(folder, name);
	enum xfp_status status = path ? xfp_stat(path, st, err) : xfp_no_memory_for(err, folder);

	free(path);
	return status;
}

bool xfp_folder_holds_weights(const char *name)
{
	for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
		if (xfp_ends_with(name, weights[i]))
			return true;
	}
	return false;
}

static bool is_extra(const char *name)
{
	for (size_t i = 0; i < sizeof extras / sizeof *extras; i++) {
		if (xfp_glob_matches(extras[i], name))
			return !xfp_folder_holds_weights(name);
	}
	return false;
}

bool xfp_folder_carries(const char *name)
{
	const char *slash = strchr(name, '/');
	char folder[256];

	if (!slash)
		return is_extra(name);
	if ((size_t)(slash - name) >= sizeof folder)
		return false;
	memcpy(folder, name, (size_t)(slash - name));
	folder[slash - name] = 0;
	for (size_t k = 0; k < sizeof nested / sizeof *nested; k++)
		if (xfp_glob_matches(nested[k].folder, folder) && xfp_glob_matches(nested[k].file, slash + 1))
			return true;
	return false;
}

/* Note a file that is neither carried nor weights. If MODEL is a file, its neighbours are not noted. Files that only
 * describe packed weights are not needed any more. */
static enum xfp_status note_left_out(struct xfp_checkpoint *c, const char *name, struct xfp_error *err)
{
	enum xfp_status status;
	struct stat st;

	if (!c->is_folder || xfp_folder_holds_weights(name) || xfp_ends_with(name, ".xfp") ||
	    (c->packed && xfp_is_packing_file(name)))
		return XFP_OK;
	if (!(status = xfp_folder_stat(c->folder, name, &st, err)) && S_ISREG(st.st_mode))
		xfp_checkpoint_leave_out(c, name);
	return status;
}

/* Add `name`, a path relative to the checkpoint's folder; takes ownership. */
static enum xfp_status add_extra(struct xfp_checkpoint *c, char *name, struct xfp_error *err)
{
	enum xfp_status status;
	struct stat st;

	if (!name)
		return xfp_no_memory_for(err, c->folder);
	status = xfp_folder_stat(c->folder, name, &st, err);
	if (!status && S_ISREG(st.st_mode) && (uint64_t)st.st_size <= XFP_EXTRA_MAX)
		return append(&c->extras, &c->extra_count, name, err);
	if (!status && S_ISREG(st.st_mode))
		xfp_checkpoint_note(c, "%s: is larger than 268 MB and is not carried along", xfp_printable(name).text);
	else if (!status && S_ISDIR(st.st_mode))
		xfp_checkpoint_note(c, "%s: is a folder and is not carried along", xfp_printable(name).text);
	else if (!status && st.st_mode)
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s/%s: is not a regular file, but belongs in the bundle; replace or remove it",
				  c->folder, xfp_printable(name).text);
	else if (!status)
		xfp_checkpoint_note(c, "%s: is a link to nothing and is not carried along", xfp_printable(name).text);
	free(name);
	return status;
}

static enum xfp_status add_nested(struct xfp_checkpoint *c, const char *folder, const char *pattern,
				  struct xfp_error *err)
{
	char *path = xfp_path(c->folder, folder), **names = NULL;
	enum xfp_status status;
	uint32_t count = 0;
	struct stat st;

	if (!path)
		return xfp_no_memory_for(err, c->folder);
	if (!(status = xfp_stat(path, &st, err)) && S_ISDIR(st.st_mode))
		status = xfp_folder_list(path, &names, &count, err);
	for (uint32_t i = 0; i < count && !status; i++) {
		char *name = xfp_path(folder, names[i]);

		if (name && xfp_ends_with(name, ".safetensors"))
			xfp_checkpoint_note(c, "%s: is outside the checkpoint's folder and is not carried along",
					    xfp_printable(name).text);
		if (!name || xfp_glob_matches(pattern, names[i]))
			status = add_extra(c, name, err);
		else
			free(name);
	}
	xfp_names_free(names, count);
	free(path);
	return status;
}

enum xfp_status xfp_folder_extras(struct xfp_checkpoint *c, struct xfp_error *err)
{
	enum xfp_status status;
	char **names;
	uint32_t count;

	if ((status = xfp_folder_list(c->folder, &names, &count, err)))
		return status;
	for (uint32_t i = 0; i < count && !status; i++) {
		if (is_extra(names[i]))
			status = add_extra(c, strdup(names[i]), err);
		else
			status = note_left_out(c, names[i], err);
		for (size_t k = 0; k < sizeof nested / sizeof *nested && !status; k++) {
			if (xfp_glob_matches(nested[k].folder, names[i]))
				status = add_nested(c, names[i], nested[k].file, err);
		}
	}
	if (c->extra_count)
		qsort(c->extras, c->extra_count, sizeof *c->extras, by_name);
	xfp_names_free(names, count);
	return status;
}
