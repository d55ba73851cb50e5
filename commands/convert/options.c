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
#include "checkpoints/hub.h"
#include "commands/convert/user_settings.h"
#include "conversion/stray_names.h"
#include "stages/settings/settings.h"

#define CALIBRATE "calibrate"

struct parse {
	struct xfp_options options;
	bool planning;
	struct xfp_user_settings given;
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

static enum xfp_status parse_setting(const struct xfp_option *option, const char *where, const char *text,
				     struct xfp_error *err)
{
	return xfp_user_settings_add(option->context, xfp_setting_find(option->name), where, text, err);
}

/* All options, which write to `parse`, in the order of --help: most common first. Allocated; NULL if out of memory. */
static struct xfp_option *options_of(struct parse *parse)
{
	struct xfp_options *o = &parse->options;
	struct xfp_request *r = &o->request;
	const struct xfp_option first[] = {
		{ .name = "output",
		  .letter = 'o',
		  .value = "OUT.xfp",
		  .complete = "BUNDLE",
		  .text = "write the bundle to this file",
		  .copy = &r->out,
		  .range.what = "a path" },
		{ .name = "profile",
		  .value = "NAME|FILE",
		  .text = "start from a profile [balanced], or a file: near-lossless, "
			  "careful, balanced, small, smallest, paper-v2, paper-v2a, "
			  "paper-g, paper-h, paper-h1, paper-h1.5, paper-h1.7",
		  .copy = &o->profile,
		  .range.what = "a name or a file",
		  .complete = "PROFILE" },
	};
	const struct xfp_option survey = { .name = "survey",
					   .text = "run missing surveys, to plan from measurements",
					   .set = &r->survey };
	const struct xfp_option check_survey = {
		.name = "check-survey",
		.value = "N",
		.text = "measure N surveys of the cache again; status 4 if one differs",
		.into_32 = &r->check_survey,
		.range = { "a number of units", 1, UINT32_MAX }
	};
	const int before = (int)(sizeof first / sizeof *first);
	const struct xfp_option others[] = {
		{ .name = "like",
		  .value = "BUNDLE",
		  .text = "reproduce BUNDLE with its settings; status 4 if bytes differ",
		  .copy = &r->like,
		  .range.what = "a path" },
		{ .name = CALIBRATE,
		  .text = "quantize by the errors of outputs, with the model's own activations; modes v2c and auto",
		  .set = &r->calibration.wanted },
		{ .name = "calibrate-text",
		  .value = "FILE",
		  .text = "calibrate with this text instead of xfp's own",
		  .copy = &r->calibration.text,
		  .set = &r->calibration.wanted,
		  .range.what = "a file" },
		{ .name = "calibrate-self",
		  .text = "calibrate with text that the model itself generates",
		  .set = &r->calibration.self },
		{ .name = "calibrate-ids",
		  .value = "FILE",
		  .text = "calibrate with these token ids, in .npy format",
		  .copy = &r->calibration.ids,
		  .set = &r->calibration.wanted,
		  .range.what = "a file" },
		{ .name = "calibrate-tokens",
		  .value = "N",
		  .text = "calibrate with about N tokens [32768, and 1024 for each expert]",
		  .into_32 = &r->calibration.tokens,
		  .range = { "a number of tokens", 2, 1u << 30 } },
		{ .name = "family",
		  .value = "NAME|FILE",
		  .text = "use the rules of this model family, whatever the config says",
		  .copy = &r->family,
		  .range.what = "a name",
		  .complete = "FAMILY" },
		{ .name = "cache",
		  .value = "DIR",
		  .text = "folder of artifacts and manifest [xfp-cache next to OUT]",
		  .copy = &r->cache,
		  .range.what = "a path" },
		{ .name = "work",
		  .value = "DIR",
		  .text = "folder of state and log [OUT.xfp.work]",
		  .copy = &r->work,
		  .range.what = "a path" },
		{ .name = "drop-cache",
		  .text = "remove artifacts as soon as they are not needed",
		  .set = &r->drop_cache },
		{ .name = "jobs",
		  .letter = 'j',
		  .value = "N",
		  .text = "units in flight [one per processor; with --launcher, tasks of the allocation]",
		  .into_32 = &r->jobs,
		  .range = { "a number of jobs", 1, 4096 } },
		{ .name = "launcher",
		  .value = "CMD",
		  .text = "run units on nodes of a cluster with this command, such as 'srun -Q --exact -N1 -n1'",
		  .copy = &r->launcher,
		  .range.what = "a command" },
		{ .name = "keep-going",
		  .letter = 'k',
		  .text = "finish the other units if one fails",
		  .set = &r->keep_going },
		{ .name = "allow-empty",
		  .text = "convert a model without anything to quantize, too",
		  .set = &r->allow_empty },
		{ .name = "force", .text = "begin even if the disk seems too small", .set = &r->force },
		{ .name = "dry-run", .letter = 'n', .text = "print what would run, do nothing", .set = &r->dry_run },
		{ .name = "rehash",
		  .text = "read checkpoint and bundle again even if they seem unchanged",
		  .set = &r->rehash },
		{ .name = "json", .text = "print the summary as JSON", .set = &r->json },
		{ .name = "quiet", .letter = 'q', .text = "print no progress and no summary", .set = &r->quiet },
		parse->planning ? survey : check_survey,
		{ 0 },
	};
	struct xfp_option *all =
		calloc((size_t)before + XFP_SETTING_OPTIONS + sizeof others / sizeof others[0], sizeof *all);

