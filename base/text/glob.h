/* SPDX-License-Identifier: Apache-2.0 */
/*
 * glob.h - patterns for names, as shells have them.
 *
 * The language is that of fnmatch(3) without flags in the C locale, byte by byte: * for any characters, dots and
 * slashes too, ? for one, [...] for one of a set, with ranges, [:classes:] and ! or ^ for all others, and \ before a
 * character that is to mean itself. A set that does not end is a [ and what follows it.
 *
 * fnmatch itself allocates memory for long names, and where it cannot, it answers neither yes nor no. Patterns decide
 * how weights are stored, so the answer must depend neither on memory nor on the locale.
 */
#ifndef XFP_GLOB_H
#define XFP_GLOB_H

#include <stdbool.h>

bool xfp_glob_matches(const char *pattern, const char *name);

#endif
