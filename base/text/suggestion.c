/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/suggestion.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LONGEST 63

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t xfp_distance(const char *a, const char *b)
{
	/* Three rows of the table over all prefixes: the current one and the two before it. */
	size_t rows[3][LONGEST + 1], across = strlen(a), down = strlen(b);
	size_t *now = rows[0], *before = rows[1], *earlier = rows[2], *spare;

	if (across > LONGEST || down > LONGEST)
		return strcmp(a, b) ? SIZE_MAX : 0;
	for (size_t x = 0; x <= across; x++)
		now[x] = x;
	for (size_t y = 1; y <= down; y++) {
		spare = earlier;
		earlier = before;
		before = now;
		now = spare;
		now[0] = y;
		for (size_t x = 1; x <= across; x++) {
			now[x] = min(before[x - 1] + (a[x - 1] != b[y - 1]), min(before[x], now[x - 1]) + 1);
			if (x > 1 && y > 1 && a[x - 1] == b[y - 2] && a[x - 2] == b[y - 1])
				now[x] = min(now[x], earlier[x - 2] + 1);
		}
	}
	return now[across];
}

const char *xfp_nearest_name(const char *word, const char *const *names, size_t count, size_t max)
{
	const char *nearest = NULL;
	bool begins = false;

	for (size_t i = 0; i < count && (!nearest || strcmp(word, nearest)); i++) {
		size_t distance = xfp_distance(word, names[i]);
		bool begun = !strncmp(word, names[i], strlen(names[i]));

		/* Among equally near names, prefer one that is a prefix of the word. */
		if (distance > max || (nearest && distance == max && (begins || !begun)))
			continue;
		nearest = names[i];
		begins = begun;
		max = distance;
	}
	return nearest;
}

size_t xfp_max_distance(const char *word)
{
	size_t length = strlen(word);

	return length < 4 ? 1 : length < 9 ? 2 : length / 3;
}

/* ---- several ----------------------------------------------------------------------------------- */

#define NEAREST 3

/* Convert to lower case; false if the word is too long for a distance. */
static bool lower(const char *word, char text[LONGEST + 1])
{
	size_t length = strlen(word);

	for (size_t i = 0; length <= LONGEST && i <= length; i++)
		text[i] = (char)tolower((unsigned char)word[i]);
	return length <= LONGEST;
}

/* Whether the letters of `word` are a subsequence of `name` that starts with its first letter. */
static bool abbreviates(const char *word, const char *name)
{
	if (*word != *name)
		return false;
	for (; *name && *word; name++)
		word += *word == *name;
	return !*word;
}

/* The rank of a suggestion: smaller is nearer, SIZE_MAX is not near. Misspellings rank before abbreviations. */
static size_t suggestion_rank(const char *given, const char *of)
{
	char word[LONGEST + 1], name[LONGEST + 1];
	size_t distance;

	if (!lower(given, word) || !lower(of, name))
		return SIZE_MAX;
	distance = xfp_distance(word, name);
	if (distance <= xfp_max_distance(word))
		return distance;
	if (strlen(word) < 3)
		return SIZE_MAX;
	if (!strncmp(name, word, strlen(word)))
		return LONGEST;
	if (strstr(name, word))
		return 2 * LONGEST;
	return abbreviates(word, name) ? 3 * LONGEST : SIZE_MAX;
}

const char *xfp_did_you_mean(const char *before, const char *word, const char *const *names, size_t count,
			     char text[XFP_DID_YOU_MEAN])
{
	const char *nearest[NEAREST] = { NULL };
	size_t far[NEAREST], found = 0, used = 0, at;

	for (size_t i = 0; i < count; i++) {
		size_t distance = suggestion_rank(word, names[i]);

		for (at = found; at && far[at - 1] > distance;)
			at--;
		if (distance == SIZE_MAX || at == NEAREST)
			continue;
		found += found < NEAREST;
		for (size_t j = found - 1; j > at; j--) {
			nearest[j] = nearest[j - 1];
			far[j] = far[j - 1];
		}
		nearest[at] = names[i];
		far[at] = distance;
	}
	*text = '\0';
	/* If a name is one misspelling away, abbreviations are not suggested. */
	while (found > 1 && far[0] < LONGEST && far[found - 1] >= LONGEST)
		found--;
	for (size_t i = 0; i < found && used < XFP_DID_YOU_MEAN; i++)
		used += (size_t)snprintf(text + used, XFP_DID_YOU_MEAN - used, "%s%s%s%s",
					 !i              ? "; did you mean "
					 : i + 1 < found ? ", "
							 : " or ",
					 before, nearest[i], i + 1 == found ? "?" : "");
	return text;
}
