/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glob.h - shell patterns for names.
 *
 * The language is that of fnmatch(3) without flags in the C locale, byte by byte: * matches any characters, including
 * dots and slashes, ? matches one, [...] matches one of a set, with ranges, [:classes:] and ! or ^ for negation, and \
 * quotes the next character. A set that is not closed is a literal [ and the text after it.
 *
 * fnmatch itself allocates memory for long names, and if that fails, it answers neither yes nor no. Patterns decide how
 * weights are stored, so the answer must depend neither on memory nor on the locale.
 */
#ifndef XFP_GLOB_H
#define XFP_GLOB_H

#include <stdbool.h>

bool xfp_glob_matches(const char *pattern, const char *name);

#endif
