/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/inspect/family_choose.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/text/suggestion.h"
#include "stages/settings/data.h"

#define MAX_NAMES 64 /* maximum number of families considered for suggestions */

/* ---- the families of one folder ----------------------------------------------------------------- */

static bool listed(char *const *list, uint32_t count, const char *word)
{
	for (uint32_t i = 0; word && i < count; i++)
		if (!strcmp(list[i], word))
			return true;
	return false;
}

static int is_family_file(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && xfp_names_file(entry->d_name, XFP_FAMILY_SUFFIX);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

/* Load the headers of all families of a folder, sorted by name. */
static enum xfp_status load_headers(const char *folder, struct xfp_family ***out, uint32_t *count,
				    struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	struct xfp_family **families = NULL;
	struct dirent **entries = NULL;
	int found = scandir(folder, &entries, is_family_file, by_name);

	if (found < 0)
		return xfp_fail_errno(err, errno, "%s: not a folder of families; see --families and " XFP_FAMILY_PATH,
				      folder);
	*count = 0;
	if (!(families = calloc((size_t)found + 1, sizeof *families)))
		status = xfp_no_memory(err);
	for (int i = 0; i < found; i++) {
		char *path = status ? NULL : xfp_path(folder, entries[i]->d_name);

		if (!status && !path)
			status = xfp_no_memory(err);
		if (!status && !(status = xfp_family_load(path, true, &families[*count], err)))
			++*count;
		free(path);
		free(entries[i]);
	}
	free(entries);
	if (status) {
		while (families && *count)
			xfp_family_free(families[--*count]);
		free(families);
		return status;
	}
	*out = families;
	return XFP_OK;
}

/* The one family that claims `word`; two are an error. */
static enum xfp_status claimant(struct xfp_family *const *families, uint32_t count, const char *folder,
				bool architecture, const char *word, const struct xfp_family **out,
				struct xfp_error *err)
{
	*out = NULL;
	for (uint32_t i = 0; i < count; i++) {
		const struct xfp_family *f = families[i];

		if (!(architecture ? listed(f->architectures, f->architecture_count, word)
				   : listed(f->model_types, f->model_type_count, word)))
			continue;
		if (*out)
			return xfp_fail(err, XFP_BAD_INPUT,
					"%s: families %s and %s both claim \"%s\"; select one with "
					"--family",
					folder, (*out)->name, f->name, word);
		*out = f;
	}
	return XFP_OK;
}

/* The name of the folder's family for this model, and the reason; both NULL if it has none. */
static enum xfp_status choose_in(const char *folder, const struct xfp_model_config *config, char **name, char **why,
				 struct xfp_error *err)
{
	const struct xfp_family *found = NULL;
	struct xfp_family **families = NULL;
	const char *word = NULL;
	bool architecture = false;
	uint32_t count = 0;
	enum xfp_status status = load_headers(folder, &families, &count, err);

	for (unsigned which = 0; !status && !found && which < 2; which++)
		if ((word = xfp_model_config_type(config, which)))
			status = claimant(families, count, folder, false, word, &found, err);
	for (size_t i = 0; !status && !found && (word = xfp_model_config_architecture(config, i)); i++) {
		architecture = true;
		status = claimant(families, count, folder, true, word, &found, err);
	}
	if (!status && found) {
		*name = strdup(found->name);
		*why = xfp_formatted("by %s %s", architecture ? "architecture" : "model_type", word);
		if (!*name || !*why)
			status = xfp_no_memory(err);
	}
	for (uint32_t i = 0; i < count; i++)
		xfp_family_free(families[i]);
	free(families);
	return status;
}

/* ---- the list of folders ------------------------------------------------------------------------ */

static char *file_in(const char *folder, const char *name)
{
	return xfp_formatted("%s/%s" XFP_FAMILY_SUFFIX, folder, name);
}

/* The first folder's file of this name that exists, else the path in the last folder. NULL: out of memory. */
static char *file_of(char *const *folders, uint32_t count, const char *name)
{
	char *path = NULL;

	for (uint32_t i = 0; i < count; i++) {
		free(path);
		path = file_in(folders[i], name);
		if (!path || !access(path, R_OK))
			break;
	}
	return path;
}

enum xfp_status xfp_family_choose(char *const *folders, uint32_t count, const struct xfp_model_config *config,
				  char **path, char **why, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	char *name = NULL;

	*path = *why = NULL;
	for (uint32_t i = 0; !status && !name && i < count; i++) {
		status = choose_in(folders[i], config, &name, why, err);
		if (!status && name && !(*path = file_in(folders[i], name)))
			status = xfp_no_memory(err);
	}
	if (!status && !name && !(*path = file_of(folders, count, XFP_FAMILY_GENERAL)))
		status = xfp_no_memory(err);
	free(name);
	if (status) {
		free(*path);
		free(*why);
		*path = *why = NULL;
	}
	return status;
}

static void free_folders(char **folders, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(folders[i]);
	free(folders);
}

/* The requested folder, or those of the environment and xfp's own. */
static enum xfp_status list_folders(const char *only, char ***out, uint32_t *count, struct xfp_error *err)
{
	const char *path = getenv(XFP_FAMILY_PATH);
	enum xfp_status status = XFP_OK;
	char *copy = strdup(!only && path ? path : ""), *rest = copy, *folder;
	char **folders = copy ? calloc(strlen(copy) + 2, sizeof *folders) : NULL;

	*out = NULL;
	*count = 0;
	if (!folders) {
		free(copy);
		return xfp_no_memory(err);
	}
	while (!status && (folder = strsep(&rest, ":")))
		if (*folder && !(folders[(*count)++] = strdup(folder)))
			status = xfp_no_memory(err);
	if (!status && !only)
		status = xfp_data_folder(XFP_FAMILIES, &folders[*count], err);
	else if (!status && !(folders[*count] = strdup(only)))
		status = xfp_no_memory(err);
	free(copy);
	if (status) {
		free_folders(folders, *count);
		*count = 0;
		return status;
	}
	++*count;
	*out = folders;
	return XFP_OK;
}

/* Whether a name is in a list such as "bert, gemma, llama". */
static bool is_in_list(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; (at = strstr(at, name)); at++)
		if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ','))
			return true;
	return false;
}

