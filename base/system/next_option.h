/* SPDX-License-Identifier: Apache-2.0 */
/*
 * next_option.h - getopt_long(3) for all tools: -h is --help, and an unknown option gets a suggestion.
 */
#ifndef XFP_NEXT_OPTION_H
#define XFP_NEXT_OPTION_H

#include <getopt.h>

#include "base/xfp_error.h"

/* Return the next option's value, -1 after the last, or '?' with XFP_USAGE in `err`. `letters` is as for getopt,
 * without "h" and a leading ':'; if `options` has "help", -h gives its value. Set optind to 0 before the first call. */
int xfp_next_option(int argc, char **argv, const char *letters, const struct option *options, struct xfp_error *err);

#endif
