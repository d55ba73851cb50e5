/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/convert/options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/command_line.h"
#include "base/system/file.h"
#include "base/system/path.h"
#include "base/text/whole_number.h"
#include "checkpoints/hub.h"
#include "commands/convert/given.h"
#include "commands/convert/stray_names.h"
#include "stages/settings/settings.h"

struct parse {
	struct xfp_options options;
	bool planning;
	struct xfp_given given;
};

static enum xfp_status replace(char **string, const char *text, struct xfp_error *err)
{
	char *copy = strdup(text);

	if (!copy)
		return xfp_no_memory(err);
	free(*string);
	*string = copy;
	return XFP_OK;
}

static enum xfp_status take_text(char **place, const char *where, const char *text, const char *wanted,
				 struct xfp_error *err)
{
	return *text ? replace(place, text, err) :
		       xfp_fail(err, XFP_USAGE, "%s '%s': expected %s", where, text, wanted);
}

static enum xfp_status take_path(const struct xfp_option *option, const char *where, const char *text,
				 struct xfp_error *err)
{
	return take_text(option->context, where, text, "a path", err);
}

static enum xfp_status take_profile(const struct xfp_option *option, const char *where, const char *text,
				    struct xfp_error *err)
{
	return take_text(option->context, where, text, "a name or a file", err);
}

static enum xfp_status take_family(const struct xfp_option *option, const char *where, const char *text,
				   struct xfp_error *err)
{
	return take_text(option->context, where, text, "a name", err);
}

static enum xfp_status take_jobs(const struct xfp_option *option, const char *where, const char *text,
				 struct xfp_error *err)
{
	return xfp_whole_number_32(where, text, "a number of jobs", 1, 4096, option->context, err);
}

static enum xfp_status take_setting(const struct xfp_option *option, const char *where, const char *text,
				    struct xfp_error *err)
{
	return xfp_given_add(option->context, xfp_setting_find(option->name), where, text, err);
}

/* All options, which write to `parse`, in the order of --help: what most users give first. Allocated; NULL when
 * out of memory. */
static struct xfp_option *options_of(struct parse *parse)
{
	struct xfp_options *o = &parse->options;
	const struct xfp_option first[] = {
		{ .name = "output",
		  .letter = 'o',
		  .value = "OUT.xfp",
		  .text = "the bundle to write",
		  .take = take_path,
		  .context = &o->out },
		{ .name = "profile",
		  .value = "NAME|FILE",
		  .text = "settings to start from [balanced], or a file: near-lossless, "
			  "careful, balanced, small, smallest, paper-v2, paper-v2a, "
			  "paper-g, paper-h, paper-h1, paper-h1.5, paper-h1.7",
		  .take = take_profile,
		  .context = &o->profile },
	};
	const size_t before = sizeof first / sizeof *first;
	const struct xfp_option others[] = {
		{ .name = "like",
		  .value = "BUNDLE",
		  .text = "the settings of BUNDLE, and its bytes, or status 4",
		  .take = take_path,
		  .context = &o->like },
		{ .name = "family",
		  .value = "NAME|FILE",
		  .text = "rules of this model family, not those the config names",
		  .take = take_family,
		  .context = &o->family },
		{ .name = "cache",
		  .value = "DIR",
		  .text = "artifacts and manifest [xfp-cache beside OUT]",
		  .take = take_path,
		  .context = &o->cache },
		{ .name = "work",
		  .value = "DIR",
		  .text = "state and log of this conversion [OUT.xfp.work]",
		  .take = take_path,
		  .context = &o->work },
		{ .name = "drop-cache",
		  .text = "remove artifacts that only this bundle needs as soon as nothing needs them",
		  .set = &o->drop_cache },
		{ .name = "jobs",
		  .letter = 'j',
		  .value = "N",
		  .text = "units in flight [one a processor]",
		  .take = take_jobs,
		  .context = &o->jobs },
		{ .name = "keep-going",
		  .letter = 'k',
		  .text = "finish the other units when one fails",
		  .set = &o->keep_going },
		{ .name = "allow-empty",
		  .text = "convert a model with nothing to quantize, too",
		  .set = &o->allow_empty },
		{ .name = "force", .text = "begin even where the disk seems too small", .set = &o->force },
		{ .name = "dry-run", .letter = 'n', .text = "say what would be done, do nothing", .set = &o->dry_run },
		{ .name = "rehash",
		  .text = "read the whole checkpoint again even where it seems unchanged, and the bundle",
		  .set = &o->rehash },
		{ .name = "json", .text = "the summary as JSON", .set = &o->json },
		{ .name = "quiet", .letter = 'q', .text = "no progress and no summary", .set = &o->quiet },
		{ .name = parse->planning ? "survey" : NULL,
		  .text = "run the surveys that are missing, so that the plan is measured",
		  .set = &o->survey },
		{ 0 },
	};
	struct xfp_option *all = calloc(before + xfp_settings_count + sizeof others / sizeof others[0], sizeof *all);

