/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/misspelt.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LONGEST 63

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t xfp_distance(const char *a, const char *b)
{
	/* Three rows of the table over all prefixes: this one, the one before, and the one before that. */
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
			now[x] = least(before[x - 1] + (a[x - 1] != b[y - 1]), least(before[x], now[x - 1]) + 1);
			if (x > 1 && y > 1 && a[x - 1] == b[y - 2] && a[x - 2] == b[y - 1])
				now[x] = least(now[x], earlier[x - 2] + 1);
		}
	}
	return now[across];
}

const char *xfp_meant(const char *word, const char *const *names, size_t count, size_t most)
{
	const char *nearest = NULL;
	bool begins = false;

	for (size_t i = 0; i < count && (!nearest || strcmp(word, nearest)); i++) {
		size_t distance = xfp_distance(word, names[i]);
		bool begun = !strncmp(word, names[i], strlen(names[i]));

		/* Of equally near ones, that which the word begins with. */
		if (distance > most || (nearest && distance == most && (begins || !begun)))
			continue;
		nearest = names[i];
		begins = begun;
		most = distance;
	}
	return nearest;
}

size_t xfp_slip(const char *word)
{
	size_t length = strlen(word);

	return length < 4 ? 1 : length < 9 ? 2 : length / 3;
}
