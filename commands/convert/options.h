/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - what a user asks of a conversion, from the environment and the command line.
 *
 * Every option that takes a value has a name in the environment too (--min-cos-lazy is
 * XFP_MIN_COS_LAZY), so that a makefile can set it without quoting; the command line wins. What they set starts
 * from the defaults, from a profile or from what a bundle was made with.
 */
#ifndef XFP_OPTIONS_H
#define XFP_OPTIONS_H

#include <stdbool.h>

#include "base/xfp_error.h"
#include "schemas/goal.h"
#include "schemas/parameters.h"

struct xfp_options {
	const char *program;              /* argv[0] */
	char *model, *out, *cache, *work; /* absolute; a name in the Hugging Face cache has become a path */
	char *family;                     /* NULL: inspect finds it */
	char *profile;                    /* NULL: none */
	char *like;                       /* absolute; NULL: no bundle to compare with */
	char *head_asked;                 /* the option that wants a quantized output head; NULL: none, or a profile */
	struct xfp_parameters parameters;
	struct xfp_goal goal;
	unsigned jobs; /* 0: not given */
	bool model_inherited;
	char **inherited; /* what the environment set, as words of a command line, ended by NULL */
	bool keep_going, dry_run, rehash, drop_cache, json, quiet, allow_empty, force;
	bool survey;      /* planning: measure what no survey tells yet */
	bool planning;    /* only what it would take is asked */
	bool out_guessed; /* planning, and no output was named */
	bool own_cache;   /* nobody named one: it is convert's, beside OUT */
	bool told;        /* --help or --version was asked for and printed, and nothing else looked at */
};

/* argv[0] is the name used in messages ("xfp convert"), `usage` and `summary` are for --help, as command_line.h has
 * them. XFP_USAGE when something is wrong. `planning`: it is a dry run; --json is welcome, and without an output the
 * bundle is taken to be MODEL.xfp in the current folder. */
enum xfp_status xfp_options_parse(int argc, char **argv, const char *usage, const char *summary, bool planning,
				  struct xfp_options *options, struct xfp_error *err);
void xfp_options_free(struct xfp_options *options);

/* Variables of the environment and of a makefile that are called like a setting, and are none: they decide nothing,
 * and whoever set them thinks that they do. As xfp_stray_names has it. */
enum xfp_status xfp_options_check_names(const char *program, struct xfp_error *err);

#endif