	if (!all)
		return NULL;
	memcpy(all, first, sizeof first);
	for (int i = 0; i < XFP_SETTING_OPTIONS; i++) {
		all[before + i] = xfp_setting_option((enum xfp_setting_number)i, NULL, NULL, NULL);
		all[before + i].parse = parse_setting;
		all[before + i].context = &parse->given;
	}
	memcpy(all + before + XFP_SETTING_OPTIONS, others, sizeof others);
	return all;
}

/* Name of an option's variable; --output is OUT in makefiles. */
static void variable_of(const char *option, char name[XFP_OPTION_VARIABLE])
{
	xfp_option_variable(strcmp(option, "output") ? option : "out", name);
}

/* Add an option to the equivalent command line that does not need the environment. */
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

static bool is_calibration(const struct xfp_option *option)
{
	return !strncmp(option->name, CALIBRATE, strlen(CALIBRATE));
}

/* Use the variable of an option that has a value. */
static enum xfp_status use_variable(struct xfp_options *o, const struct xfp_option *option, const char *name,
				    const char *text, struct xfp_error *err)
{
	enum xfp_status status = xfp_option_use(option, name, text, err);

	return status ? status : inherit(o, option->name, text, err);
}

/* The only switches that makefiles can set: CALIBRATE = yes, or self. */
static enum xfp_status use_calibrate(struct xfp_options *o, const char *name, const char *text, struct xfp_error *err)
{
	if (!strcmp(text, "self")) {
		o->request.calibration.self = true;
		return inherit(o, NULL, "--" CALIBRATE "-self", err);
	}
	if (strcmp(text, "yes") != 0)
		return xfp_fail(err, XFP_USAGE, "%s '%s': expected yes, self or no", name, text);
	o->request.calibration.wanted = true;
	return inherit(o, NULL, "--" CALIBRATE, err);
}

/* Variables that choose a text apply only if the command line chooses none. */
static enum xfp_status calibration_from_environment(struct xfp_options *o, const struct xfp_option *options,
						    struct xfp_error *err)
{
	struct xfp_calibration_request *c = &o->request.calibration;
	const bool chosen = c->wanted || c->self, counted = c->tokens;
	enum xfp_status status = XFP_OK;

	for (const struct xfp_option *option = options; !status && option->name; option++) {
		char name[XFP_OPTION_VARIABLE];
		const char *text;

		if (!is_calibration(option) || (!option->value && strcmp(option->name, CALIBRATE) != 0))
			continue;
		xfp_option_variable(option->name, name);
		text = getenv(name);
		if (!text || !*text || (option->into_32 ? counted : chosen) || !strcmp(text, "no"))
			continue;
		status = option->value ? use_variable(o, option, name, text, err) : use_calibrate(o, name, text, err);
		if (!chosen)
			snprintf(c->variable, sizeof c->variable, "%s", name);
	}
	return status;
}

static enum xfp_status from_environment(struct parse *parse, const struct xfp_option *options, struct xfp_error *err)
{
	struct xfp_options *o = &parse->options;
	const char *model = getenv("XFP_MODEL");
	enum xfp_status status;

	if (model && *model && (status = replace(&o->request.model, model, err)))
		return status;
	for (const struct xfp_option *option = options; option->name; option++) {
		char name[XFP_OPTION_VARIABLE];
		const char *text;

		if (!option->value || is_calibration(option))
			continue;
		variable_of(option->name, name);
		text = getenv(name);
		if (text && *text && (status = use_variable(o, option, name, text, err)))
			return status;
	}
	return XFP_OK;
}

enum xfp_status xfp_options_check_names(const char *program, struct xfp_error *err)
{
	struct parse nobody = { .options.request.program = program };
	struct xfp_option *options = options_of(&nobody);
	size_t max = 1, count = 0;
	const char **ours = NULL;
	char(*names)[XFP_OPTION_VARIABLE] = NULL, *ignored = NULL;
	enum xfp_status status;

