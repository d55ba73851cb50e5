/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repetitions in regular expressions: syntax and instructions.
 */
#include "model/tokenizer/expression.h"

#include <stdlib.h>
#include <string.h>

#define MAX_REPEATS 100000

static uint32_t product(uint32_t a, uint32_t b)
{
	return !a || !b ? 0 : a == XFP_UNBOUNDED || b > (XFP_UNBOUNDED - 1) / a ? XFP_UNBOUNDED : a * b;
}

/* Parse {n}, {n,}, {,m} or {n,m}. */
static struct xfp_match_extent counts(struct xfp_expression_parser *p)
{
	struct xfp_match_extent counts = { 0 };
	const char *end = p->at + 1, *digits = "0123456789";
	size_t first = strspn(end, digits), second = 0;

	if (first > 6 || (end[first] == ',' && strspn(end + first + 1, digits) > 6))
		p->problem = "a repetition of more than 100000 times";
	else
		counts.low = counts.high = (uint32_t)strtoul(end, NULL, 10);
	end += first;
	if (!p->problem && *end == ',') {
		second = strspn(++end, digits);
		counts.high = second ? (uint32_t)strtoul(end, NULL, 10) : XFP_UNBOUNDED;
		end += second;
	} else if (*end == '}' && end[1] == '?') {
		p->problem = "{n}?";
	}
	if (!p->problem && (*end != '}' || (!first && !second)))
		p->problem = "a { that does not begin a repetition";
	else if (!p->problem && (counts.low > MAX_REPEATS || (second && counts.high > MAX_REPEATS)))
		p->problem = "a repetition of more than 100000 times";
	else if (!p->problem && counts.high < counts.low)
		p->problem = "a repetition {n,m} with n greater than m";
	p->at = end + !p->problem;
	return counts;
}

/* Append a copy of the instructions from `start` on. */
static void copy(struct xfp_expression_parser *p, size_t start, size_t length)
{
	size_t place = p->program->count;

	if (xfp_expression_insert(p, place, length))
		memcpy(p->program->code + place, p->program->code + start, length * sizeof *p->program->code);
}

/* Repeat the instructions from `start` on once or more: [MARK] body [CHECK] SPLIT back. */
static void loop(struct xfp_expression_parser *p, size_t start, bool lazy, bool may_be_empty)
{
	struct xfp_instruction *i;
	uint32_t place = p->program->registers;

	if (may_be_empty && xfp_expression_insert(p, start, 1)) {
		p->program->code[start].operation = XFP_MARK;
		p->program->code[start].low = place;
		p->program->registers++;
		if ((i = xfp_expression_append(p, XFP_CHECK))) {
			i->low = place;
			i->to = 2;
		}
	}
	if ((i = xfp_expression_append(p, XFP_SPLIT))) {
		i->lazy = !lazy; /* a greedy loop tries the jump back first */
		i->to = -(int32_t)(p->program->count - 1 - start);
	}
}

/* Repeat the instructions from `start` on times.low to times.high times. */
static void repeat(struct xfp_expression_parser *p, size_t start, struct xfp_match_extent times, bool lazy,
		   bool may_be_empty)
{
	size_t length = p->program->count - start, end;

	if (!times.high || !length) {
		p->program->count = start;
		return;
	}
	for (uint32_t n = 1; !p->problem && n < times.low; n++)
		copy(p, start, length);
	if (times.high == XFP_UNBOUNDED) {
		size_t last = p->program->count - length;

		loop(p, last, lazy, may_be_empty);
		if (!times.low && xfp_expression_insert(p, start, 1))
			p->program->code[start] = (struct xfp_instruction){
				.operation = XFP_SPLIT, .lazy = lazy, .to = (int32_t)(p->program->count - start)
			};
		return;
	}
	/* Each optional copy can be skipped together with all later ones. */
	end = start + (times.low ? times.low * length : 0) + (times.high - times.low) * (length + 1);
	if (!times.low && xfp_expression_insert(p, start, 1))
		p->program->code[start] =
			(struct xfp_instruction){ .operation = XFP_SPLIT, .lazy = lazy, .to = (int32_t)(end - start) };
	for (uint32_t n = times.low ? times.low : 1; !p->problem && n < times.high; n++) {
		struct xfp_instruction *i = xfp_expression_append(p, XFP_SPLIT);

		if (i) {
			i->lazy = lazy;
			i->to = (int32_t)(end - (p->program->count - 1));
		}
		copy(p, start + !times.low, length);
	}
}

static void make_possessive(struct xfp_expression_parser *p, size_t start)
{
	if (!xfp_expression_insert(p, start, 1) || !xfp_expression_append(p, XFP_MATCHED))
		return;
	p->program->code[start].operation = XFP_ATOMIC;
	p->program->code[start].to = (int32_t)(p->program->count - start);
}

void xfp_expression_repetition(struct xfp_expression_parser *p, size_t start, struct xfp_match_extent *extent)
{
	struct xfp_match_extent times = { 0, XFP_UNBOUNDED };
	bool lazy = false, possessive = false, again = false, empty = !extent->low;

	p->previous = 0;
	if (*p->at == '{') {
		times = counts(p);
		lazy = *p->at == '?';
		again = *p->at == '+';
		p->at += lazy || again;
	} else {
		times.low = *p->at == '+';
		times.high = *p->at == '?' ? 1 : XFP_UNBOUNDED;
		p->at++;
		lazy = *p->at == '?';
		possessive = *p->at == '+';
		p->at += lazy || possessive;
	}
	if (p->problem)
		return;
	if (p->program->count == start + 1 && p->program->code[start].operation == XFP_SET && times.high) {
		struct xfp_instruction *i = &p->program->code[start];

		i->operation = XFP_RUN;
		i->lazy = lazy;
		i->possessive = possessive;
		i->low = times.low;
		i->high = times.high;
	} else {
		repeat(p, start, times, lazy, empty);
		if (possessive)
			make_possessive(p, start);
	}
	extent->low = product(extent->low, times.low);
	extent->high = product(extent->high, times.high);
	if (again && p->program->count > start) {
		loop(p, start, false, !extent->low);
		extent->high = extent->high ? XFP_UNBOUNDED : 0;
	}
}
