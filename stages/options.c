/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"

enum option_id {
	OPT_MODE = 256,
	OPT_STRICT,
	OPT_LAZY,
	OPT_FLOOR,
	OPT_BITS,
	OPT_SIGMA,
	OPT_CAP,
	OPT_BALANCE,
	OPT_ITERS,
	OPT_START,
	OPT_LM_HEAD,
	OPT_ON_MISS,
	OPT_ON_NONFINITE,
	OPT_FAMILY,
	OPT_CACHE,
	OPT_WORK,
	OPT_REHASH,
	OPT_JSON,
	OPT_HELP,
	OPT_VERSION
};

struct option_row {
	const char *name;
	int id;
	const char *value; /* what --help calls it; NULL: a switch */
	const char *text;
};

/* In the order of --help. */
static const struct option_row rows[] = {
	{ "output", 'o', "OUT.xfp", "the bundle to write" },
	{ "min-cos-strict", OPT_STRICT, "X",
	  "floor of the median cosine: classes but routed_expert, no fp8 lm_head [0.99]" },
	{ "min-cos-lazy", OPT_LAZY, "X", "floor of routed_expert [0.98]" },
	{ "floor", OPT_FLOOR, "CLASS=X,...", "floor of one class; may be repeated" },
	{ "bits", OPT_BITS, "LIST", "bits an index that may be chosen, as in 2,3,4 or 2-6 [2-6]" },
	{ "outlier-sigma", OPT_SIGMA, "C|none", "weights further than C standard deviations are outliers [4]" },
	{ "outlier-cap", OPT_CAP, "F", "largest share of outliers in a matrix [0.02]" },
	{ "balance", OPT_BALANCE, "A", "exponent of the columns' rms; 0: no balance [0.5]" },
	{ "lloyd-iters", OPT_ITERS, "N", "rounds of Lloyd's iteration [20]" },
	{ "mode", OPT_MODE, "auto|v2", "how weights are stored; auto is v2 for now [auto]" },
	{ "start", OPT_START, "NAME", "first codebooks: companded, quantile or minmax [companded]" },
	{ "lm-head", OPT_LM_HEAD, "NAME", "the output head: fp8 (without a floor), keep or quant [fp8]" },
	{ "on-miss", OPT_ON_MISS, "NAME", "a unit that no candidate serves: keep, best or fail [keep]" },
	{ "on-nonfinite", OPT_ON_NONFINITE, "NAME", "NaN or infinity in a unit: fail or keep [fail]" },
	{ "family", OPT_FAMILY, "NAME|FILE", "rules of this model family, not those the config names" },
	{ "cache", OPT_CACHE, "DIR", "artifacts and manifest [xfp-cache beside OUT]" },
	{ "work", OPT_WORK, "DIR", "state and log of this conversion [OUT.xfp.work]" },
	{ "jobs", 'j', "N", "units in flight [one a processor]" },
	{ "keep-going", 'k', NULL, "finish the other units when one fails" },
	{ "dry-run", 'n', NULL, "say what would be done, do nothing" },
	{ "rehash", OPT_REHASH, NULL, "read the whole checkpoint again even where it seems unchanged" },
	{ "json", OPT_JSON, NULL, "the summary as JSON" },
	{ "quiet", 'q', NULL, "no progress and no summary" },
	{ "help", OPT_HELP, NULL, "this text" },
	{ "version", OPT_VERSION, NULL, "the version" },
};
#define ROWS (sizeof rows / sizeof rows[0])

/* Floors as given; classes that are named win over strict and lazy, in whatever order they come. */
struct floors {
	uint32_t strict, lazy;
	uint32_t named[XFP_CLASSES];
	bool is_named[XFP_CLASSES];
};

void xfp_options_print(void)
{
	for (size_t i = 0; i < ROWS; i++) {
		char left[64];

		snprintf(left, sizeof left, "%s--%s%s%s", rows[i].id < 256 ? "" : "    ", rows[i].name,
			 rows[i].value ? " " : "", rows[i].value ? rows[i].value : "");
		if (rows[i].id < 256)
			printf("  -%c, %-28s %s\n", rows[i].id, left, rows[i].text);
		else
			printf("  %-32s %s\n", left, rows[i].text);
	}
}

static bool parse_floor(const char *text, uint32_t *floor)
{
	return xfp_decimal_parse(text, XFP_NANO, floor) && *floor <= XFP_NANO;
}

static enum xfp_status no_such_class(const char *where, const char *name, struct xfp_error *err)
{
	char list[400] = "";

	for (int i = 0; i < XFP_CLASSES; i++)
		snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "",
			 xfp_class_name((enum xfp_class)i));
	return xfp_fail(err, XFP_USAGE, "%s: no class '%s'; classes are %s", where, name, list);
}

static enum xfp_status parse_floors(const char *where, const char *text, struct floors *floors, struct xfp_error *err)
{
	char *copy = strdup(text), *rest = copy;
	enum xfp_status status = copy ? XFP_OK : xfp_fail(err, XFP_FAILED, "out of memory");

