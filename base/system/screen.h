/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen.h - the width of a terminal, and text from a stranger on it.
 */
#ifndef XFP_SCREEN_H
#define XFP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#define XFP_SCREEN_LEAST 80u

/* Characters of a line on standard output: what COLUMNS says, else the terminal that it is, and never fewer than
 * XFP_SCREEN_LEAST, which is also what a pipe or a file gets. */
unsigned xfp_screen_width(void);

/* Print a text of whole characters to standard output. On a terminal control characters other than newline and tab, and
 * bytes that are not UTF-8, become "\xNN"; a pipe or a file gets every byte unchanged, as does a terminal if `raw`. */
void xfp_screen_print(const char *text, size_t size, bool raw);

#endif
