/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/shards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/printable.h"
#include "base/system/path.h"
#include "base/text/suffix.h"
#include "checkpoints/folder.h"
#include "checkpoints/note.h"
#include "checkpoints/safetensors_index.h"
#include "schemas/recipe/recipe.h"

/* ---- listing files ------------------------------------------------------------------------------- */

enum xfp_status xfp_listing_of_folder(const char *folder, struct xfp_listing *out, struct xfp_error *err)
{
	struct xfp_listing listing = { .folder = strdup(folder) };
	enum xfp_status status;

	if (!listing.folder)
		return xfp_no_memory_for(err, folder);
	if ((status = xfp_folder_list(folder, &listing.names, &listing.count, err))) {
		xfp_listing_free(&listing);
		return status;
	}
	*out = listing;
	return XFP_OK;
}

void xfp_listing_free(struct xfp_listing *listing)
{
	xfp_names_free(listing->names, listing->count);
	free(listing->folder);
	*listing = (struct xfp_listing){ 0 };
}

static int by_string(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

bool xfp_listing_has(const struct xfp_listing *listing, const char *name)
{
	return listing->count && bsearch(&name, listing->names, listing->count, sizeof *listing->names, by_string);
}

enum xfp_status xfp_listing_place(const struct xfp_listing *listing, const char *name, struct xfp_place *place,
				  char **path, struct xfp_error *err)
{
	const struct xfp_zip_member *member;
	char *inside;

	if (!(*path = xfp_path(listing->folder, name)))
		return xfp_no_memory_for(err, listing->folder);
	*place = xfp_place_of_file(*path);
	if (!listing->zip)
		return XFP_OK;
	if (!(inside = xfp_formatted("%s%s", listing->inside, name)))
		return xfp_no_memory_for(err, listing->folder);
	member = xfp_zip_find(listing->zip, inside);
	free(inside);
	if (!member)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: is not in the archive", *path);
	if (member->compressed)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: is compressed, but only stored members are supported; unpack the archive and "
				"name its folder, or make it with zip -0",
				*path);
	*place = (struct xfp_place){ listing->path, *path, member->offset, member->bytes };
	return XFP_OK;
}

bool xfp_is_shard(const char *name, const char *suffix)
{
	static const char digits[] = "0123456789", of[] = "-of-";
	const char *at = name;

	while ((at = strstr(at, of))) {
		const char *total = at + strlen(of), *after = total + strspn(total, digits);

		if (after > total && !strcmp(after, suffix) && at > name && strchr(digits, at[-1]))
			return strtoul(total, NULL, 10) > 1;
		at = total;
	}
	return false;
}

/* ---- reading files ------------------------------------------------------------------------------ */

void xfp_tensor_file_free(struct xfp_tensor_file *file)
{
	for (uint32_t i = 0; i < file->count; i++) {
		free(file->tensors[i].name);
		xfp_recipe_free(file->tensors[i].recipe);
	}
	free(file->tensors);
	*file = (struct xfp_tensor_file){ 0 };
}

enum xfp_status xfp_listing_file(struct xfp_checkpoint *c, const struct xfp_listing *listing, const char *name,
				 struct xfp_source_file **out, struct xfp_error *err)
{
	struct xfp_source_file *grown;

	if (listing->zip && c->file_count) {
		*out = &c->files[0];
		return XFP_OK;
	}
	if (!(grown = realloc(c->files, (c->file_count + (size_t)1) * sizeof *grown)))
		return xfp_no_memory_for(err, c->folder);
	c->files = grown;
	if (listing->zip)
		name = xfp_base_name(listing->path);
	*out = &c->files[c->file_count++];
	**out = (struct xfp_source_file){ .name = strdup(name), .path = xfp_path(c->folder, name) };
	return (*out)->name && (*out)->path ? XFP_OK : xfp_no_memory_for(err, c->folder);
}

