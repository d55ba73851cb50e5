/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user_settings.h - settings from the environment and the command line, stored until their base is known: the defaults,
 * a profile, or the settings of the --like bundle.
 */
#ifndef XFP_USER_SETTINGS_H
#define XFP_USER_SETTINGS_H

#include <stddef.h>

#include "commands/convert/options.h"
#include "stages/settings/settings.h"

struct xfp_user_settings {
	struct xfp_user_setting {
		int setting;
		char where[64]; /* the option or the variable, for messages */
		char *text;
	} * list; /* in the order given */
	size_t count;
};

enum xfp_status xfp_user_settings_add(struct xfp_user_settings *given, int setting, const char *where, const char *text,
				      struct xfp_error *err);
void xfp_user_settings_free(struct xfp_user_settings *given);

/* Derive the request's parameters, goal and, with --like, family. Returns XFP_USAGE if a setting is invalid or
 * contradicts --like, XFP_UNMET if --like cannot be followed. */
enum xfp_status xfp_user_settings_resolve(const struct xfp_user_settings *given, struct xfp_options *options,
					  struct xfp_error *err);

#endif
