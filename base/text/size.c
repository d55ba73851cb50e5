/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/size.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

bool xfp_size_parse(const char *text, uint64_t *size)
{
	static const char letters[] = "KMGT";
	const char *letter;
	uint64_t unit = 1, count;
	char *end;

	errno = 0;
	count = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9')
		return false;
	letter = *end ? strchr(letters, toupper((unsigned char)*end)) : NULL;
	if (letter) {
		bool binary = !strcmp(++end, "iB");

		if (*end && !binary && strcmp(end, "B"))
			return false;
		for (const char *l = letters; l <= letter; l++)
			unit *= binary ? 1024 : 1000;
	}
	return count && (letter || !*end) && xfp_mul(count, unit, size);
}

const char *xfp_human(double value, const char *unit, char text[32])
{
	static const char prefixes[] = " kMGTPE";
	int power = 0;

	while (value >= 999.5 && prefixes[power + 1]) {
		value /= 1000;
		power++;
	}
	if (!power)
		snprintf(text, 32, "%.0f%s%s", value, *unit ? " " : "", unit);
	else
		snprintf(text, 32, "%.*f %c%s",
			 value < 9.995   ? 2
			 : value < 99.95 ? 1
					 : 0,
			 value, prefixes[power], unit);
	return text;
}
