/* SPDX-License-Identifier: Apache-2.0 */
/*
 * given.h - settings from the environment and the command line, stored until their base is known: the defaults, a
 * profile, or the settings of the --like bundle.
 */
#ifndef XFP_GIVEN_H
#define XFP_GIVEN_H

#include <stddef.h>

#include "commands/convert/options.h"
#include "stages/settings/settings.h"

struct xfp_given {
	struct xfp_given_setting {
		int setting;
		char where[64]; /* the option or the variable, for messages */
		char *text;
	} * list; /* in the order given */
	size_t count;
};

enum xfp_status xfp_given_add(struct xfp_given *given, int setting, const char *where, const char *text,
			      struct xfp_error *err);
void xfp_given_free(struct xfp_given *given);

/* Derive the request's parameters, goal and, with --like, family. Returns XFP_USAGE if a setting is invalid or
 * contradicts --like, XFP_UNMET if --like cannot be followed. */
enum xfp_status xfp_given_settle(const struct xfp_given *given, struct xfp_options *options, struct xfp_error *err);

#endif
