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
json_t *xfp_json_text_of(const char *text, size_t size); /* which may hold zeros */
/* The same, and null for NULL. */
json_t *xfp_json_text_or_null(const char *text);

/* Objects and lists are made of what may be NULL for want of memory, and then are NULL themselves: only what is printed
 * in the end needs to be looked at, and xfp_json_print does that. What a function is given it takes over. */

struct xfp_json_field {
	const char *name;
	json_t *value;
};

/* Of the fields, in their order, ended by one without a name; NULL when a value is. */
json_t *xfp_json_object(const struct xfp_json_field fields[]);
/* XFP_JSON({ "units", json_integer(8) }, { "met", json_true() }): values are computed in no particular order. */
#define XFP_JSON(...) xfp_json_object((const struct xfp_json_field[]){ __VA_ARGS__, { 0 } })

/* Another field of an object, another piece of a list. */
void xfp_json_put(json_t **object, const char *name, json_t *value);
void xfp_json_add(json_t **list, json_t *piece);
/* The fields of `more` behind those of `object`. */
void xfp_json_join(json_t **object, json_t *more);

/* Print a value as every command does, indented by two and with 15 digits, and a newline, and release it; NULL is what
 * was made without memory. That standard output takes nothing more is for xfp_output_finish to tell. */
enum xfp_status xfp_json_print(json_t *root, struct xfp_error *err);
/* The same on one line, and what follows it is the caller's. */
enum xfp_status xfp_json_print_line(json_t *root, struct xfp_error *err);

#endif