	while (options && options[max - 1].name)
		max++;
	ours = calloc(max, sizeof *ours);
	names = calloc(max, sizeof *names);
	status = options && ours && names ? XFP_OK : xfp_no_memory(err);
	if (!status)
		ours[count++] = "MODEL";
	for (size_t i = 0; !status && options[i].name; i++)
		if (options[i].value || !strcmp(options[i].name, CALIBRATE)) {
			variable_of(options[i].name, names[count]);
			ours[count] = names[count] + strlen("XFP_");
			count++;
		}
	if (!status)
		status = xfp_stray_names(ours, count, &ignored, err);
	if (ignored)
		fprintf(stderr, "%s: ignored, since xfp has no such variable:%s\n", program, ignored);
	free(ignored);
	free(names);
	free(ours);
	free(options);
	return status;
}

/* Both lists of options; NULL if out of memory. */
static struct xfp_option *prepend(const struct xfp_option *first, const struct xfp_option *options)
{
	size_t before = 0, count = 1;
	struct xfp_option *all;

	while (first && first[before].name)
		before++;
	while (options && options[count - 1].name)
		count++;
	if (!options || !(all = malloc((before + count) * sizeof *all)))
		return NULL;
	if (before)
		memcpy(all, first, before * sizeof *all);
	memcpy(all + before, options, count * sizeof *all);
	return all;
}

/* Read the environment first, since the command line takes precedence. Its errors do not prevent --help. */
static enum xfp_status read_line(struct xfp_command_line *line, int argc, char **argv, const struct xfp_option *first,
				 struct parse *parse, struct xfp_error *err)
{
	struct xfp_options *o = &parse->options;
	struct xfp_option *options = options_of(parse), *all = prepend(first, options);
	enum xfp_status status = all ? from_environment(parse, options, err) : xfp_no_memory(err);

	line->options = all;
	if (all)
		status = xfp_command_line_parse_after(line, argc, argv, status, err);
	if (!status && !line->printed)
		status = calibration_from_environment(o, options, err);
	line->options = NULL;
	free(all);
	free(options);
	o->printed = line->printed;
	if (status || line->printed)
		return status;
	o->model_inherited = !line->argument_count && o->request.model;
	if (line->argument_count > 1)
		return xfp_fail(err, XFP_USAGE, "expected one MODEL, got '%s' as well", line->arguments[1]);
	if (!line->argument_count)
		return XFP_OK;
	return *line->arguments[0] ? replace(&o->request.model, line->arguments[0], err)
				   : xfp_fail(err, XFP_USAGE, "MODEL is empty");
}

/* Make a path absolute and normalize it, without following links: the path's last component may matter to readers. */
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

/* The --like bundle must not be the output. */
static enum xfp_status check_like(const struct xfp_request *r, struct xfp_error *err)
{
	struct stat like, out;

	if (!strcmp(r->like, r->out) ||
	    (!stat(r->like, &like) && !stat(r->out, &out) && like.st_dev == out.st_dev && like.st_ino == out.st_ino))
		return xfp_fail(err, XFP_USAGE, "--like %s: is also the output; choose another --output", r->like);
	return XFP_OK;
}

/* Find MODEL, a path or a name in the Hugging Face cache. A command line for resuming keeps the name as given. */
static enum xfp_status find_model(struct xfp_options *o, struct xfp_error *err)
{
	struct xfp_request *r = &o->request;
	char *name = NULL, *found;
	enum xfp_status status;

	if ((status = xfp_model_find(r->model, &found, err)))
		return status;
	if (access(r->model, F_OK))
		name = r->model;
	else
		free(r->model);
	r->model = found;
	if (!(status = make_absolute(&r->model, err)) && o->model_inherited)
		status = inherit(o, NULL, name ? name : r->model, err);
	free(name);
	return status;
}

/* If the output is a symbolic link, write to its target and keep the link. Work folder and cache are next to the
 * link. */
static enum xfp_status follow_output(struct xfp_request *r, struct xfp_error *err)
{
	char *target;
	enum xfp_status status = xfp_follow_links(r->out, &target, err);