enum xfp_status xfp_shards_add(const struct xfp_file_form *form, struct xfp_checkpoint *c,
			       const struct xfp_listing *listing, const char *name, struct xfp_tensor_file *file,
			       struct xfp_error *err)
{
	struct xfp_source_file *added = NULL;
	enum xfp_status status;
	struct xfp_place place;
	char *path = NULL;

	if (!(status = xfp_listing_file(c, listing, name, &added, err)) &&
	    !(status = xfp_listing_place(listing, name, &place, &path, err)) &&
	    !(status = form->read(&place, c, file, err)))
		added->identity = file->identity;
	free(path);
	return status;
}

/* Set the file number of all components. */
static void number(struct xfp_source_tensor *tensor, uint32_t file)
{
	struct xfp_recipe *recipe = tensor->recipe;

	tensor->file = file;
	for (uint32_t i = 0; recipe && i < recipe->part_count; i++)
		for (uint32_t k = 0; k < recipe->parts[i].component_count; k++)
			recipe->parts[i].components[k].file = file;
}

enum xfp_status xfp_shards_add_tensors(struct xfp_checkpoint *c, struct xfp_tensor_file *file, struct xfp_error *err)
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
		number(&file->tensors[i], c->file_count - 1);
		c->tensors[c->tensor_count++] = file->tensors[i];
		file->tensors[i].name = NULL;
		file->tensors[i].recipe = NULL;
	}
	return XFP_OK;
}

enum xfp_status xfp_shards_single(const struct xfp_file_form *form, struct xfp_checkpoint *c,
				  const struct xfp_listing *listing, const char *name, struct xfp_error *err)
{
	struct xfp_tensor_file file = { 0 };
	enum xfp_status status;

	if (!(status = xfp_shards_add(form, c, listing, name, &file, err)))
		status = xfp_shards_add_tensors(c, &file, err);
	xfp_tensor_file_free(&file);
	return status;
}

/* ---- shards ------------------------------------------------------------------------------------- */

/* Check that all shards exist before the first is read, so that the message has the number of missing files. */
static enum xfp_status check_shards(const struct xfp_listing *listing, const char *index_name,
				    const struct xfp_index *index, struct xfp_error *err)
{
	const char *first = NULL;
	uint32_t missing = 0;

	for (uint32_t i = 0; i < index->shard_count; i++) {
		char *path = xfp_path(listing->folder, index->shards[i]);
		struct stat st;
		bool gone;

		if (!path)
			return xfp_no_memory_for(err, listing->folder);
		gone = listing->zip ? !xfp_listing_has(listing, index->shards[i])
				    : stat(path, &st) && errno == ENOENT; /* opening reports other errors */
		free(path);
		if (gone && !missing++)
			first = index->shards[i];
	}
	if (missing)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s/%s: missing; %s lists %u files, and %u of them are missing:"
				" download them",
				listing->folder, xfp_printable(first).text, index_name, index->shard_count, missing);
	return XFP_OK;
}

/* Mark the tensors that the index maps here, drop those that it maps elsewhere, note those that it omits. */
static void apply_index(struct xfp_checkpoint *c, const char *index_name, struct xfp_index *index, uint32_t shard,
			struct xfp_tensor_file *file)
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
			xfp_recipe_free(t->recipe);
			t->recipe = NULL;
		}
	}
	if (omitted)
		xfp_checkpoint_note(c, "%s: contains %u tensor%s that %s does not list (first: %s); used as well",
				    xfp_printable(name).text, omitted, omitted == 1 ? "" : "s", index_name,
				    omitted_name.text);
	if (other)
		xfp_checkpoint_note(
			c, "%s: contains %u tensor%s that %s maps to another file (first: %s); ignored here",
			xfp_printable(name).text, other, other == 1 ? "" : "s", index_name, other_name.text);
}

