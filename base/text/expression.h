/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expression.h - POSIX extended regular expressions that distinguish "no match" from "out of memory".
 */
#ifndef XFP_EXPRESSION_H
#define XFP_EXPRESSION_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/xfp_error.h"

/* Compile an expression; the caller releases it with regfree. XFP_BAD_INPUT: invalid; the message quotes it as
 * `shown`. */
enum xfp_status xfp_expression_compile(regex_t *expression, const char *text, const char *shown, struct xfp_error *err);

/* Match `text`, and store the positions of `count` groups, group 0 being the whole match. XFP_FAILED: memory ran out,
 * so the answer is unknown. */
enum xfp_status xfp_expression_match(const regex_t *expression, const char *text, size_t count, regmatch_t *groups,
				     bool *matches, struct xfp_error *err);

#endif
