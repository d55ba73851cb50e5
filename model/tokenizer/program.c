/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/program.h"

#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/unicode/unicode.h"

#define MAX_SETS 2000

int xfp_program_add_set(struct xfp_program *program, struct xfp_characters *set)
{
	for (size_t i = 0; i < program->sets; i++) {
		const struct xfp_characters *other = &program->set[i];

		if (other->count == set->count &&
		    (!set->count || !memcmp(other->range, set->range, set->count * sizeof *set->range))) {
			free(set->range);
			return (int)i;
		}
	}
	if (program->sets == MAX_SETS ||
	    !xfp_grow(&program->set, sizeof *program->set, program->sets, 1, &program->set_capacity)) {
		free(set->range);
		return program->sets == MAX_SETS ? -2 : -1;
	}
	program->set[program->sets] = *set;
	return (int)program->sets++;
}

void xfp_program_free(struct xfp_program *program)
{
	for (size_t i = 0; i < program->sets; i++)
		free(program->set[i].range);
	free(program->set);
	free(program->code);
	free(program->in_set);
	free(program->first);
	free(program->kind);
}

/* ---- kinds of characters -------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Start a run at each boundary of a range of any set. */
static bool cut_runs(struct xfp_program *program)
{
	size_t bounds = 1, count = 0;

	for (size_t i = 0; i < program->sets; i++)
		bounds += 2 * program->set[i].count;
	program->first = calloc(bounds, sizeof *program->first);
	program->kind = calloc(bounds, 1);
	if (!program->first || !program->kind)
		return false;
	for (size_t i = 0, at = 1; i < program->sets; i++)
		for (size_t k = 0; k < program->set[i].count; k++) {
			program->first[at++] = program->set[i].range[k].first;
			program->first[at++] = program->set[i].range[k].last + 1;
		}
	qsort(program->first, bounds, sizeof *program->first, by_number);
	for (size_t i = 1; i < bounds; i++)
		if (program->first[i] != program->first[count])
			program->first[++count] = program->first[i];
	program->runs = count + 1;
	return true;
}

static size_t run_of(const struct xfp_program *program, uint32_t character)
{
	size_t low = 0, high = program->runs;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (program->first[middle] <= character)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Split each kind into its characters inside and outside of a set. */
static bool divide(struct xfp_program *program, const struct xfp_characters *set, unsigned *kinds)
{
	unsigned others[XFP_KINDS] = { 0 }, before = *kinds;
	bool outside[XFP_KINDS] = { false };
	size_t at = 0;

	for (size_t i = 0; i < program->runs; i++) {
		while (at < set->count && set->range[at].last < program->first[i])
			at++;
		if (at == set->count || set->range[at].first > program->first[i])
			outside[program->kind[i]] = true;
	}
	for (size_t i = 0; i < set->count; i++)
		for (size_t r = run_of(program, set->range[i].first);
		     r < program->runs && program->first[r] <= set->range[i].last; r++) {
			uint8_t *kind = &program->kind[r];

			if (!outside[*kind] || *kind >= before)
				continue;
			if (!others[*kind]) {
				if (*kinds == XFP_KINDS)
					return false;
				others[*kind] = (*kinds)++;
			}
			*kind = (uint8_t)others[*kind];
		}
	return true;
}

const char *xfp_program_classify(struct xfp_program *program)
{
	struct xfp_characters newline = { 0 };
	unsigned kinds = 1;
	int number;

	if (!xfp_characters_add(&newline, '\n', '\n') || (number = xfp_program_add_set(program, &newline)) == -1)
		return "";
	program->newline = (uint16_t)number;
	program->in_set = number < 0 ? NULL : calloc(program->sets, sizeof *program->in_set);
	if (number >= 0 && (!program->in_set || !cut_runs(program)))
		return "";
	for (size_t i = 0; number >= 0 && i < program->sets; i++)
		if (!divide(program, &program->set[i], &kinds))
			number = -2;
	if (number < 0)
		return "more sets of characters than an expression may have";
	for (size_t i = 0; i < program->sets; i++)
		for (size_t k = 0; k < program->set[i].count; k++)
			for (size_t r = run_of(program, program->set[i].range[k].first);
			     r < program->runs && program->first[r] <= program->set[i].range[k].last; r++)
				program->in_set[i][program->kind[r]] = true;
	for (unsigned c = 0; c < 128; c++)
		program->ascii[c] = program->kind[run_of(program, c)];
	return NULL;
}

bool xfp_program_kinds(const struct xfp_program *program, const char *text, size_t size, struct xfp_kinds *kinds)
{
	uint32_t low = 1, high = 0, character; /* the characters of the latest run */
	uint8_t kind = 0;
	size_t count = 0;

	if (!(kinds->kind = malloc(size + 1)))
		return false;
	for (size_t at = 0; at < size;) {
		if (!(text[at] & 0x80)) {
			kinds->kind[count++] = program->ascii[(unsigned char)text[at++]];
			continue;
		}
		at += xfp_utf8_decode(text + at, &character);
		if (character < low || character > high) {
			size_t run = run_of(program, character);

			low = program->first[run];
			high = run + 1 < program->runs ? program->first[run + 1] - 1 : XFP_LAST_CHARACTER;
			kind = program->kind[run];
		}
		kinds->kind[count++] = kind;
	}
	kinds->count = count;
	return true;
}
