/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - parses convert's options from the environment and the command line.
 *
 * Every option with a value can also be set in the environment (--min-cos-lazy is XFP_MIN_COS_LAZY), so that a makefile
 * can set it without quoting. The command line takes precedence. Settings start from the defaults, a profile, or the
 * settings of an existing bundle.
 */
#ifndef XFP_OPTIONS_H
#define XFP_OPTIONS_H

#include <stdbool.h>

#include "base/system/command_line.h"
#include "conversion/state/request.h"

struct xfp_options {
	struct xfp_request request;
	char *profile; /* NULL: none */
	bool model_inherited;
	char **inherited; /* settings from the environment as command-line words, terminated by NULL */
	bool printed;     /* --help or --version was given and printed; the other members are not set */
};

/* How a command uses convert's options. */
struct xfp_options_use {
	const char *usage, *summary;    /* for --help (command_line.h) */
	bool planning;                  /* a dry run: accepts --json; the output is MODEL.xfp in the current folder */
	const struct xfp_option *first; /* the command's own options, listed first and without variables; NULL: none */
	const bool *survey;             /* set by one of them: implies --survey; NULL: never */
};

/* Parse the environment and the command line. argv[0] is the name used in messages ("xfp convert"). Returns XFP_USAGE
 * for invalid options. */
enum xfp_status xfp_options_parse(int argc, char **argv, const struct xfp_options_use *use, struct xfp_options *options,
				  struct xfp_error *err);
void xfp_options_free(struct xfp_options *options);

/* Check for environment and makefile variables that resemble a setting but are not one, and therefore have no effect.
 * Unrelated XFP_ variables only cause a warning. Status as xfp_stray_names. */
enum xfp_status xfp_options_check_names(const char *program, struct xfp_error *err);

#endif
