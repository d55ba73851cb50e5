/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - named sets of settings: files of lines "option = value".
 *
 * NAME.profile in pipelines/profiles of the data folder, or any file. A profile gives defaults: the environment and
 * the command line win over it. Blank lines, and lines whose first character but blanks is #, are skipped.
 *
 * The first setting may be "profile = NAME": the profile then builds on another one, whose settings are a layer below
 * its own. A file that is so named is looked for in the folder of the profile that names it.
 */
#ifndef XFP_PROFILE_H
#define XFP_PROFILE_H

#include "stages/settings/settings.h"

#define XFP_PROFILE_SUFFIX ".profile"

/* Read the profile `name` (with a slash, or ending in .profile: a file) into settings and finish their layer.
 * XFP_USAGE names what is wrong, file and line, and for a name that is none, those that there are. */
enum xfp_status xfp_profile_read(const char *name, struct xfp_settings *settings, struct xfp_error *err);

/* The same from text; `path` is for messages. */
enum xfp_status xfp_profile_parse(const char *text, const char *path, struct xfp_settings *settings,
				  struct xfp_error *err);

#endif
