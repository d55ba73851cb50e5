/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h - a string or regular expression, and its matches in a text.
 *
 * Regular expressions have the Ruby syntax of Oniguruma. Unsupported constructs are refused by name. The tables and the
 * step limit are built in, so matches do not depend on any library's version.
 */
#ifndef XFP_TOKENIZER_PATTERN_H
#define XFP_TOKENIZER_PATTERN_H

#include "model/tokenizer/member.h"
#include "model/tokenizer/unicode/growable.h"

struct xfp_pattern;

/* Parse {"String": TEXT} or {"Regex": EXPRESSION}. NULL after a failure. */
struct xfp_pattern *xfp_pattern_open(struct xfp_part_reader *r, const char *where, const json_t *value);
/* Compile a regular expression. */
struct xfp_pattern *xfp_pattern_compile(struct xfp_part_reader *r, const char *where, const char *expression);
void xfp_pattern_free(struct xfp_pattern *pattern);
/* The string; NULL if it is an expression. */
const char *xfp_pattern_string(const struct xfp_pattern *pattern);

/* A part of a text that a pattern matches, or that is between two matches. */
struct xfp_span {
	size_t start, end;
	bool match;
};

/* Spans of a text, empty if zeroed; the owner frees `span`. */
struct xfp_spans {
	struct xfp_span *span;
	size_t count, capacity;
};

/* Find all matches in well-formed UTF-8, and the parts between them, in order. `budget` is that of the whole text.
 * XFP_BAD_INPUT if it is exhausted; XFP_FAILED if the watch ended the search. */
enum xfp_status xfp_pattern_find(const struct xfp_pattern *pattern, const char *text, size_t size,
				 struct xfp_pattern_budget *budget, struct xfp_spans *spans, struct xfp_error *err);

#endif
