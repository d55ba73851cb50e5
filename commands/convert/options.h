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

#include "base/xfp_error.h"
#include "conversion/state/request.h"

struct xfp_options {
	struct xfp_request request;
	char *profile; /* NULL: none */
	bool model_inherited;
	char **inherited; /* settings from the environment as command-line words, terminated by NULL */
	bool printed;     /* --help or --version was given and printed; the other members are not set */
};

/* Parse the environment and the command line. argv[0] is the name used in messages ("xfp convert"); `usage` and
 * `summary` are the text for --help (command_line.h). `planning`: a dry run, which accepts --json and defaults the
 * output to MODEL.xfp in the current folder. Returns XFP_USAGE for invalid options. */
enum xfp_status xfp_options_parse(int argc, char **argv, const char *usage, const char *summary, bool planning,
				  struct xfp_options *options, struct xfp_error *err);
void xfp_options_free(struct xfp_options *options);

/* Check for environment and makefile variables that resemble a setting but are not one, and therefore have no effect.
 * Unrelated XFP_ variables only cause a warning. Status as xfp_stray_names. */
enum xfp_status xfp_options_check_names(const char *program, struct xfp_error *err);

#endif
