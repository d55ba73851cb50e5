/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors.c - Hugging Face checkpoints: one safetensors file, or shards with an index.
 *
 * Which files count:
 *   MODEL is a .safetensors file          that file alone
 *   MODEL is an index, or a folder
 *   that holds one                        the shards that the index lists, never any other
 *   a folder with output*.safetensors     those, as EXL2's converter names them; it leaves an index of other files
 *   a folder with model.safetensors       that file alone
 *   a folder with a single .safetensors   that file, unless its name says that it is one of several
 *   any other folder                      refused: nothing says which files belong together
 *
 * With an index, every listed shard must be there and hold every tensor that is mapped to it. Nothing
 * else in the shards is lost silently: tensors that the index omits are taken, copies that
 * the index maps to another shard are left, and both are noted, as are files that it does not list.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/printable.h"
#include "checkpoints/folder.h"
#include "checkpoints/format.h"
#include "checkpoints/safetensors_header.h"
#include "checkpoints/safetensors_index.h"

#define INDEX_NAME "model.safetensors.index.json"
#define SINGLE_NAME "model.safetensors"
#define INDEX_SUFFIX ".safetensors.index.json"
#define SUFFIX ".safetensors"

/* ---- probe -------------------------------------------------------------------------------------- */

/* A file without the usual name, for instance a blob of the Hugging Face cache: plausible length, '{'. */
static enum xfp_status looks_right(const char *path, bool *right, struct xfp_error *err)
{
	unsigned char head[9];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum xfp_status status = XFP_OK;
	struct stat st;

	*right = false;
	if (fd < 0 || fstat(fd, &st))
		status = xfp_fail_errno(err, errno, "%s: cannot open", path);
	else if (S_ISREG(st.st_mode) && st.st_size >= (off_t)sizeof head &&
		 !(status = xfp_pread(fd, head, sizeof head, 0, path, err)))
		*right = xfp_load64(head) <= XFP_SAFETENSORS_HEADER_MAX && head[8] == '{';
	if (fd >= 0)
		close(fd);
	return status;
}

static enum xfp_status probe(const char *model, int *sure, struct xfp_error *err)
{
	char **names = NULL;
	enum xfp_status status;
	uint32_t count = 0;
	struct stat st;
	bool right;

	*sure = 0;
	if (stat(model, &st))
		return xfp_fail_errno(err, errno, "%s: cannot open", model);
	if (!S_ISDIR(st.st_mode)) {
		if (xfp_ends_with(model, SUFFIX) || xfp_ends_with(model, INDEX_SUFFIX)) {
			*sure = 100;
			return XFP_OK;
		}
		if (!(status = looks_right(model, &right, err)) && right)
			*sure = 50;
		return status;
	}
	if ((status = xfp_folder_list(model, &names, &count, err)))
		return status;
	for (uint32_t i = 0; i < count; i++) {
		if (!strcmp(names[i], INDEX_NAME) || !strcmp(names[i], SINGLE_NAME))
			*sure = 90;
		else if (xfp_ends_with(names[i], SUFFIX) && *sure < 60)
			*sure = 60;
	}
	xfp_names_free(names, count);
	return XFP_OK;
}

/* ---- reading files ------------------------------------------------------------------------------ */

/* Add the file to the checkpoint, its tensors to `file`. */
static enum xfp_status add_file(struct xfp_checkpoint *c, const char *name, struct xfp_safetensors *file,
				struct xfp_error *err)
{
	struct xfp_source_file *grown = realloc(c->files, (c->file_count + 1) * sizeof *grown);
	struct xfp_source_file *added;
	enum xfp_status status;

	if (!grown)
		return xfp_no_memory_for(err, c->folder);
	c->files = grown;
	added = &c->files[c->file_count++];
	*added = (struct xfp_source_file){ .name = strdup(name), .path = xfp_path(c->folder, name) };
	if (!added->name || !added->path)
		return xfp_no_memory_for(err, c->folder);
	if ((status = xfp_safetensors_read(added->path, file, err)))
		return status;
	added->identity = file->identity;
	return XFP_OK;
}

