/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stray_names.h - variables that look as if they were meant for xfp, and are not: a setting that is misspelt would
 * silently be the default.
 *
 * They come from the environment, with XFP_ before their names, and from a makefile that includes convert.mk, which
 * hands on those that make knows and it does not: XFP_MAKE_GIVEN from make's command line, XFP_MAKE_SET from makefiles.
 */
#ifndef XFP_STRAY_NAMES_H
#define XFP_STRAY_NAMES_H

#include <stddef.h>

#include "base/xfp_error.h"

/* `ours` are the names of all settings, as makefiles write them: "MIN_COS_LAZY". XFP_USAGE naming the nearest when one
 * was probably meant, and for whatever else make's command line has; other names in the environment are
 * listed in *ignored, each after a blank, since other programs may have such; NULL if there are none. The caller frees
 * it. */
enum xfp_status xfp_stray_names(const char *const *ours, size_t count, char **ignored, struct xfp_error *err);

#endif
