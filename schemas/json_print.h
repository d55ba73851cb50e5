/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_print.h - what all commands share of --json.
 */
#ifndef XFP_JSON_PRINT_H
#define XFP_JSON_PRINT_H

#include <jansson.h>

#include "base/xfp_error.h"

/* A string of any bytes. Paths may hold what is no UTF-8, which JSON cannot: each such byte becomes "\xNN", as in
 * messages. NULL: out of memory. */
json_t *xfp_json_text(const char *text);
/* The same, and null for NULL. */
json_t *xfp_json_text_or_null(const char *text);

/* Print a value and a newline, and release it; NULL is what was made without memory. `flags` are jansson's. That
 * standard output takes nothing more is for xfp_output_finish to tell. */
enum xfp_status xfp_json_print(json_t *root, size_t flags, struct xfp_error *err);

#endif
