/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backtracking matcher. Untried alternatives are frames on a stack. The body of an atomic group or look-around is
 * matched by a recursive call, which drops its frames once it has matched.
 */
#include "model/tokenizer/program.h"

#include <stdlib.h>

#define MAX_FRAMES (8 << 20)

enum frame_kind { ALTERNATIVE, SHRINK, GROW, RESTORE };

struct xfp_frame {
	const struct xfp_instruction *next;
	size_t at, bound; /* bound: the end of the shortest (SHRINK) or longest (GROW) run; a register */
	enum frame_kind kind;
};

void xfp_matching_free(struct xfp_matching *m)
{
	free(m->kinds.kind);
	free(m->registers);
	free(m->stack);
}

/* Use up steps. Asks the watch every XFP_FUEL steps. */
static enum xfp_search spend(struct xfp_matching *m, size_t steps)
{
	struct xfp_pattern_budget *left = &m->budget;

	if (steps < left->fuel) {
		left->fuel -= (uint32_t)steps;
		return XFP_FOUND;
	}
	if (m->watch && m->watch->should_continue && !m->watch->should_continue(m->watch->context))
		return XFP_STOPPED;
	steps -= left->fuel;
	left->fuel = 0;
	if (steps >= left->steps)
		return XFP_TOO_MANY_STEPS;
	left->steps -= steps;
	if (m->begun - left->steps >= XFP_BASE_STEPS + XFP_STEPS_AT_POSITION * (uint64_t)m->kinds.count)
		return XFP_TOO_MANY_STEPS;
	left->fuel = left->steps < XFP_FUEL ? (uint32_t)left->steps : XFP_FUEL;
	left->steps -= left->fuel;
	return XFP_FOUND;
}

static enum xfp_search push(struct xfp_matching *m, struct xfp_frame frame)
{
	if (m->depth == MAX_FRAMES)
		return XFP_TOO_MANY_STEPS;
	if (m->depth == m->capacity && !xfp_grow(&m->stack, sizeof frame, m->depth, 1, &m->capacity))
		return XFP_NO_ROOM;
	m->stack[m->depth++] = frame;
	return XFP_FOUND;
}

static size_t run_end(const struct xfp_matching *m, const bool *in_set, size_t at, uint32_t max)
{
	size_t end = m->end - at < max ? m->end : at + max;

	while (at < end && in_set[m->kinds.kind[at]])
		at++;
	return at;
}

static bool is_newline(const struct xfp_matching *m, size_t at)
{
	return m->program->in_set[m->program->newline][m->kinds.kind[at]];
}

static bool anchored(const struct xfp_matching *m, enum xfp_operation anchor, size_t at)
{
	size_t end = m->kinds.count; /* not m->end: anchors in a look-behind see the whole text */

	if (anchor == XFP_LINE_START)
		return !at || (at < end && is_newline(m, at - 1));
	if (anchor == XFP_LINE_END)
		return at == end || is_newline(m, at);
	return at == (anchor == XFP_TEXT_START ? 0 : end);
}

/* Resume the latest alternative above `floor`. NULL: none is left. */
static const struct xfp_instruction *backtrack(struct xfp_matching *m, size_t floor, size_t *at)
{
	while (m->depth > floor) {
		struct xfp_frame *top = &m->stack[m->depth - 1];

		switch (top->kind) {
		case RESTORE:
			m->registers[top->bound] = top->at;
			m->depth--;
			continue;
		case ALTERNATIVE:
			m->depth--;
			break;
		case SHRINK:
			if (--top->at == top->bound)
				m->depth--;
			break;
		case GROW:
			if (!m->program->in_set[top->next[-1].set][m->kinds.kind[top->at]]) {
				m->depth--;
				continue;
			}
			if (++top->at == top->bound)
				m->depth--;
			break;
		}
		*at = top->at;
		return top->next;
	}
	return NULL;
}

static enum xfp_search run(struct xfp_matching *m, const struct xfp_instruction *next, size_t at, bool all,
			   size_t *end);

/* Match a body that ends exactly at `at`, trying all starts that its extent allows. */
static enum xfp_search match_lookbehind(struct xfp_matching *m, const struct xfp_instruction *look, size_t at)
{
	enum xfp_search found = XFP_NOT_FOUND;
	size_t end = m->end, ends;

	m->end = at;
	for (size_t length = look->low; found == XFP_NOT_FOUND && length <= look->high && length <= at; length++)
		found = run(m, look + 1, at - length, true, &ends);
	m->end = end;
	return found;
}

