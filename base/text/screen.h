/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen.h - the width of a terminal, and printing untrusted text to it.
 */
#ifndef XFP_SCREEN_H
#define XFP_SCREEN_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define XFP_SCREEN_MIN_COLUMNS 80u

/* Columns of a line on standard output: COLUMNS, else the width of the terminal, at least XFP_SCREEN_MIN_COLUMNS. A
 * pipe or a file gets XFP_SCREEN_MIN_COLUMNS. */
unsigned xfp_screen_width(void);

/* Print a text of whole characters, such as a model's output or a CSV field, to standard output. On a terminal, control
 * characters other than newline and tab, and bytes that are not UTF-8, become "\xNN"; a pipe or a file gets every byte
 * unchanged, as does a terminal if `raw`. */
void xfp_screen_print(const char *text, size_t size, bool raw);

/* Print `size` bytes of untrusted text. Control characters other than newline and tab, and bytes that are not UTF-8,
 * become "\xNN", even if `out` is not a terminal. */
void xfp_screen_put(FILE *out, const char *text, size_t size);

/* fprintf with the escapes of xfp_screen_put, for paths, which xfp_printable would cut. */
__attribute__((format(printf, 2, 3))) void xfp_screen_printf(FILE *out, const char *format, ...);
__attribute__((format(printf, 2, 0))) void xfp_screen_vprintf(FILE *out, const char *format, va_list args);

#endif
