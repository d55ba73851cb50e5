/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/file.h"
#include "base/system/next_option.h"
#include "checkpoints/hub.h"
#include "commands/convert/given.h"
#include "commands/convert/stray_names.h"
#include "stages/settings/settings.h"

enum option_id {
	OPT_PROFILE = 256,
	OPT_LIKE,
	OPT_FAMILY,
	OPT_CACHE,
	OPT_WORK,
	OPT_DROP_CACHE,
	OPT_REHASH,
	OPT_JSON,
	OPT_VERSION,
	OPT_SETTING /* and from here on, those of settings.h by their numbers */
};

struct option_row {
	const char *name;
	int id;
	const char *value; /* what --help calls it; NULL: a switch */
	const char *text;
};

/* In the order of --help; the settings come after the first. */
static const struct option_row rows[] = {
	{ "output", 'o', "OUT.xfp", "the bundle to write" },
	{ "profile", OPT_PROFILE, "NAME|FILE",
	  "settings to start from: careful, paper-v2, paper-v2a, small or a file" },
	{ "like", OPT_LIKE, "BUNDLE", "the settings of BUNDLE, and its bytes, or status 4" },
	{ "family", OPT_FAMILY, "NAME|FILE", "rules of this model family, not those the config names" },
	{ "cache", OPT_CACHE, "DIR", "artifacts and manifest [xfp-cache beside OUT]" },
	{ "work", OPT_WORK, "DIR", "state and log of this conversion [OUT.xfp.work]" },
	{ "drop-cache", OPT_DROP_CACHE, NULL, "once the bundle is written, remove the artifacts that only it needed" },
	{ "jobs", 'j', "N", "units in flight [one a processor]" },
	{ "keep-going", 'k', NULL, "finish the other units when one fails" },
	{ "dry-run", 'n', NULL, "say what would be done, do nothing" },
	{ "rehash", OPT_REHASH, NULL, "read the whole checkpoint again even where it seems unchanged, and the bundle" },
	{ "json", OPT_JSON, NULL, "the summary as JSON" },
	{ "quiet", 'q', NULL, "no progress and no summary" },
	{ "help", 'h', NULL, "this text" },
	{ "version", OPT_VERSION, NULL, "the version" },
};
#define ROWS (sizeof rows / sizeof rows[0])

/* Of all options, the settings among them; false at the end. */
static bool row_at(size_t i, struct option_row *row)
{
	if (i >= 1 && i <= xfp_settings_count) {
		const struct xfp_setting *setting = &xfp_settings_table[i - 1];

		*row = (struct option_row){ setting->name, OPT_SETTING + (int)i - 1, setting->value, setting->text };
		return true;
	}
	i = i ? i - xfp_settings_count : 0;
	if (i >= ROWS)
		return false;
	*row = rows[i];
	return true;
}

struct parse {
	struct xfp_options options;
	struct xfp_given given;
};

void xfp_options_print(void)
{
	struct option_row row;

	for (size_t i = 0; row_at(i, &row); i++) {
		char left[64];

		snprintf(left, sizeof left, "%s--%s%s%s", row.id < 256 ? "" : "    ", row.name, row.value ? " " : "",
			 row.value ? row.value : "");
		if (row.id < 256)
			printf("  -%c, %-28s %s\n", row.id, left, row.text);
		else
			printf("  %-32s %s\n", left, row.text);
	}
}

static bool parse_count(const char *text, unsigned most, unsigned *count)
{
	char *end;
	unsigned long value;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || !value || value > most)
		return false;
	*count = (unsigned)value;
	return true;
}

static bool replace(char **string, const char *text)
{
	char *copy = strdup(text);

	if (!copy || !*copy) {
		free(copy);
		return false;
	}
	free(*string);
	*string = copy;
	return true;
}

