/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expression.h - state shared by the parts of the regular expression parser.
 */
#ifndef XFP_TOKENIZER_EXPRESSION_H
#define XFP_TOKENIZER_EXPRESSION_H

#include "model/tokenizer/program.h"

#define XFP_UNBOUNDED UINT32_MAX

/* The least and the greatest number of characters that a construct matches. */
struct xfp_match_extent {
	uint32_t low, high;
};

struct xfp_expression_parser {
	const char *at; /* the next byte of the expression */
	struct xfp_program *program;
	unsigned depth, *classes;
	bool caseless, in_lookbehind; /* in_lookbehind: inside a look-behind */
	uint32_t previous;            /* the caseless character just parsed, folded; 0: something else */
	const char *problem;          /* NULL: none so far; "": out of memory */
};

/* Insert zeroed instructions at `place` and move those that follow. No jump may cross `place`. NULL after a problem. */
struct xfp_instruction *xfp_expression_insert(struct xfp_expression_parser *p, size_t place, size_t count);
struct xfp_instruction *xfp_expression_append(struct xfp_expression_parser *p, enum xfp_operation operation);

/* Parse the repetition at p->at and apply it to the instructions from `start` on, whose extent is given and updated.
 * A + after {n,m} repeats the whole. */
void xfp_expression_repetition(struct xfp_expression_parser *p, size_t start, struct xfp_match_extent *extent);

#endif