/* Match an atomic group or look-around. Moves `at` for an atomic group. */
static enum xfp_search enter(struct xfp_matching *m, const struct xfp_instruction *i, size_t *at)
{
	bool negated = i->operation == XFP_NEGATIVE_LOOKAHEAD || i->operation == XFP_NEGATIVE_LOOKBEHIND;
	bool behind = i->operation == XFP_LOOKBEHIND || i->operation == XFP_NEGATIVE_LOOKBEHIND;
	size_t end = 0;
	enum xfp_search found = behind ? match_lookbehind(m, i, *at) : run(m, i + 1, *at, false, &end);

	if (found > XFP_NOT_FOUND)
		return found;
	if (i->operation == XFP_ATOMIC && found == XFP_FOUND)
		*at = end;
	return (found == XFP_FOUND) != negated ? XFP_FOUND : XFP_NOT_FOUND;
}

/* Match a run of one set: lazy, greedy or possessive. */
static enum xfp_search match_run(struct xfp_matching *m, const struct xfp_instruction *i, size_t *at)
{
	const bool *in_set = m->program->in_set[i->set];
	size_t start = *at, min = start + i->low, stop = run_end(m, in_set, start, i->lazy ? i->low : i->high);
	size_t last = m->end - start < i->high ? m->end : start + i->high;
	enum xfp_search spent = spend(m, stop - start);

	if (spent != XFP_FOUND || stop < min)
		return spent != XFP_FOUND ? spent : XFP_NOT_FOUND;
	*at = stop;
	if (i->lazy && stop < last)
		return push(m, (struct xfp_frame){ i + 1, stop, last, GROW });
	if (!i->lazy && !i->possessive && stop > min)
		return push(m, (struct xfp_frame){ i + 1, stop, min, SHRINK });
	return XFP_FOUND;
}

/* Match from an instruction up to its XFP_MATCHED. `all`: the match must end at m->end. */
static enum xfp_search run(struct xfp_matching *m, const struct xfp_instruction *next, size_t at, bool all, size_t *end)
{
	size_t floor = m->depth;

	for (const struct xfp_instruction *i = next; i;) {
		enum xfp_search done = spend(m, 1);
		const struct xfp_instruction *other;

		if (done != XFP_FOUND)
			return done;
		next = i + 1;
		switch ((enum xfp_operation)i->operation) {
		case XFP_MATCHED:
			if (all && at != m->end) {
				done = XFP_NOT_FOUND;
				break;
			}
			m->depth = floor;
			*end = at;
			return XFP_FOUND;
		case XFP_SET:
			if (at < m->end && m->program->in_set[i->set][m->kinds.kind[at]])
				at++;
			else
				done = XFP_NOT_FOUND;
			break;
		case XFP_RUN:
			done = match_run(m, i, &at);
			break;
		case XFP_JUMP:
			next = i + i->to;
			break;
		case XFP_SPLIT:
			other = i->lazy ? i + 1 : i + i->to;
			next = i->lazy ? i + i->to : i + 1;
			done = push(m, (struct xfp_frame){ other, at, 0, ALTERNATIVE });
			break;
		case XFP_MARK:
			done = push(m, (struct xfp_frame){ NULL, m->registers[i->low], i->low, RESTORE });
			m->registers[i->low] = at;
			break;
		case XFP_CHECK:
			if (m->registers[i->low] == at)
				next = i + i->to;
			break;
		case XFP_LINE_START:
		case XFP_LINE_END:
		case XFP_TEXT_START:
		case XFP_TEXT_END:
			if (!anchored(m, (enum xfp_operation)i->operation, at))
				done = XFP_NOT_FOUND;
			break;
		default:
			done = enter(m, i, &at);
			next = i + i->to;
		}
		if (done > XFP_NOT_FOUND)
			return done;
		i = done == XFP_FOUND ? next : backtrack(m, floor, &at);
	}
	return XFP_NOT_FOUND;
}

enum xfp_search xfp_match(struct xfp_matching *m, size_t at, size_t *start, size_t *end)
{
	if (!m->registers) {
		m->registers = calloc(m->program->registers + 1, sizeof *m->registers);
		if (!m->registers)
			return XFP_NO_ROOM;
		m->budget.steps += XFP_STEPS_PER_CHARACTER * (uint64_t)m->kinds.count;
		m->end = m->kinds.count;
	}
	for (; at <= m->kinds.count; at++) {
		enum xfp_search found;

		m->depth = 0;
		m->begun = m->budget.steps + m->budget.fuel;
		found = run(m, m->program->code, at, false, end);
		if (found != XFP_NOT_FOUND) {
			*start = at;
			return found;
		}
	}
	return XFP_NOT_FOUND;
}