/* `where` is the option or the variable, for the message. */
static enum xfp_status set(struct parse *parse, int id, const char *where, const char *text, struct xfp_error *err)
{
	struct xfp_options *o = &parse->options;
	const char *wanted = "a path";
	bool ok;

	if (id >= OPT_SETTING)
		return xfp_given_add(&parse->given, id - OPT_SETTING, where, text, err);
	switch (id) {
	case 'o':
		ok = replace(&o->out, text);
		break;
	case OPT_CACHE:
		ok = replace(&o->cache, text);
		break;
	case OPT_WORK:
		ok = replace(&o->work, text);
		break;
	case OPT_LIKE:
		ok = replace(&o->like, text);
		break;
	case OPT_PROFILE:
		ok = replace(&o->profile, text);
		wanted = "a name or a file";
		break;
	case OPT_FAMILY:
		ok = replace(&o->family, text);
		wanted = "a name";
		break;
	case 'j':
		ok = parse_count(text, 4096, &o->jobs);
		wanted = "a number of jobs from 1 to 4096";
		break;
	default:
		ok = false;
		wanted = "another option";
		break;
	}
	return ok ? XFP_OK : xfp_fail(err, XFP_USAGE, "%s '%s': expected %s", where, text, wanted);
}

/* "min-cos-lazy" -> "XFP_MIN_COS_LAZY"; what makefiles call OUT is --output here. */
static void variable_of(const char *option, char name[40])
{
	snprintf(name, 40, "XFP_%s", strcmp(option, "output") ? option : "out");
	for (char *p = name; *p; p++)
		*p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

/* For the command line that would do the same without the environment. */
static enum xfp_status inherit(struct xfp_options *o, const char *option, const char *value, struct xfp_error *err)
{
	size_t count = 0;
	char **grown;

	while (o->inherited && o->inherited[count])
		count++;
	if (!(grown = realloc(o->inherited, (count + 3) * sizeof *grown)))
		return xfp_no_memory(err);
	o->inherited = grown;
	grown[count] = option ? xfp_formatted("--%s", option) : strdup(value);
	grown[count + 1] = option && grown[count] ? strdup(value) : NULL;
	grown[count + 2] = NULL;
	return grown[count] && (!option || grown[count + 1]) ? XFP_OK : xfp_no_memory(err);
}

static enum xfp_status from_environment(struct parse *parse, struct xfp_error *err)
{
	struct xfp_options *o = &parse->options;
	const char *model = getenv("XFP_MODEL");
	enum xfp_status status;
	struct option_row row;

	if (model && *model && !replace(&o->model, model))
		return xfp_no_memory(err);
	for (size_t i = 0; row_at(i, &row); i++) {
		char name[40];
		const char *text;

		if (!row.value)
			continue;
		variable_of(row.name, name);
		text = getenv(name);
		if (text && *text &&
		    ((status = set(parse, row.id, name, text, err)) || (status = inherit(o, row.name, text, err))))
			return status;
	}
	return XFP_OK;
}

enum xfp_status xfp_options_check_names(const char *program, struct xfp_error *err)
{
	size_t most = ROWS + xfp_settings_count + 1, count = 0;
	const char **ours = calloc(most, sizeof *ours);
	char(*names)[40] = calloc(most, sizeof *names);
	enum xfp_status status = ours && names ? XFP_OK : xfp_no_memory(err);
	struct option_row row;

	if (!status)
		ours[count++] = "MODEL";
	for (size_t i = 0; !status && row_at(i, &row); i++)
		if (row.value) {
			variable_of(row.name, names[count]);
			ours[count] = names[count] + strlen("XFP_");
			count++;
		}
	if (!status)
		status = xfp_stray_names(program, ours, count, err);
	free(names);
	free(ours);
	return status;
}

/* Allocated, for getopt. */
static struct option *long_options(void)
{
	struct option *table = calloc(ROWS + xfp_settings_count + 1, sizeof *table);
	struct option_row row;

	for (size_t i = 0; table && row_at(i, &row); i++)
		table[i] = (struct option){ row.name, row.value ? required_argument : no_argument, NULL, row.id };
	return table;
}

static void name_option(int id, char where[64])
{
	struct option_row row;

	snprintf(where, 64, "-%c", (char)id);
	for (size_t i = 0; row_at(i, &row); i++)
		if (row.id == id)
			snprintf(where, 64, "--%s", row.name);
}

static enum xfp_status read_options(int argc, char **argv, const struct option *table, struct parse *parse,
				    struct xfp_error *err)
{
	struct xfp_options *o = &parse->options;
	enum xfp_status status;
	int id;

	optind = 0;
	while ((id = xfp_next_option(argc, argv, "o:j:knq", table, err)) != -1) {
		char where[64];

		name_option(id, where);
		switch (id) {
		case 'k':
			o->keep_going = true;
			break;
		case 'n':
			o->dry_run = true;
			break;
		case 'q':
			o->quiet = true;
			break;
		case OPT_DROP_CACHE:
			o->drop_cache = true;
			break;
		case OPT_REHASH:
			o->rehash = true;
			break;
		case OPT_JSON:
			o->json = true;
			break;
		case 'h':
			o->help = true;
			return XFP_OK;
		case OPT_VERSION:
			o->version = true;
			return XFP_OK;
		case '?':
			return XFP_USAGE;
		default:
			if ((status = set(parse, id, where, optarg, err)))
				return status;
		}
	}
	return XFP_OK;
}

static enum xfp_status from_command_line(int argc, char **argv, struct parse *parse, struct xfp_error *err)
{
	struct xfp_options *o = &parse->options;
	struct option *table = long_options();
	enum xfp_status status = table ? read_options(argc, argv, table, parse, err) : xfp_no_memory(err);

	free(table);
	if (status || o->help || o->version)
		return status;
	o->model_inherited = optind == argc && o->model;
	if (argc - optind > 1)
		return xfp_fail(err, XFP_USAGE, "one MODEL at a time; '%s' is a second one", argv[optind + 1]);
	if (optind < argc && !replace(&o->model, argv[optind]))
		return xfp_fail(err, XFP_USAGE, "MODEL is empty");
	return XFP_OK;
}

/* A relative path, made absolute without following links: what a path ends in may matter to readers. */
static enum xfp_status make_absolute(char **path, struct xfp_error *err)
{
	char folder[PATH_MAX], *absolute;

	if (**path == '/')
		return XFP_OK;
	if (!getcwd(folder, sizeof folder))
		return xfp_fail_errno(err, errno, "the current folder");
	if (!(absolute = xfp_path(folder, *path)))
		return xfp_no_memory(err);
	free(*path);
	*path = absolute;
	return XFP_OK;
}

/* The bundle that is compared with must not be the one that is written. */
static enum xfp_status check_like(const struct xfp_options *o, struct xfp_error *err)
{
	struct stat like, out;

	if (!strcmp(o->like, o->out) ||
	    (!stat(o->like, &like) && !stat(o->out, &out) && like.st_dev == out.st_dev && like.st_ino == out.st_ino))
		return xfp_fail(err, XFP_USAGE,
				"--like %s: is the bundle that would be written; choose another --output", o->like);
	return XFP_OK;
}

/* A path, or a name in the Hugging Face cache. A command line that goes on has a name as it was given. */
static enum xfp_status find_model(struct xfp_options *o, struct xfp_error *err)
{
	char *name = NULL, *found;
	enum xfp_status status;

	if ((status = xfp_model_find(o->model, &found, err)))
		return status;
	if (access(o->model, F_OK))
		name = o->model;
	else
		free(o->model);
	o->model = found;
	if (!(status = make_absolute(&o->model, err)) && o->model_inherited)
		status = inherit(o, NULL, name ? name : o->model, err);
	free(name);
	return status;
}

/* A link in place of the bundle stays: what it leads to is written. Work folder and cache are beside the link. */
static enum xfp_status follow_output(struct xfp_options *o, struct xfp_error *err)
{
	char *target;
	enum xfp_status status = xfp_follow_links(o->out, &target, err);

	if (status)
		return status;
	free(o->out);
	o->out = target;
	return XFP_OK;
}

static enum xfp_status finish_paths(struct xfp_options *o, struct xfp_error *err)
{
	enum xfp_status status;

	if (o->out[strlen(o->out) - 1] == '/')
		return xfp_fail(err, XFP_USAGE, "--output '%s' is a folder; name the bundle, as in %smodel.xfp", o->out,
				o->out);
	if ((status = make_absolute(&o->out, err)) || (status = find_model(o, err)))
		return status;
	if (!o->work && !(o->work = xfp_formatted("%s.work", o->out)))
		return xfp_no_memory(err);
	o->own_cache = !o->cache;
	if (!o->cache && !(o->cache = xfp_formatted("%.*s/xfp-cache", (int)(strrchr(o->out, '/') - o->out), o->out)))
		return xfp_no_memory(err);
	if ((status = make_absolute(&o->work, err)) || (status = follow_output(o, err)))
		return status;
	if (o->like && ((status = make_absolute(&o->like, err)) || (status = check_like(o, err))))
		return status;
	return make_absolute(&o->cache, err);
}

/* A plan needs no output, but the cache and the work folder are found by it. */
static enum xfp_status guess_output(struct xfp_options *o, struct xfp_error *err)
{
	const char *name = o->model + strlen(o->model), *end;

	while (name > o->model && name[-1] == '/')
		name--;
	for (end = name; name > o->model && name[-1] != '/';)
		name--;
	if (end == name || (end - name <= 2 && !strncmp(name, "..", (size_t)(end - name)))) {
		name = "model";
		end = name + strlen(name);
	}
	o->out_guessed = true;
	o->out = xfp_formatted("%.*s.xfp", (int)(end - name), name);
	return o->out ? XFP_OK : xfp_no_memory(err);
}

enum xfp_status xfp_options_parse(int argc, char **argv, bool planning, struct xfp_options *options,
				  struct xfp_error *err)
{
	struct parse parse = { .options = { .program = argv[0] } };
	struct xfp_options *o = &parse.options;
	enum xfp_status status;

	if ((status = from_environment(&parse, err)) || (status = from_command_line(argc, argv, &parse, err)))
		goto done;
	if (o->help || o->version || (status = xfp_options_check_names(argv[0], err)))
		goto done;
	if (o->dry_run && o->json && !planning) {
		status = xfp_fail(
			err, XFP_USAGE,
			"--json is the summary of a conversion; with --dry-run there is none, but xfp plan has one");
		goto done;
	}
	o->dry_run |= planning;
	if (planning && o->model && !o->out && (status = guess_output(o, err)))
		goto done;
	if (!o->model)
		status = xfp_fail(err, XFP_USAGE, "which MODEL? Name a folder or a file");
	else if (!o->out)
		status = xfp_fail(err, XFP_USAGE, "where to? Name the bundle with -o OUT.xfp");
	else if (!(status = finish_paths(o, err)))
		status = xfp_given_settle(&parse.given, o, err);
done:
	xfp_given_free(&parse.given);
	if (status)
		xfp_options_free(o);
	*options = *o;
	return status;
}

void xfp_options_free(struct xfp_options *options)
{
	free(options->model);
	free(options->out);
	free(options->cache);
	free(options->work);
	free(options->family);
	free(options->profile);
	free(options->like);
	free(options->head_asked);
	xfp_parameters_free(&options->parameters);
	for (size_t i = 0; options->inherited && options->inherited[i]; i++)
		free(options->inherited[i]);
	free(options->inherited);
	memset(options, 0, sizeof *options);
}
