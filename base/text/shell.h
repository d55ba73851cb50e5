/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shell.h - quote command lines that a message prints, for pasting into a shell.
 */
#ifndef XFP_SHELL_H
#define XFP_SHELL_H

#include <stdio.h>

/* Print a word, quoted if a shell would not read it unchanged. Control characters other than newline and tab, and bytes
 * that are not UTF-8, become escapes in $'...', which bash and zsh support. */
void xfp_shell_quote(FILE *out, const char *word);

#endif
