/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.h - named sets of settings: files of lines "option = value".
 *
 * A profile is NAME.profile in pipelines/profiles of the data folder, or any file. It sets defaults, which the
 * environment and the command line override. Blank lines, and lines whose first nonblank character is #, are skipped.
 *
 * The first setting may be "profile = NAME": the profile is then based on another one, whose settings are a layer below
 * its own. A file name is relative to the folder of the profile that contains it.
 *
 * Lines "calibrated FLOOR = value" are a layer above the others of the file, for conversions with calibration, whose
 * floors apply to outputs: FLOOR is min-cos-strict, min-cos-lazy, floor or on-miss.
 */
#ifndef XFP_PROFILE_H
#define XFP_PROFILE_H

#include "stages/settings/settings.h"

#define XFP_PROFILE_SUFFIX ".profile"
#define XFP_DEFAULT_PROFILE "balanced"

/* Read the profile `name` (with a slash, or ending in .profile: a file) into settings and finish their layer.
 * XFP_USAGE: invalid; the message names file and line, and for an unknown name the existing profiles. */
enum xfp_status xfp_profile_read(const char *name, struct xfp_settings *settings, struct xfp_error *err);

/* xfp_profile_read from a text; `path` is for messages. */
enum xfp_status xfp_profile_parse(const char *text, const char *path, struct xfp_settings *settings,
				  struct xfp_error *err);

#endif