/* Move the tensors of the file that was added last, but those whose name is NULL, to the checkpoint. */
static enum xfp_status take_tensors(struct xfp_checkpoint *c, struct xfp_safetensors *file, struct xfp_error *err)
{
	struct xfp_source_tensor *grown;

	if (file->count > UINT32_MAX - c->tensor_count)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: has more tensors than are supported", c->folder);
	if (!file->count)
		return XFP_OK;
	grown = realloc(c->tensors, ((size_t)c->tensor_count + file->count) * sizeof *grown);
	if (!grown)
		return xfp_no_memory_for(err, c->folder);
	c->tensors = grown;
	for (uint32_t i = 0; i < file->count; i++) {
		if (!file->tensors[i].name)
			continue;
		file->tensors[i].file = c->file_count - 1;
		c->tensors[c->tensor_count++] = file->tensors[i];
		file->tensors[i].name = NULL;
	}
	return XFP_OK;
}

static enum xfp_status open_single(struct xfp_checkpoint *c, const char *name, struct xfp_error *err)
{
	struct xfp_safetensors file = { 0 };
	enum xfp_status status;

	if (!(status = add_file(c, name, &file, err)))
		status = take_tensors(c, &file, err);
	xfp_safetensors_free(&file);
	return status;
}

/* ---- shards ------------------------------------------------------------------------------------- */

/* Look for all of them before the first is read: whoever downloads again wants to know how much. */
static enum xfp_status check_shards(struct xfp_checkpoint *c, const char *index_name, const struct xfp_index *index,
				    struct xfp_error *err)
{
	const char *first = NULL;
	uint32_t missing = 0;

	for (uint32_t i = 0; i < index->shard_count; i++) {
		char *path = xfp_path(c->folder, index->shards[i]);
		struct stat st;
		bool gone = path && stat(path, &st) && errno == ENOENT; /* opening reports other errors */

		if (!path)
			return xfp_no_memory_for(err, c->folder);
		free(path);
		if (gone && !missing++)
			first = index->shards[i];
	}
	if (missing)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s/%s: missing; %s lists %u files and %u of them are not there:"
				" download them",
				c->folder, xfp_printable(first).text, index_name, index->shard_count, missing);
	return XFP_OK;
}

/* Tick off what the index maps here, drop what it maps elsewhere, note what it omits. */
static void apply_index(struct xfp_checkpoint *c, const char *index_name, struct xfp_index *index, uint32_t shard,
			struct xfp_safetensors *file)
{
	const char *name = index->shards[shard];
	struct xfp_printable omitted_name, other_name;
	uint32_t omitted = 0, other = 0;

	for (uint32_t i = 0; i < file->count; i++) {
		struct xfp_source_tensor *t = &file->tensors[i];
		struct xfp_index_entry *entry = xfp_index_find(index, t->name);

		if (!entry) {
			if (!omitted++)
				omitted_name = xfp_printable(t->name);
		} else if (entry->shard == shard) {
			entry->found = true;
		} else {
			if (!other++)
				other_name = xfp_printable(t->name);
			free(t->name);
			t->name = NULL;
		}
	}
	if (omitted)
		xfp_checkpoint_note(c, "%s: holds %u tensor%s that %s does not list (first: %s); taken as well",
				    xfp_printable(name).text, omitted, omitted == 1 ? "" : "s", index_name,
				    omitted_name.text);
	if (other)
		xfp_checkpoint_note(
			c, "%s: holds %u tensor%s for which %s names another file (first: %s); ignored here",
			xfp_printable(name).text, other, other == 1 ? "" : "s", index_name, other_name.text);
}

