/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoints/hub.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/text/suffix.h"
#include "checkpoints/folder.h"
#include "checkpoints/format.h"
#include "checkpoints/safetensors_index.h"

#define MAX_LISTED 8 /* names in a message */

/* A search for a model in the cache. */
struct hub_search {
	const char *model; /* MODEL as given by the user */
	char *name;        /* ORG/NAME */
	char *revision;    /* NULL for main */
	char *hub;         /* path of the cache */
	char *repository;  /* path of models--ORG--NAME in it */
};

static void search_free(struct hub_search *s)
{
	free(s->name);
	free(s->revision);
	free(s->hub);
	free(s->repository);
}

/* ---- the name ---------------------------------------------------------------------------------- */

/* The hub allows letters, digits, '-', '_' and '.', without "--" and "..". Other names cannot be folders of the
 * cache. */
static bool is_part(const char *text, size_t length)
{
	if (!length || text[0] == '.' || text[0] == '-')
		return false;
	for (size_t i = 0; i < length; i++)
		if ((!isalnum((unsigned char)text[i]) && !strchr("-_.", text[i])) ||
		    (i && text[i] == text[i - 1] && strchr("-.", text[i])))
			return false;
	return true;
}

/* A branch may contain slashes; no component may leave the folder. */
static bool is_revision(const char *text)
{
	for (;;) {
		size_t length = strcspn(text, "/");

		if (!length || text[0] == '.')
			return false;
		if (!text[length])
			return true;
		text += length + 1;
	}
}

/* Split MODEL; returns false if it cannot be a name. */
static bool parse_name(const char *model)
{
	size_t length = strcspn(model, "@"), first = strcspn(model, "/@");

	if (model[length] && !is_revision(model + length + 1))
		return false;
	return first == length ? is_part(model, length)
			       : is_part(model, first) && is_part(model + first + 1, length - first - 1);
}

/* ---- the cache --------------------------------------------------------------------------------- */

static const char *setting(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value ? value : NULL;
}

/* Join FOLDER/BELOW, and expand ~ like the hub's own tools. */
static char *below(const char *folder, const char *path)
{
	const char *home = setting("HOME");
	bool tilde = folder[0] == '~' && (!folder[1] || folder[1] == '/');

	if (tilde && home)
		return xfp_formatted("%s%s%s%s", home, folder + 1, *path ? "/" : "", path);
	return xfp_formatted("%s%s%s", folder, *path ? "/" : "", path);
}

static char *find_hub(void)
{
	const char *value;

	if ((value = setting("HF_HUB_CACHE")))
		return below(value, "");
	if ((value = setting("HF_HOME")))
		return below(value, "hub");
	if ((value = setting("XDG_CACHE_HOME")))
		return below(value, "huggingface/hub");
	return below("~/.cache", "huggingface/hub");
}

static enum xfp_status begin(struct hub_search *s, const char *model, struct xfp_error *err)
{
	size_t length = strcspn(model, "@");
	const char *slash = strchr(model, '/');
	int organisation = slash && slash < model + length ? (int)(slash - model) : 0;
	const char *rest = organisation ? slash + 1 : model;

	s->model = model;
	s->name = strndup(model, length);
	s->revision = model[length] ? strdup(model + length + 1) : NULL;
	s->hub = find_hub();
	if (s->hub)
		s->repository = xfp_formatted("%s/models--%.*s%s%.*s", s->hub, organisation, model,
					      organisation ? "--" : "", (int)(model + length - rest), rest);
	return s->name && s->hub && s->repository && (s->revision || !model[length]) ? XFP_OK : xfp_no_memory(err);
}

/* ---- which snapshot ---------------------------------------------------------------------------- */

/* "a, b, c and 4 more", at most `size` bytes. */
static void list_names(char *const *names, uint32_t count, char *text, size_t size)
{
	uint32_t shown = count > MAX_LISTED ? MAX_LISTED : count;
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < shown && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", xfp_printable(names[i]).text);
	if (shown < count && used < size)
		snprintf(text + used, size - used, " and %u more", (unsigned)(count - shown));
}

