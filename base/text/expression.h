/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expression.h - POSIX extended regular expressions that tell "no" from "no memory".
 */
#ifndef XFP_EXPRESSION_H
#define XFP_EXPRESSION_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/xfp_error.h"

/* What is not an expression is XFP_BAD_INPUT, quoted as `shown`. The caller releases it with regfree. */
enum xfp_status xfp_expression_compile(regex_t *expression, const char *text, const char *shown, struct xfp_error *err);

/* Whether it matches, and then the places of `count` groups, 0 being the whole. XFP_FAILED: it cannot tell. */
enum xfp_status xfp_expression_match(const regex_t *expression, const char *text, size_t count, regmatch_t *groups,
				     bool *matches, struct xfp_error *err);

#endif