	for (char *item; !status && (item = strsep(&rest, ","));) {
		char *value = strchr(item, '=');
		enum xfp_class class_;

		if (value)
			*value++ = '\0';
		if (!value)
			status = xfp_fail(err, XFP_USAGE, "%s '%s': expected CLASS=COSINE, as in attention=0.995",
					  where, text);
		else if (!xfp_class_parse(item, &class_))
			status = no_such_class(where, item, err);
		else if (!parse_floor(value, &floors->named[class_]))
			status = xfp_fail(err, XFP_USAGE, "%s '%s=%s': expected a cosine from 0 to 1, as in 0.995",
					  where, item, value);
		else
			floors->is_named[class_] = true;
	}
	free(copy);
	return status;
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
static enum xfp_status set(struct xfp_options *o, struct floors *floors, int id, const char *where, const char *text,
			   struct xfp_error *err)
{
	struct xfp_parameters *p = &o->parameters;
	const char *wanted = "a path";
	bool ok;

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
	case OPT_FAMILY:
		ok = replace(&o->family, text);
		wanted = "a name";
		break;
	case OPT_MODE:
		if (!strcmp(text, "v2a") || !strcmp(text, "v2c"))
			return xfp_fail(err, XFP_USAGE, "%s %s: this version does not fit libraries yet; use v2", where,
					text);
		ok = !strcmp(text, "auto") || !strcmp(text, "v2");
		wanted = "auto or v2";
		break;
	case OPT_STRICT:
		ok = parse_floor(text, &floors->strict);
		wanted = "a cosine from 0 to 1, as in 0.99";
		break;
	case OPT_LAZY:
		ok = parse_floor(text, &floors->lazy);
		wanted = "a cosine from 0 to 1, as in 0.98";
		break;
	case OPT_FLOOR:
		return parse_floors(where, text, floors, err);
	case OPT_BITS:
		ok = xfp_bits_parse(text, &p->bits);
		wanted = "bits from 2 to 6, as in 2,3,4 or 2-6";
		break;
	case OPT_SIGMA:
		if ((ok = !strcmp(text, "none")))
			p->outlier_sigma = 0;
		else
			ok = xfp_decimal_parse(text, 1000, &p->outlier_sigma) && p->outlier_sigma;
		wanted = "a positive number with at most three decimals, or none";
		break;
	case OPT_CAP:
		ok = xfp_decimal_parse(text, XFP_NANO, &p->outlier_cap) && p->outlier_cap <= XFP_NANO;
		wanted = "a share from 0 to 1, as in 0.02";
		break;
	case OPT_BALANCE:
		ok = xfp_decimal_parse(text, XFP_NANO, &p->balance) && p->balance <= XFP_NANO;
		wanted = "an exponent from 0 to 1, as in 0.5";
		break;
	case OPT_ITERS:
		ok = parse_count(text, 1000, &p->lloyd_iterations);
		wanted = "rounds from 1 to 1000";
		break;
	case OPT_START:
		ok = xfp_start_parse(text, &p->start);
		wanted = "companded, quantile or minmax";
		break;
	case OPT_LM_HEAD:
		ok = xfp_lm_head_parse(text, &p->lm_head);
		wanted = "fp8, keep or quant";
		break;
	case OPT_ON_MISS:
		ok = xfp_on_miss_parse(text, &p->on_miss);
		wanted = "keep, best or fail";
		break;
	case OPT_ON_NONFINITE:
		ok = xfp_on_nonfinite_parse(text, &p->on_nonfinite);
		wanted = "fail or keep";
		break;
	case 'j':
		ok = parse_count(text, 4096, &o->jobs);
		wanted = "a number of jobs";
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
		return xfp_fail(err, XFP_FAILED, "out of memory");
	o->inherited = grown;
	grown[count] = option ? xfp_format("--%s", option) : strdup(value);
	grown[count + 1] = option && grown[count] ? strdup(value) : NULL;
	grown[count + 2] = NULL;
	return grown[count] && (!option || grown[count + 1]) ? XFP_OK : xfp_fail(err, XFP_FAILED, "out of memory");
}

static enum xfp_status from_environment(struct xfp_options *o, struct floors *floors, struct xfp_error *err)
{
	const char *model = getenv("XFP_MODEL");
	enum xfp_status status;

	if (model && *model && !replace(&o->model, model))
		return xfp_fail(err, XFP_FAILED, "out of memory");
	for (size_t i = 0; i < ROWS; i++) {
		char name[40];
		const char *text;

		if (!rows[i].value)
			continue;
		variable_of(rows[i].name, name);
		text = getenv(name);
		if (text && *text &&
		    ((status = set(o, floors, rows[i].id, name, text, err)) ||
		     (status = inherit(o, rows[i].name, text, err))))
			return status;
	}
	return XFP_OK;
}

static enum xfp_status from_command_line(int argc, char **argv, struct xfp_options *o, struct floors *floors,
					 struct xfp_error *err)
{
	struct option table[ROWS + 1] = { 0 };
	enum xfp_status status;
	int id;

