/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/settings/profile.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "base/text/suggestion.h"
#include "stages/settings/data.h"

#define LARGEST_PROFILE ((size_t)1 << 20)
#define BLANKS " \t\r"
#define BASE "profile"
#define CALIBRATED "calibrated"
#define MAX_BASES 8 /* maximum depth: more suggest a cycle */

/* State of reading a profile into settings. */
struct profile_reading {
	struct xfp_settings *settings;
	const char *path;
	unsigned bases;
	bool begun;      /* a line was read, so that "profile" comes too late */
	bool calibrated; /* this pass reads the lines for calibrated units, the first one the others */
	struct xfp_error *err;
};

static enum xfp_status read_profile(const char *name, const char *beside, unsigned bases, struct xfp_settings *settings,
				    struct xfp_error *err);

/* Cut the blanks around `text` off, in place. */
static char *trimmed(char *text)
{
	size_t length;

	text += strspn(text, BLANKS);
	length = strlen(text);
	while (length && strchr(BLANKS, text[length - 1]))
		text[--length] = '\0';
	return text;
}

static enum xfp_status no_such_setting(const char *where, const char *name, struct xfp_error *err)
{
	char meant[XFP_DID_YOU_MEAN];

	if (*xfp_setting_suggestion(name, meant))
		return xfp_fail(err, XFP_USAGE, "%s: unknown setting '%s'%s", where, xfp_printable(name).text, meant);
	return xfp_fail(
		err, XFP_USAGE,
		"%s: unknown setting '%s'; a profile may contain the options of xfp convert that affect the output, "
		"without their dashes",
		where, xfp_printable(name).text);
}

/* Read the base profile: everything that follows is a layer above it. */
static enum xfp_status read_base(const struct profile_reading *reading, const char *where, const char *name)
{
	enum xfp_status status;

	if (reading->begun)
		return xfp_fail(reading->err, XFP_USAGE, "%s: " BASE ": must be the first setting, and only once",
				where);
	if (reading->bases == MAX_BASES)
		return xfp_fail(reading->err, XFP_USAGE,
				"%s: " BASE " '%s': more than %d nested profiles; check whether one is based "
				"on itself",
				where, xfp_printable(name).text, MAX_BASES);
	status = read_profile(name, reading->path, reading->bases + 1, reading->settings, reading->err);
	return status == XFP_USAGE ? xfp_context(reading->err, status, "%s", where) : status;
}

/* The setting in "calibrated SETTING"; NULL: the name does not begin like that. */
static char *calibrated_name(char *name)
{
	size_t length = strlen(CALIBRATED);

	return !strncmp(name, CALIBRATED, length) && name[length] && strchr(BLANKS, name[length])
		       ? trimmed(name + length)
		       : NULL;
}

static enum xfp_status parse_line(char *line, const char *where, struct profile_reading *reading)
{
	char *equals = strchr(line, '='), *name, *value, *place, *calibrated;
	enum xfp_status status;
	int setting;

	if (!equals)
		return xfp_fail(reading->err, XFP_USAGE, "%s: expected option = value, as in bits = 2,3,4", where);
	*equals = '\0';
	name = trimmed(line);
	value = trimmed(equals + 1);
	if ((calibrated = calibrated_name(name)))
		name = calibrated;
	if (!calibrated != !reading->calibrated)
		return XFP_OK; /* the other pass reads it */
	if (!calibrated && !strcmp(name, BASE))
		return read_base(reading, where, value);
	if ((setting = xfp_setting_find(name)) < 0)
		return no_such_setting(where, name, reading->err);
	if (calibrated && !xfp_setting_is_floor(setting) && setting != XFP_SETTING_ON_MISS)
		return xfp_fail(reading->err, XFP_USAGE,
				"%s: " CALIBRATED " %s: only floors and on-miss are different with --calibrate", where,
				name);
	if (!(place = xfp_formatted("%s: %s", where, name)))
		return xfp_no_memory(reading->err);
	status = xfp_setting_set(reading->settings, setting, place, value, reading->err);
	free(place);
	return status;
}

static enum xfp_status parse_pass(const char *text, struct profile_reading *reading)
{
	const char *path = reading->path;
	struct xfp_error *err = reading->err;
	char *copy = strdup(text), *rest = copy, *line;
	enum xfp_status status = copy ? XFP_OK : xfp_no_memory(err);

	for (unsigned number = 1; !status && (line = strsep(&rest, "\n")); number++) {
		char *where;

		line = trimmed(line);
		if (!*line || *line == '#')
			continue;
		where = xfp_formatted("%s:%u", path, number);
		status = where ? parse_line(line, where, reading) : xfp_no_memory(err);
		reading->begun = true;
		free(where);
	}
	free(copy);
	if (!status && (status = xfp_settings_finish(reading->settings, err)) == XFP_USAGE)
		xfp_context(err, status, "%s", path);
	return status;
}

static enum xfp_status parse(const char *text, const char *path, unsigned bases, struct xfp_settings *settings,
			     struct xfp_error *err)
{
	struct profile_reading reading = { .settings = settings, .path = path, .bases = bases, .err = err };
	enum xfp_status status = parse_pass(text, &reading);
	struct xfp_settings unused = *settings; /* floors that do not apply are checked nevertheless */