static int by_string(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum xfp_status open_sharded(struct xfp_checkpoint *c, const char *index_name, struct xfp_error *err)
{
	struct xfp_safetensors file = { 0 };
	struct xfp_index index = { 0 };
	char *path = xfp_path(c->folder, index_name), **names = NULL;
	enum xfp_status status;
	uint32_t count = 0;

	if (!path) {
		status = xfp_no_memory_for(err, c->folder);
		goto done;
	}
	if ((status = xfp_index_read(path, &index, err)) || (status = check_shards(c, index_name, &index, err)))
		goto done;
	for (uint32_t i = 0; i < index.shard_count; i++) {
		if ((status = add_file(c, index.shards[i], &file, err)))
			goto done;
		apply_index(c, index_name, &index, i, &file);
		if ((status = take_tensors(c, &file, err)))
			goto done;
		xfp_safetensors_free(&file);
	}
	for (uint32_t i = 0; i < index.entry_count; i++) {
		const struct xfp_index_entry *entry = &index.entries[i];

		if (!entry->found) {
			status = xfp_fail(
				err, XFP_BAD_INPUT,
				"%s/%s: tensor %s: %s says that it is here, and it is not; download both again",
				c->folder, xfp_printable(index.shards[entry->shard]).text,
				xfp_printable(entry->tensor).text, index_name);
			goto done;
		}
	}
	if ((status = xfp_folder_list(c->folder, &names, &count, err)))
		goto done;
	for (uint32_t i = 0; i < count; i++) {
		if (xfp_ends_with(names[i], SUFFIX) &&
		    !bsearch(&names[i], index.shards, index.shard_count, sizeof *names, by_string))
			xfp_checkpoint_note(c, "%s: is not listed by %s; ignored", xfp_printable(names[i]).text,
					    index_name);
	}

done:
	xfp_names_free(names, count);
	xfp_safetensors_free(&file);
	xfp_index_free(&index);
	free(path);
	return status;
}

/* ---- which files -------------------------------------------------------------------------------- */

/* Whether a name ends in "-00001-of-00004.safetensors": one of several files. */
static bool is_shard(const char *name)
{
	static const char digits[] = "0123456789", of[] = "-of-";
	const char *at = name;

	while ((at = strstr(at, of))) {
		const char *total = at + strlen(of), *after = total + strspn(total, digits);

		if (after > total && !strcmp(after, SUFFIX) && at > name && strchr(digits, at[-1]))
			return strtoul(total, NULL, 10) > 1;
		at = total;
	}
	return false;
}

/* ---- files of EXL2's converter ------------------------------------------------------------------ */

/* It names them itself, writes no index, and copies that of its source, which lists files that are not there. */
#define OUTPUT "output"

static bool is_output(const char *name)
{
	size_t length = strlen(OUTPUT);

	return !strncmp(name, OUTPUT, length) && xfp_ends_with(name, SUFFIX) &&
	       (name[length] == '-' || !strcmp(name + length, SUFFIX));
}

/* Whether no file that the index lists is there. */
static enum xfp_status is_stale(struct xfp_checkpoint *c, const char *index_name, bool *stale, struct xfp_error *err)
{
	char *path = xfp_path(c->folder, index_name);
	struct xfp_index index = { 0 };
	enum xfp_status status = path ? xfp_index_read(path, &index, err) : xfp_no_memory_for(err, c->folder);
	struct stat st;

	*stale = !status;
	for (uint32_t i = 0; !status && *stale && i < index.shard_count; i++) {
		status = xfp_folder_look(c->folder, index.shards[i], &st, err);
		*stale = !status && !st.st_mode;
	}
	xfp_index_free(&index);
	free(path);
	return status;
}

/* All of them: output.safetensors, or output-00001-of-00003.safetensors and so on. `names` are sorted. */
static enum xfp_status open_outputs(struct xfp_checkpoint *c, char *const *names, uint32_t count, struct xfp_error *err)
{
	struct xfp_safetensors file = { 0 };
	enum xfp_status status = XFP_OK;
	unsigned number = 0, total = 0;
	char expected[64];

	for (uint32_t i = 0; !status && i < count; i++) {
		if (!is_output(names[i]))
			continue;
		number++;
		if (number == 1 && sscanf(names[i], OUTPUT "-%*5u-of-%5u", &total) != 1)
			total = 1;
		snprintf(expected, sizeof expected, OUTPUT "-%05u-of-%05u" SUFFIX, number, total);
		if (strcmp(names[i], expected) != 0 && (total > 1 || strcmp(names[i], OUTPUT SUFFIX) != 0))
			break;
		if (!(status = add_file(c, names[i], &file, err)))
			status = take_tensors(c, &file, err);
		xfp_safetensors_free(&file);
	}
	if (!status && c->file_count != total)
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: is to hold %u files that are called " OUTPUT "-00001-of-%05u" SUFFIX
				  " and so on, and does not; download those that are missing",
				  c->folder, total, total);
	return status;
}