enum xfp_status xfp_shards_indexed(const struct xfp_file_form *form, struct xfp_checkpoint *c,
				   const struct xfp_listing *listing, const char *index_name, struct xfp_error *err)
{
	struct xfp_tensor_file file = { 0 };
	struct xfp_index index = { 0 };
	enum xfp_status status;
	struct xfp_place place;
	char *path = NULL;

	if ((status = xfp_listing_place(listing, index_name, &place, &path, err)) ||
	    (status = xfp_index_read(&place, form, &index, err)) ||
	    (status = check_shards(listing, index_name, &index, err)))
		goto done;
	for (uint32_t i = 0; i < index.shard_count; i++) {
		if ((status = xfp_shards_add(form, c, listing, index.shards[i], &file, err)))
			goto done;
		apply_index(c, index_name, &index, i, &file);
		if ((status = xfp_shards_add_tensors(c, &file, err)))
			goto done;
		xfp_tensor_file_free(&file);
	}
	for (uint32_t i = 0; i < index.entry_count; i++) {
		const struct xfp_index_entry *entry = &index.entries[i];

		if (!entry->found) {
			status = xfp_fail(err, XFP_BAD_INPUT,
					  "%s/%s: tensor %s: listed by %s, but missing; download both again",
					  listing->folder, xfp_printable(index.shards[entry->shard]).text,
					  xfp_printable(entry->tensor).text, index_name);
			goto done;
		}
	}
	for (uint32_t i = 0; i < listing->count; i++) {
		if (xfp_ends_with(listing->names[i], form->suffix) &&
		    !bsearch(&listing->names[i], index.shards, index.shard_count, sizeof *index.shards, by_string))
			xfp_checkpoint_note(c, "%s: is not listed by %s; ignored",
					    xfp_printable(listing->names[i]).text, index_name);
	}

done:
	xfp_tensor_file_free(&file);
	xfp_index_free(&index);
	free(path);
	return status;
}

enum xfp_status xfp_shards_named(const struct xfp_file_form *form, struct xfp_checkpoint *c,
				 const struct xfp_listing *listing, const char *name, struct xfp_error *err)
{
	if (xfp_ends_with(name, ".index.json"))
		return xfp_shards_indexed(form, c, listing, name, err);
	if (xfp_is_shard(name, form->suffix))
		xfp_checkpoint_note(c, "%s: is one of several files; the others are not read",
				    xfp_printable(name).text);
	return xfp_shards_single(form, c, listing, name, err);
}

/* ---- selecting one file of several --------------------------------------------------------------- */

enum xfp_status xfp_shards_only(const struct xfp_file_form *form, struct xfp_checkpoint *c,
				const struct xfp_listing *listing, bool (*may_be)(const char *name),
				struct xfp_error *err)
{
	const char *first = NULL, *last = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i < listing->count; i++) {
		if (!may_be(listing->names[i]))
			continue;
		last = listing->names[i];
		if (!count++)
			first = last;
	}
	if (count > 1)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: contains %u %s files (%s ... %s), but no %s; download "
				"the index, or name one of the files",
				listing->folder, count, form->what, xfp_printable(first).text, xfp_printable(last).text,
				form->index);
	if (!count)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: contains no %s file", listing->folder, form->what);
	if (xfp_is_shard(first, form->suffix))
		return xfp_fail(err, XFP_BAD_INPUT, "%s/%s: is one of several files; download the others and %s",
				listing->folder, xfp_printable(first).text, form->index);
	return xfp_shards_single(form, c, listing, first, err);
}

void xfp_shards_note_others(struct xfp_checkpoint *c, const struct xfp_listing *listing, const char *taken,
			    bool (*may_be)(const char *name))
{
	for (uint32_t i = 0; i < listing->count; i++)
		if (may_be(listing->names[i]) && strcmp(listing->names[i], taken))
			xfp_checkpoint_note(c, "%s: is next to %s; ignored", xfp_printable(listing->names[i]).text,
					    xfp_printable(taken).text);
}
