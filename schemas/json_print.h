/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_print.h - helpers for the --json output of all commands.
 */
#ifndef XFP_JSON_PRINT_H
#define XFP_JSON_PRINT_H

#include <jansson.h>
#include <stdint.h>

#include "base/xfp_error.h"

/* A string from arbitrary bytes. Paths may contain invalid UTF-8, which JSON cannot represent: each such byte becomes
 * "\xNN", as in messages. NULL: out of memory. */
json_t *xfp_json_text(const char *text);
json_t *xfp_json_text_of(const char *text, size_t size); /* the text may contain NULs */
/* xfp_json_text, with null for NULL. */
json_t *xfp_json_text_or_null(const char *text);

/* A whole number. The second function returns null for 0, for fields in which 0 means unknown or missing. */
json_t *xfp_json_count(uint64_t count);
json_t *xfp_json_count_or_null(uint64_t count);
/* A real number; null for NaN and infinity, which JSON cannot represent. */
json_t *xfp_json_number(double value);

/* Building functions accept NULL values, which mean that memory ran out, and then return NULL: only the final value
 * needs a check, which xfp_json_print makes. All functions take ownership of the values given to them. */

struct xfp_json_field {
	const char *name;
	json_t *value;
};

/* An object with these fields in order; the list ends with an entry without a name. NULL if any value is NULL. */
json_t *xfp_json_object(const struct xfp_json_field fields[]);
/* XFP_JSON({ "units", json_integer(8) }, { "met", json_true() }): the evaluation order of the values is unspecified. */
#define XFP_JSON(...) xfp_json_object((const struct xfp_json_field[]){ __VA_ARGS__, { 0 } })

/* Append a field to an object, or a value to a list. */
void xfp_json_put(json_t **object, const char *name, json_t *value);
void xfp_json_add(json_t **list, json_t *piece);
/* Append the fields of `more` to `object`. */
void xfp_json_join(json_t **object, json_t *more);

/* Print a value and a newline, indented by two and with 15 digits, and release it; NULL is out of memory. Write errors
 * are reported by xfp_output_finish. */
enum xfp_status xfp_json_print(json_t *root, struct xfp_error *err);
/* Print a value on one line, without a newline. */
enum xfp_status xfp_json_print_line(json_t *root, struct xfp_error *err);

#endif
