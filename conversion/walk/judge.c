/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/walk/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define GRAM 4
#define BLANKS " \t\r\n"

/* Continuations are short: comparing all pairs is cheap. */
void xfp_walk_count_repeats(const uint32_t *ids, size_t count, uint64_t *repeated, uint64_t *total)
{
	for (size_t i = 0; i + GRAM <= count; i++) {
		size_t before = 0;

		while (before < i && memcmp(ids + before, ids + i, GRAM * sizeof *ids) != 0)
			before++;
		*repeated += before < i;
		++*total;
	}
}

bool xfp_walk_is_garbage(const struct xfp_walk_criteria *criteria, const struct xfp_walk_probe *probe,
			 double source_repeats)
{
	return probe->repeats - source_repeats > criteria->repeats || !(probe->agreement >= criteria->agreement);
}

bool xfp_walk_criteria_parse(const char *text, struct xfp_walk_criteria *criteria)
{
	const char *comma = strchr(text, ',');
	uint32_t repeats, agreement;
	char first[24];

	if (!comma || (size_t)(comma - text) >= sizeof first)
		return false;
	snprintf(first, sizeof first, "%.*s", (int)(comma - text), text);
	if (!xfp_fraction_parse(first, &repeats) || !xfp_fraction_parse(comma + 1, &agreement))
		return false;
	*criteria = (struct xfp_walk_criteria){ (double)repeats / XFP_NANO, (double)agreement / XFP_NANO };
	return true;
}

/* ---- prompts ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c && strchr(BLANKS, c);
}

/* The first place from `at` on where a word begins, not beyond `end`. */
static size_t word_start(const char *text, size_t at, size_t end)
{
	size_t i = at;

	while (i > 0 && i < end && !is_blank(text[i - 1]))
		i++;
	while (i < end && is_blank(text[i]))
		i++;
	for (; i == end && at < end && xfp_utf8_continues(text[at]); at++)
		;
	return i < end ? i : at;
}

/* The last place up to `end` where a word ends, after `start`. */
static size_t word_end(const char *text, size_t start, size_t end, size_t size)
{
	size_t i = end;

	while (i > start && i < size && !is_blank(text[i]))
		i--;
	while (i > start && is_blank(text[i - 1]))
		i--;
	if (i > start)
		return i;
	while (end > start && end < size && xfp_utf8_continues(text[end]))
		end--;
	return end;
}

unsigned xfp_walk_cut_prompts(const char *text, size_t size, struct xfp_walk_prompt prompts[XFP_WALK_PROMPTS])
{
	const size_t part = size / XFP_WALK_PROMPTS;
	const size_t length = part < XFP_WALK_PROMPT_BYTES ? part : XFP_WALK_PROMPT_BYTES;
	unsigned count = 0;

	for (size_t i = 0; i < XFP_WALK_PROMPTS; i++) {
		size_t start = word_start(text, i * part, i * part + part / 2), end;

		end = word_end(text, start, start + length < size ? start + length : size, size);
		if (end > start)
			prompts[count++] = (struct xfp_walk_prompt){ text + start, end - start };
	}
	return count;
}

/* ---- scores ------------------------------------------------------------------------------------ */

bool xfp_walk_last_number(const char *output, double *number)
{
	size_t end = strlen(output), start;
	char word[64], *rest;
	double value;

	while (end && is_blank(output[end - 1]))
		end--;
	for (start = end; start && !is_blank(output[start - 1]);)
		start--;
	if (start == end || end - start >= sizeof word)
		return false;
	snprintf(word, sizeof word, "%.*s", (int)(end - start), output + start);
	value = strtod(word, &rest);
	if (*rest || !isfinite(value))
		return false;
	*number = value;
	return true;
}