/* Suggest names from a list. */
static void find_near(const char *list, const char *name, char meant[XFP_DID_YOU_MEAN])
{
	const char *names[MAX_NAMES];
	char copy[600], *rest = copy;
	size_t count = 0;

	snprintf(copy, sizeof copy, "%s", list);
	while (count < MAX_NAMES && (names[count] = strsep(&rest, ", ")))
		count += *names[count] != '\0';
	xfp_did_you_mean("", name, names, count, meant);
}

/* Report an unknown family with the names from all folders, each once: a user's family may hide one of ours. */
static enum xfp_status no_such_family(char *const *folders, uint32_t count, const char *name, struct xfp_error *err)
{
	char list[600] = "", shown[80], meant[XFP_DID_YOU_MEAN];

	for (uint32_t f = 0; f < count; f++) {
		struct dirent **entries = NULL;
		int found = scandir(folders[f], &entries, is_family_file, by_name);

		for (int i = 0; i < found; i++) {
			size_t used = strlen(list);

			snprintf(shown, sizeof shown, "%.*s",
				 (int)(strlen(entries[i]->d_name) - strlen(XFP_FAMILY_SUFFIX)), entries[i]->d_name);
			free(entries[i]);
			if (!is_in_list(list, shown))
				snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
					 xfp_printable(shown).text);
		}
		free(entries);
	}
	find_near(list, name, meant);
	return xfp_fail(err, XFP_USAGE, "no family '%s'%s%s are %s, and files: a name with a slash or ending in %s",
			xfp_printable(name).text, meant, *meant ? " Families" : "; families", *list ? list : "none",
			XFP_FAMILY_SUFFIX);
}

enum xfp_status xfp_family_find(const struct xfp_family_request *request, const struct xfp_model_config *config,
				struct xfp_family_choice *choice, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	char **folders = NULL;
	uint32_t count = 0;

	*choice = (struct xfp_family_choice){ 0 };
	if (!request->family || !xfp_names_file(request->family, XFP_FAMILY_SUFFIX))
		status = list_folders(request->folder, &folders, &count, err);
	if (!status && !request->family) {
		status = xfp_family_choose(folders, count, config, &choice->path, &choice->why, err);
	} else if (!status) {
		choice->path = folders ? file_of(folders, count, request->family) : strdup(request->family);
		choice->why = strdup("as asked for");
		if (!choice->path || !choice->why)
			status = xfp_no_memory(err);
		else if (access(choice->path, R_OK))
			status = errno != ENOENT
					 ? xfp_fail_errno(err, errno, "--family %s", xfp_printable(choice->path).text)
				 : folders ? no_such_family(folders, count, request->family, err)
					   : xfp_fail(err, XFP_USAGE, "--family %s: no such file",
						      xfp_printable(choice->path).text);
	}
	if (!status)
		status = xfp_family_load(choice->path, false, &choice->family, err);
	free_folders(folders, count);
	if (status)
		xfp_family_choice_free(choice);
	return status;
}

void xfp_family_choice_free(struct xfp_family_choice *choice)
{
	xfp_family_free(choice->family);
	free(choice->path);
	free(choice->why);
	*choice = (struct xfp_family_choice){ 0 };
}
