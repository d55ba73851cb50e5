/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h - what texts are cut at, or replaced: a string, or a regular expression.
 *
 * Expressions are meant for Oniguruma, with the syntax of Ruby; PCRE2 looks for them. Where the two differ they are
 * translated, and what is in neither the translation nor any known tokenizer is refused by name.
 */
#ifndef XFP_TOKENIZER_PATTERN_H
#define XFP_TOKENIZER_PATTERN_H

#include "model/tokenizer/grown.h"
#include "model/tokenizer/member.h"

struct xfp_pattern;

/* Of {"String": TEXT} or {"Regex": EXPRESSION}. NULL after a failure. */
struct xfp_pattern *xfp_pattern_open(struct xfp_part_reader *r, const char *where, const json_t *value);
/* Of an expression. */
struct xfp_pattern *xfp_pattern_of(struct xfp_part_reader *r, const char *where, const char *expression);
void xfp_pattern_free(struct xfp_pattern *pattern);
/* The string; NULL of an expression. */
const char *xfp_pattern_string(const struct xfp_pattern *pattern);

/* A part of a text that a pattern matches, or that lies between. */
struct xfp_span {
	size_t start, end;
	bool match;
};

/* Zeroed, it is empty; its owner frees `span`. */
struct xfp_spans {
	struct xfp_span *span;
	size_t count, capacity;
};

/* All of a text, which is well-formed UTF-8, in order. XFP_FAILED also where an expression takes too long. */
enum xfp_status xfp_pattern_find(const struct xfp_pattern *pattern, const char *text, size_t size,
				 struct xfp_spans *spans, struct xfp_error *err);

/* Append the expression as PCRE2 has it. NULL: done; otherwise what it has that is not known; "" is out of memory. */
const char *xfp_pattern_translate(const char *expression, struct xfp_grown *out);

#endif