	if (!settings->calibrated)
		reading.settings = &unused;
	reading.calibrated = true;
	return status ? status : parse_pass(text, &reading);
}

enum xfp_status xfp_profile_parse(const char *text, const char *path, struct xfp_settings *settings,
				  struct xfp_error *err)
{
	return parse(text, path, 0, settings, err);
}

/* ---- files ------------------------------------------------------------------------------------- */

static int is_profile(const struct dirent *entry)
{
	return *entry->d_name != '.' && xfp_names_file(entry->d_name, XFP_PROFILE_SUFFIX);
}

/* The profile that corresponds to a type of llama.cpp, by its first letters: "Q4" of Q4_K_M. NULL: not such a type. */
static const char *counterpart(const char *type)
{
	static const struct {
		const char *prefix, *profile;
	} types[] = { { "Q8", "near-lossless" }, { "Q6", "near-lossless" }, { "Q5", "careful" },
		      { "Q4", "balanced" },      { "IQ4", "balanced" },     { "Q3", "small" },
		      { "IQ3", "small" },        { "Q2", "smallest" },      { "IQ2", "smallest" } };

	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!strncasecmp(type, types[i].prefix, strlen(types[i].prefix)) &&
		    (type[strlen(types[i].prefix)] == '_' || !type[strlen(types[i].prefix)]))
			return types[i].profile;
	return NULL;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct dirent *const *)a)->d_name, (*(struct dirent *const *)b)->d_name);
}

static enum xfp_status no_such_profile(const char *folder, const char *name, struct xfp_error *err)
{
	const char *known = counterpart(name);
	struct dirent **entries = NULL;
	int count = scandir(folder, &entries, is_profile, NULL);
	const char **names = calloc((size_t)(count > 0 ? count : 0) + 1, sizeof *names);
	char list[400] = "", meant[XFP_DID_YOU_MEAN] = "";

	for (int i = 0; i < count; i++)
		entries[i]->d_name[strlen(entries[i]->d_name) - strlen(XFP_PROFILE_SUFFIX)] = '\0';
	if (count > 0)
		qsort(entries, (size_t)count, sizeof *entries, by_name);
	for (int i = 0; i < count; i++) {
		size_t used = strlen(list);

		snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", entries[i]->d_name);
		if (names)
			names[i] = entries[i]->d_name;
	}
	if (names && count > 0)
		xfp_did_you_mean("", name, names, (size_t)count, meant);
	for (int i = 0; i < count; i++)
		free(entries[i]);
	free(entries);
	free(names);
	if (known)
		return xfp_fail(err, XFP_USAGE,
				"no profile '%s', which is a type of llama.cpp; use the corresponding --profile %s",
				xfp_printable(name).text, known);
	return xfp_fail(err, XFP_USAGE, "no profile '%s'%s%s are %s, and files: a name with a slash or ending in %s",
			xfp_printable(name).text, meant, *meant ? " Profiles" : "; profiles", *list ? list : "none",
			XFP_PROFILE_SUFFIX);
}

/* Files are relative to the folder of the profile that names them. */
static enum xfp_status find_file(const char *name, const char *beside, char **path, struct xfp_error *err)
{
	const char *slash = beside && *name != '/' ? strrchr(beside, '/') : NULL;

	*path = slash ? xfp_formatted("%.*s%s", (int)(slash - beside + 1), beside, name) : strdup(name);
	if (!*path)
		return xfp_no_memory(err);
	if (!access(*path, F_OK))
		return XFP_OK;
	free(*path);
	*path = NULL;
	return xfp_fail(err, XFP_USAGE, "%s%s: no such file", beside ? BASE " " : "--" BASE " ",
			xfp_printable(name).text);
}

static enum xfp_status find_profile(const char *name, const char *beside, char **path, struct xfp_error *err)
{
	enum xfp_status status;
	char *folder;

	if (xfp_names_file(name, XFP_PROFILE_SUFFIX))
		return find_file(name, beside, path, err);
	if ((status = xfp_data_folder(XFP_PROFILES, &folder, err)))
		return status;
	*path = xfp_formatted("%s/%s" XFP_PROFILE_SUFFIX, folder, name);
	if (!*path)
		status = xfp_no_memory(err);
	else if (access(*path, F_OK))
		status = no_such_profile(folder, name, err);
	if (status) {
		free(*path);
		*path = NULL;
	}
	free(folder);
	return status;
}

/* `beside`: the profile that is based on this one, or NULL. */
static enum xfp_status read_profile(const char *name, const char *beside, unsigned bases, struct xfp_settings *settings,
				    struct xfp_error *err)
{
	char *path = NULL, *text = NULL;
	enum xfp_status status = find_profile(name, beside, &path, err);

	if (!status)
		status = xfp_slurp(path, LARGEST_PROFILE, &text, NULL, err);
	if (!status)
		status = parse(text, path, bases, settings, err);
	free(text);
	free(path);
	return status;
}

enum xfp_status xfp_profile_read(const char *name, struct xfp_settings *settings, struct xfp_error *err)
{
	return read_profile(name, NULL, 0, settings, err);
}
