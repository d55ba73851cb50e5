/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stray_names.h - detects variables that look like settings of xfp but are not, such as typos, which would silently
 * leave the default in effect.
 *
 * They come from the environment, with the prefix XFP_, and from a makefile that includes convert.mk, which passes on
 * the variables that make knows and convert.mk does not: XFP_MAKE_GIVEN from make's command line, XFP_MAKE_SET from
 * makefiles.
 */
#ifndef XFP_STRAY_NAMES_H
#define XFP_STRAY_NAMES_H

#include <stddef.h>

#include "base/xfp_error.h"

/* Check the variables. `ours` lists all settings as makefiles spell them: "MIN_COS_LAZY". Returns XFP_USAGE, naming the
 * nearest setting, if one was probably intended, and for any unknown variable on make's command line. Other XFP_ names
 * in the environment may belong to other programs: *ignored lists them, each after a space; NULL if there are none. The
 * caller frees it. */
enum xfp_status xfp_stray_names(const char *const *ours, size_t count, char **ignored, struct xfp_error *err);

#endif
