/* SPDX-License-Identifier: Apache-2.0 */
/*
 * given.h - the settings that the environment and the command line gave, kept until it is known what they change:
 * the defaults, a profile, or what the bundle of --like was made with.
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
	} * list; /* in the order in which they were given */
	size_t count;
};

enum xfp_status xfp_given_add(struct xfp_given *given, int setting, const char *where, const char *text,
			      struct xfp_error *err);
void xfp_given_free(struct xfp_given *given);

/* The request's parameters and goal, and for --like the family. XFP_USAGE when something is wrong or contradicts
 * --like, XFP_UNMET when --like cannot be followed. */
enum xfp_status xfp_given_settle(const struct xfp_given *given, struct xfp_options *options, struct xfp_error *err);

#endif