/* ---- folders ------------------------------------------------------------------------------------ */

static enum xfp_status open_folder(struct xfp_checkpoint *c, struct xfp_error *err)
{
	char **names = NULL, *chosen = NULL, *another = NULL;
	bool index = false, single = false, outputs = false, stale = false;
	uint32_t count = 0, files = 0;
	enum xfp_status status;

	if ((status = xfp_folder_list(c->folder, &names, &count, err)))
		return status;
	for (uint32_t i = 0; i < count; i++) {
		index |= !strcmp(names[i], INDEX_NAME);
		outputs |= is_output(names[i]);
		single |= !strcmp(names[i], SINGLE_NAME);
		if (xfp_ends_with(names[i], SUFFIX) && !files++)
			chosen = names[i];
		else if (xfp_ends_with(names[i], SUFFIX))
			another = names[i];
	}
	if (index && outputs && (status = is_stale(c, INDEX_NAME, &stale, err)))
		goto done;
	if (stale)
		xfp_checkpoint_note(c, INDEX_NAME ": lists no file that is there; ignored");
	if (outputs && !single && (stale || !index)) {
		status = open_outputs(c, names, count, err);
	} else if (index) {
		status = open_sharded(c, INDEX_NAME, err);
	} else if (single) {
		for (uint32_t i = 0; i < count; i++) {
			if (xfp_ends_with(names[i], SUFFIX) && strcmp(names[i], SINGLE_NAME))
				xfp_checkpoint_note(c, "%s: lies beside " SINGLE_NAME "; ignored",
						    xfp_printable(names[i]).text);
		}
		status = open_single(c, SINGLE_NAME, err);
	} else if (files > 1) {
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: holds %u safetensors files (%s ... %s) and no " INDEX_NAME
				  " that says which belong together; download the index, or name one of the files",
				  c->folder, files, xfp_printable(chosen).text, xfp_printable(another).text);
	} else if (!chosen) {
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: holds no safetensors file", c->folder);
	} else if (is_shard(chosen)) {
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s/%s: is one of several files; download the others and " INDEX_NAME, c->folder,
				  xfp_printable(chosen).text);
	} else {
		status = open_single(c, chosen, err);
	}

done:
	xfp_names_free(names, count);
	return status;
}

static enum xfp_status open_safetensors(const char *model, struct xfp_checkpoint *c, struct xfp_error *err)
{
	const char *name;
	enum xfp_status status = xfp_folder_place(c, model, &name, err);

	if (status)
		return status;
	if (c->is_folder)
		return open_folder(c, err);
	if (xfp_ends_with(name, INDEX_SUFFIX))
		return open_sharded(c, name, err);
	if (is_shard(name))
		xfp_checkpoint_note(c, "%s: is one of several files; the others are not read",
				    xfp_printable(name).text);
	return open_single(c, name, err);
}

/* Of all files but that of the config, which is among those of a packed checkpoint. */
static enum xfp_status read_headers(const struct xfp_checkpoint *c, struct xfp_header *header, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (uint32_t i = 0; !status && i < c->file_count; i++) {
		struct xfp_safetensors file = { 0 };

		if (xfp_ends_with(c->files[i].name, ".json"))
			continue;
		status = xfp_safetensors_read_all(c->files[i].path, i, &file, header, err);
		xfp_safetensors_free(&file);
	}
	return status;
}

const struct xfp_checkpoint_format xfp_format_safetensors = {
	.name = "safetensors",
	.probe = probe,
	.open = open_safetensors,
	.header = read_headers,
};