	if (!all)
		return NULL;
	memcpy(all, first, sizeof first);
	for (size_t i = 0; i < xfp_settings_count; i++) {
		const struct xfp_setting *setting = &xfp_settings_table[i];

		all[before + i] = (struct xfp_option){ .name = setting->name,
						       .value = setting->value,
						       .text = setting->text,
						       .take = take_setting,
						       .context = &parse->given };
	}
	memcpy(all + before + xfp_settings_count, others, sizeof others);
	return all;
}

/* What makefiles call OUT is --output here. */
static void variable_of(const char *option, char name[XFP_OPTION_VARIABLE])
{
	xfp_option_variable(strcmp(option, "output") ? option : "out", name);
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

static enum xfp_status from_environment(struct parse *parse, const struct xfp_option *options, struct xfp_error *err)
{
	struct xfp_options *o = &parse->options;
	const char *model = getenv("XFP_MODEL");
	enum xfp_status status;

	if (model && *model && (status = replace(&o->model, model, err)))
		return status;
	for (const struct xfp_option *option = options; option->name; option++) {
		char name[XFP_OPTION_VARIABLE];
		const char *text;

		if (!option->value)
			continue;
		variable_of(option->name, name);
		text = getenv(name);
		if (text && *text &&
		    ((status = option->take(option, name, text, err)) ||
		     (status = inherit(o, option->name, text, err))))
			return status;
	}
	return XFP_OK;
}

enum xfp_status xfp_options_check_names(const char *program, struct xfp_error *err)
{
	struct parse nobody = { .options = { .program = program } };
	struct xfp_option *options = options_of(&nobody);
	size_t most = 1, count = 0;
	const char **ours = NULL;
	char(*names)[XFP_OPTION_VARIABLE] = NULL;
	enum xfp_status status;

	while (options && options[most - 1].name)
		most++;
	ours = calloc(most, sizeof *ours);
	names = calloc(most, sizeof *names);
	status = options && ours && names ? XFP_OK : xfp_no_memory(err);
	if (!status)
		ours[count++] = "MODEL";
	for (size_t i = 0; !status && options[i].name; i++)
		if (options[i].value) {
			variable_of(options[i].name, names[count]);
			ours[count] = names[count] + strlen("XFP_");
			count++;
		}
	if (!status)
		status = xfp_stray_names(program, ours, count, err);
	free(names);
	free(ours);
	free(options);
	return status;
}

/* The environment first: the command line wins. */
static enum xfp_status read_line(struct xfp_command_line *line, int argc, char **argv, struct parse *parse,
				 struct xfp_error *err)
{
	struct xfp_options *o = &parse->options;
	struct xfp_option *options = options_of(parse);
	enum xfp_status status = options ? from_environment(parse, options, err) : xfp_no_memory(err);

	line->options = options;
	if (!status)
		status = xfp_command_line_parse(line, argc, argv, err);
	line->options = NULL;
	free(options);
	o->told = line->told;
	if (status || line->told)
		return status;
	o->model_inherited = !line->argument_count && o->model;
	if (line->argument_count > 1)
		return xfp_fail(err, XFP_USAGE, "one MODEL at a time; '%s' is a second one", line->arguments[1]);
	if (!line->argument_count)
		return XFP_OK;
	return *line->arguments[0] ? replace(&o->model, line->arguments[0], err) :
				     xfp_fail(err, XFP_USAGE, "MODEL is empty");
}

/* Make a path absolute and clean it, without following links: what a path ends in may matter to readers. */
static enum xfp_status make_absolute(char **path, struct xfp_error *err)
{
	char folder[PATH_MAX], *absolute;

	xfp_path_clean(*path);
	if (**path == '/')
		return XFP_OK;
	if (!getcwd(folder, sizeof folder))
		return xfp_fail_errno(err, errno, "the current folder");
	if (!(absolute = xfp_path(folder, *path)))
		return xfp_no_memory(err);
	free(*path);
	*path = absolute;
	xfp_path_clean(absolute);
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

	if (!strcmp(o->out, "-"))
		return xfp_fail(err, XFP_USAGE,
				"--output -: a bundle is not written to standard output; name a file, as in model.xfp");
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

enum xfp_status xfp_options_parse(int argc, char **argv, const char *usage, const char *summary, bool planning,
				  struct xfp_options *options, struct xfp_error *err)
{
	struct xfp_command_line line = { .usage = usage, .summary = summary, .column = 35, .brief = true };
	struct parse parse = { .options = { .program = argv[0] }, .planning = planning };
	struct xfp_options *o = &parse.options;
	enum xfp_status status;

	if ((status = read_line(&line, argc, argv, &parse, err)) || o->told ||
	    (status = xfp_options_check_names(argv[0], err)))
		goto done;
	if (o->dry_run && o->json && !planning) {
		status = xfp_fail(
			err, XFP_USAGE,
			"--json is the summary of a conversion; with --dry-run there is none, but xfp plan has one");
		goto done;
	}
	o->dry_run |= planning && !o->survey;
	o->planning = planning;
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
	xfp_goal_free(&options->goal);
	for (size_t i = 0; options->inherited && options->inherited[i]; i++)
		free(options->inherited[i]);
	free(options->inherited);
	memset(options, 0, sizeof *options);
}