	if (status)
		return status;
	free(r->out);
	r->out = target;
	return XFP_OK;
}

/* Later runs read the file of --calibrate-NAME again. */
static enum xfp_status find_file(const char *name, char **path, struct xfp_error *err)
{
	if (*path && !strcmp(*path, "-"))
		return xfp_fail(err, XFP_USAGE,
				"--" CALIBRATE "-%s -: later runs need it again, so it cannot be standard input; name "
				"a file",
				name);
	return *path ? make_absolute(path, err) : XFP_OK;
}

static enum xfp_status finish_paths(struct xfp_options *o, struct xfp_error *err)
{
	struct xfp_request *r = &o->request;
	enum xfp_status status;

	if (!strcmp(r->out, "-"))
		return xfp_fail(err, XFP_USAGE,
				"--output -: a bundle is not written to standard output; name a file, as in model.xfp");
	if (r->out[strlen(r->out) - 1] == '/')
		return xfp_fail(err, XFP_USAGE, "--output '%s' is a folder; name the bundle, as in %smodel.xfp", r->out,
				r->out);
	if ((status = make_absolute(&r->out, err)) || (status = find_model(o, err)))
		return status;
	if (!r->work && !(r->work = xfp_formatted("%s.work", r->out)))
		return xfp_no_memory(err);
	r->own_cache = !r->cache;
	if (!r->cache && !(r->cache = xfp_formatted("%.*s/xfp-cache", (int)(strrchr(r->out, '/') - r->out), r->out)))
		return xfp_no_memory(err);
	if ((status = make_absolute(&r->work, err)) || (status = follow_output(r, err)))
		return status;
	if (r->like && ((status = make_absolute(&r->like, err)) || (status = check_like(r, err))))
		return status;
	if ((status = find_file("text", &r->calibration.text, err)) ||
	    (status = find_file("ids", &r->calibration.ids, err)))
		return status;
	return make_absolute(&r->cache, err);
}

/* A plan needs no output, but the output determines the cache and the work folder. */
static enum xfp_status guess_output(struct xfp_request *r, struct xfp_error *err)
{
	const char *name = r->model + strlen(r->model), *end;

	while (name > r->model && name[-1] == '/')
		name--;
	for (end = name; name > r->model && name[-1] != '/';)
		name--;
	if (end == name || (end - name <= 2 && !strncmp(name, "..", (size_t)(end - name)))) {
		name = "model";
		end = name + strlen(name);
	}
	r->out_guessed = true;
	r->out = xfp_formatted("%.*s.xfp", (int)(end - name), name);
	return r->out ? XFP_OK : xfp_no_memory(err);
}

enum xfp_status xfp_options_parse(int argc, char **argv, const struct xfp_options_use *use, struct xfp_options *options,
				  struct xfp_error *err)
{
	const bool planning = use->planning;
	struct xfp_command_line line = {
		.usage = use->usage, .summary = use->summary, .column = 35, .brief = true, .operand = "MODEL"
	};
	struct parse parse = { .options.request.program = argv[0], .planning = planning };
	struct xfp_options *o = &parse.options;
	struct xfp_request *r = &o->request;
	enum xfp_status status;

	if ((status = read_line(&line, argc, argv, use->first, &parse, err)) || o->printed ||
	    (status = xfp_options_check_names(argv[0], err)))
		goto done;
	if (r->dry_run && r->json && !planning) {
		status = xfp_fail(
			err, XFP_USAGE,
			"--json prints the summary of a conversion, and --dry-run converts nothing; use xfp plan "
			"--json");
		goto done;
	}
	r->survey |= use->survey && *use->survey;
	r->dry_run |= planning && !r->survey;
	r->planning = planning;
	if (planning && r->model && !r->out && (status = guess_output(r, err)))
		goto done;
	if (!r->model)
		status = xfp_fail(err, XFP_USAGE, "MODEL is missing; name a folder or a file");
	else if (!r->out)
		status = xfp_fail(err, XFP_USAGE, "the output is missing; name the bundle with -o OUT.xfp");
	else if (!(status = finish_paths(o, err)))
		status = xfp_user_settings_resolve(&parse.given, o, err);
done:
	xfp_user_settings_free(&parse.given);
	if (status)
		xfp_options_free(o);
	*options = *o;
	return status;
}

void xfp_options_free(struct xfp_options *options)
{
	xfp_request_free(&options->request);
	free(options->profile);
	for (size_t i = 0; options->inherited && options->inherited[i]; i++)
		free(options->inherited[i]);
	free(options->inherited);
	memset(options, 0, sizeof *options);
}