/* Read the commit in refs/REVISION; NULL if it does not exist. An unreadable ref is an error, because another snapshot
 * might be used in its place. */
static enum xfp_status read_ref(const struct hub_search *s, const char *revision, char **commit, struct xfp_error *err)
{
	char *path = xfp_formatted("%s/refs/%s", s->repository, revision);
	struct stat st;
	enum xfp_status status = path ? xfp_stat(path, &st, err) : xfp_no_memory(err);

	*commit = NULL;
	if (!status && S_ISREG(st.st_mode) && !(status = xfp_slurp(path, 256, commit, NULL, err))) {
		(*commit)[strcspn(*commit, " \t\r\n")] = '\0';
		if (!is_revision(*commit)) {
			free(*commit);
			*commit = NULL;
		}
	}
	free(path);
	return status;
}

/* Move the snapshots whose names begin with `start` to the front; returns their number. */
static uint32_t beginning_with(char **names, uint32_t count, const char *start)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++)
		if (!strncmp(names[i], start, strlen(start))) {
			char *name = names[i];

			names[i] = names[found];
			names[found++] = name;
		}
	return found;
}

static enum xfp_status choose(const struct hub_search *s, char **snapshot, struct xfp_error *err)
{
	const char *wanted = s->revision ? s->revision : "main";
	char *folder = xfp_formatted("%s/snapshots", s->repository), *commit = NULL, **names = NULL;
	enum xfp_status status = folder ? read_ref(s, wanted, &commit, err) : xfp_no_memory(err);
	uint32_t count = 0, fit;
	char list[512];
	struct stat st;

	if (!status && !(status = xfp_stat(folder, &st, err)) && st.st_mode)
		status = xfp_folder_list(folder, &names, &count, err);
	if (!status && !count)
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: %s contains no snapshot; the download was interrupted, and xfp downloads "
				  "nothing: finish it first",
				  s->model, s->repository);
	if (status)
		goto done;
	fit = commit        ? beginning_with(names, count, commit)
	      : s->revision ? beginning_with(names, count, s->revision)
			    : count;
	if (fit == 1) {
		*snapshot = xfp_path(folder, names[0]);
		status = *snapshot ? XFP_OK : xfp_no_memory(err);
		goto done;
	}
	list_names(names, fit ? fit : count, list, sizeof list);
	if (fit > 1)
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: has several snapshots; name one, as in %s@%.8s: %s",
				  s->model, s->name, names[0], list);
	else if (commit)
		status = xfp_fail(err, XFP_BAD_INPUT,
				  "%s: %s is commit %s, which is missing, and xfp downloads nothing; finish the "
				  "download, or name an existing one: %s",
				  s->model, wanted, commit, list);
	else
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: no revision %s in %s; there are %s", s->model, wanted,
				  s->repository, list);
done:
	xfp_names_free(names, count);
	free(commit);
	free(folder);
	return status;
}

/* ---- completeness ------------------------------------------------------------------------------ */

/* Count unfinished downloads of this model, not necessarily of this snapshot. */
static unsigned count_incomplete(const struct hub_search *s)
{
	char *folder = xfp_path(s->repository, "blobs"), **names = NULL;
	uint32_t count = 0;
	unsigned incomplete = 0;

	if (folder && !xfp_folder_list(folder, &names, &count, NULL))
		for (uint32_t i = 0; i < count; i++)
			incomplete += xfp_ends_with(names[i], ".incomplete");
	xfp_names_free(names, count);
	free(folder);
	return incomplete;
}

/* Report a missing part of a snapshot. */
static enum xfp_status refuse(const struct hub_search *s, const char *snapshot, const char *missing,
			      struct xfp_error *err)
{
	unsigned incomplete = count_incomplete(s);
	char downloads[80] = "";

	if (incomplete)
		snprintf(downloads, sizeof downloads, " (%u .incomplete download%s in its blobs)", incomplete,
			 incomplete == 1 ? "" : "s");
	return xfp_fail(err, XFP_BAD_INPUT, "%s: %s lacks %s%s; xfp downloads nothing: finish the download first",
			s->model, snapshot, missing, downloads);
}

