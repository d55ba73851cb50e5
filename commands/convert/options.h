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
#include "conversion/state/request.h"

struct xfp_options {
	struct xfp_request request;
	char *profile; /* NULL: none */
	bool model_inherited;
	char **inherited; /* what the environment set, as words of a command line, ended by NULL */
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
