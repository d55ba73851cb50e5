/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/expression.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

enum xfp_status xfp_expression_compile(regex_t *expression, const char *text, const char *shown, struct xfp_error *err)
{
	int code = regcomp(expression, text, REG_EXTENDED);
	char why[256];

	if (!code)
		return XFP_OK;
	regerror(code, expression, why, sizeof why);
	return xfp_fail(err, code == REG_ESPACE ? XFP_FAILED : XFP_BAD_INPUT, "\"%s\": %s", shown, why);
}

/* The meaning of a regexec that found no match. */
enum answer { NO_MATCH, MATCH, NO_ANSWER };

static enum answer ask_again(const regex_t *expression, const char *text, int code)
{
#ifdef __GLIBC__
	/* The library returns REG_NOMATCH for every failure; its own interface distinguishes them. */
	size_t length = strlen(text);
	regoff_t at;

	(void)code;
	if (length > INT_MAX)
		return NO_ANSWER;
	at = re_search((regex_t *)(uintptr_t)expression, text, (regoff_t)length, 0, (regoff_t)length, NULL);
	return at >= 0 ? MATCH : at == -1 ? NO_MATCH : NO_ANSWER;
#else
	(void)expression, (void)text;
	return code == REG_NOMATCH ? NO_MATCH : NO_ANSWER;
#endif
}

enum xfp_status xfp_expression_match(const regex_t *expression, const char *text, size_t count, regmatch_t *groups,
				     bool *matches, struct xfp_error *err)
{
	int code = regexec(expression, text, count, groups, 0);
	enum answer answer = code ? ask_again(expression, text, code) : MATCH;

	/* A match without its positions is of no use to a caller that asked for them. */
	if (answer == NO_ANSWER || (code && answer == MATCH && count))
		return xfp_no_memory(err);
	*matches = answer == MATCH;
	return XFP_OK;
}