/* Check that every shard of a form's index exists. */
static enum xfp_status check_shards(const struct hub_search *s, const char *snapshot, const struct xfp_file_form *form,
				    struct xfp_error *err)
{
	char *path = xfp_path(snapshot, form->index), list[600], missing[700];
	struct xfp_place place = xfp_place_of_file(path);
	struct xfp_index index = { 0 };
	uint32_t gone = 0;
	enum xfp_status status = path ? xfp_index_read(&place, form, &index, err) : xfp_no_memory(err);
	struct stat st;

	for (uint32_t i = 0; !status && i < index.shard_count; i++) {
		char *name = index.shards[i];

		if ((status = xfp_folder_stat(snapshot, name, &st, err)) || st.st_mode)
			continue;
		index.shards[i] = index.shards[gone];
		index.shards[gone++] = name;
	}
	if (!status && gone) {
		list_names(index.shards, gone, list, sizeof list);
		snprintf(missing, sizeof missing, "%u of its %u shards: %s", (unsigned)gone,
			 (unsigned)index.shard_count, list);
		status = refuse(s, snapshot, missing, err);
	}
	xfp_index_free(&index);
	free(path);
	return status;
}

/* Check for incomplete downloads only; the reader of the format checks everything else. */
static enum xfp_status check_whole(const struct hub_search *s, const char *snapshot, struct xfp_error *err)
{
	static const struct xfp_file_form *const forms[] = { &xfp_form_safetensors, &xfp_form_pytorch };
	char **names = NULL, missing[300];
	const char *dangling = NULL;
	bool weights = false;
	uint32_t count = 0;
	enum xfp_status status;
	struct stat st;

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		if ((status = xfp_folder_stat(snapshot, forms[i]->index, &st, err)))
			return status;
		if (st.st_mode)
			return check_shards(s, snapshot, forms[i], err);
	}
	status = xfp_folder_list(snapshot, &names, &count, err);
	for (uint32_t i = 0; !status && i < count; i++) {
		if ((status = xfp_folder_stat(snapshot, names[i], &st, err)))
			break;
		weights |= xfp_ends_with(names[i], ".gguf") && st.st_mode;
		for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
			weights |= xfp_ends_with(names[i], forms[k]->suffix) && st.st_mode;
		if (!dangling && !st.st_mode)
			dangling = names[i];
	}
	if (!status && dangling) {
		snprintf(missing, sizeof missing, "%s, a link to nothing", xfp_printable(dangling).text);
		status = refuse(s, snapshot, missing, err);
	} else if (!status && !weights && count_incomplete(s)) {
		status = refuse(s, snapshot, "its weights", err);
	}
	xfp_names_free(names, count);
	return status;
}

/* ------------------------------------------------------------------------------------------------ */

enum xfp_status xfp_model_find(const char *model, char **path, struct xfp_error *err)
{
	struct hub_search s = { 0 };
	char *snapshot = NULL;
	enum xfp_status status = XFP_OK;

	if (!access(model, F_OK)) {
		snapshot = strdup(model);
		status = snapshot ? XFP_OK : xfp_no_memory(err);
	} else if (errno != ENOENT && errno != ENOTDIR) {
		status = errno == ELOOP ? xfp_fail(err, XFP_BAD_INPUT, XFP_MODEL_LOOP, model)
					: xfp_fail_errno(err, errno, "%s: cannot open", model);
	} else if (!parse_name(model)) {
		status = xfp_fail(err, XFP_BAD_INPUT, "%s: no such file or folder", model);
	} else if (!(status = begin(&s, model, err))) {
		struct stat st;

		if (!(status = xfp_stat(s.repository, &st, err)) && !st.st_mode)
			status = xfp_fail(err, XFP_BAD_INPUT,
					  "%s: no such file or folder, and no model of this name in %s; xfp downloads "
					  "nothing",
					  model, s.hub);
		if (!status && !(status = choose(&s, &snapshot, err)))
			status = check_whole(&s, snapshot, err);
	}
	search_free(&s);
	if (status)
		free(snapshot);
	else
		*path = snapshot;
	return status;
}