	for (size_t i = 0; i < ROWS; i++)
		table[i] = (struct option){ rows[i].name, rows[i].value ? required_argument : no_argument, NULL,
					    rows[i].id };
	optind = 0;
	opterr = 0;
	while ((id = getopt_long(argc, argv, ":o:j:knq", table, NULL)) != -1) {
		char where[64] = "-?";

		where[1] = (char)id;
		for (size_t i = 0; i < ROWS; i++)
			if (rows[i].id == id)
				snprintf(where, sizeof where, "--%s", rows[i].name);
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
		case OPT_REHASH:
			o->rehash = true;
			break;
		case OPT_JSON:
			o->json = true;
			break;
		case OPT_HELP:
			o->help = true;
			return XFP_OK;
		case OPT_VERSION:
			o->version = true;
			return XFP_OK;
		case ':':
			return xfp_fail(err, XFP_USAGE, "%s needs a value", argv[optind - 1]);
		case '?':
			if (optopt && optopt < 256)
				return xfp_fail(err, XFP_USAGE, "unknown option -%c", optopt);
			return xfp_fail(err, XFP_USAGE, "unknown option, or a value where none is taken: %s",
					argv[optind - 1]);
		default:
			if ((status = set(o, floors, id, where, optarg, err)))
				return status;
		}
	}
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
		return xfp_fail(err, XFP_FAILED, "out of memory");
	free(*path);
	*path = absolute;
	return XFP_OK;
}

static enum xfp_status finish_paths(struct xfp_options *o, struct xfp_error *err)
{
	enum xfp_status status;

	if (o->out[strlen(o->out) - 1] == '/')
		return xfp_fail(err, XFP_USAGE, "--output '%s' is a folder; name the bundle, as in %smodel.xfp", o->out,
				o->out);
	if ((status = make_absolute(&o->out, err)))
		return status;
	if (access(o->model, F_OK) == 0 && (status = make_absolute(&o->model, err)))
		return status;
	if (!o->work && !(o->work = xfp_format("%s.work", o->out)))
		return xfp_fail(err, XFP_FAILED, "out of memory");
	if (!o->cache && !(o->cache = xfp_format("%.*s/xfp-cache", (int)(strrchr(o->out, '/') - o->out), o->out)))
		return xfp_fail(err, XFP_FAILED, "out of memory");
	if ((status = make_absolute(&o->work, err)))
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
	o->out = xfp_format("%.*s.xfp", (int)(end - name), name);
	return o->out ? XFP_OK : xfp_fail(err, XFP_FAILED, "out of memory");
}

enum xfp_status xfp_options_parse(int argc, char **argv, bool planning, struct xfp_options *options,
				  struct xfp_error *err)
{
	struct xfp_options o = { .parameters = xfp_parameters_default() };
	struct floors floors = { .strict = o.parameters.floor[XFP_CLASS_ATTENTION],
				 .lazy = o.parameters.floor[XFP_CLASS_ROUTED_EXPERT] };
	enum xfp_status status;

	if ((status = from_environment(&o, &floors, err)) || (status = from_command_line(argc, argv, &o, &floors, err)))
		goto done;
	if (o.dry_run && o.json && !planning) {
		status = xfp_fail(
			err, XFP_USAGE,
			"--json is the summary of a conversion; with --dry-run there is none, but xfp plan has one");
		goto done;
	}
	o.dry_run |= planning;
	if (planning && o.model && !o.out && (status = guess_output(&o, err)))
		goto done;
	if (!o.help && !o.version) {
		if (!o.model)
			status = xfp_fail(err, XFP_USAGE, "which MODEL? Name a folder or a file");
		else if (!o.out)
			status = xfp_fail(err, XFP_USAGE, "where to? Name the bundle with -o OUT.xfp");
		else if (floors.is_named[XFP_CLASS_LM_HEAD] && o.parameters.lm_head != XFP_LM_HEAD_QUANT)
			status = xfp_fail(
				err, XFP_USAGE,
				"--floor lm_head needs --lm-head quant: an output head that is kept or goes to fp8 "
				"has no floor");
		else if (!(status = finish_paths(&o, err)) && o.model_inherited)
			status = inherit(&o, NULL, o.model, err);
	}
	for (int i = 0; i < XFP_CLASSES; i++)
		o.parameters.floor[i] = floors.is_named[i]             ? floors.named[i]
					: i == XFP_CLASS_ROUTED_EXPERT ? floors.lazy
								       : floors.strict;
done:
	if (status)
		xfp_options_free(&o);
	*options = o;
	return status;
}

void xfp_options_free(struct xfp_options *options)
{
	free(options->model);
	free(options->out);
	free(options->cache);
	free(options->work);
	free(options->family);
	for (size_t i = 0; options->inherited && options->inherited[i]; i++)
		free(options->inherited[i]);
	free(options->inherited);
	memset(options, 0, sizeof *options);
}
