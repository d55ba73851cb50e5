/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.h - find the folder of make rules, model families and profiles.
 *
 * It is $XFP_DATADIR if that is set; else ../share/xfp relative to the folder of the running tool, so that an installed
 * tree can be moved; else the tool's folder or its parent, for a build in or below the source tree; else the folder
 * configured at build time.
 */
#ifndef XFP_DATA_H
#define XFP_DATA_H

#include <stdbool.h>

#include "base/xfp_error.h"

#define XFP_PIPELINES "pipelines"
#define XFP_FAMILIES "pipelines/families"
#define XFP_FAMILY_PATH "XFP_FAMILIES" /* folders separated by colons, searched before xfp's own */
#define XFP_PROFILES "pipelines/profiles"

/* The path of a data folder by its name; the caller frees it. XFP_FAILED: it does not exist; the message has the
 * remedy. */
enum xfp_status xfp_data_folder(const char *name, char **folder, struct xfp_error *err);

/* Whether the name of a family or a profile is a file name: it has a slash or the suffix, as "X.family". */
bool xfp_names_file(const char *name, const char *suffix);

/* The folder of the running tool, or NULL if it is unknown; the caller frees it. */
char *xfp_tool_folder(void);

#endif
