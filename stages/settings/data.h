/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.h - where make rules, model families and profiles are.
 *
 * $XFP_DATADIR if that is set; else ../share/xfp beside the folder of the running tool, so that an
 * installed tree can be moved; else the tool's folder or the one above, for a build in or below the
 * source tree; else where `make install` was told to put them.
 */
#ifndef XFP_DATA_H
#define XFP_DATA_H

#include <stdbool.h>

#include "base/xfp_error.h"

#define XFP_PIPELINES "pipelines"
#define XFP_FAMILIES "pipelines/families"
#define XFP_FAMILY_PATH "XFP_FAMILIES" /* folders separated by colons, looked through before xfp's own */
#define XFP_PROFILES "pipelines/profiles"

/* The folder `name` of the data. XFP_FAILED, with the remedy, when it is not there; the caller frees. */
enum xfp_status xfp_data_folder(const char *name, char **folder, struct xfp_error *err);

/* Whether what names a family or a profile names a file: by a slash in it, or by its ending, "X.family". */
bool xfp_names_file(const char *name, const char *suffix);

/* The folder of the running tool, NULL when that cannot be told; the caller frees it. */
char *xfp_tool_folder(void);

#endif
