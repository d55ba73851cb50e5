/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/size.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
	if (*end == ' ' && end[1 + strspn(end + 1, " ")])
		end += strspn(end, " ");
	letter = *end ? strchr(letters, toupper((unsigned char)*end)) : NULL;
	if (letter) {
		bool binary = !strcasecmp(++end, "iB");

		if (*end && !binary && strcasecmp(end, "B"))
			return false;
		for (const char *l = letters; l <= letter; l++)
			unit *= binary ? 1024 : 1000;
	}
	return count && (letter || !*end) && xfp_mul(count, unit, size);
}

bool xfp_size_is_bare(const char *text, uint64_t size)
{
	size_t length = strlen(text);

	return size < 1 << 20 && length && text[length - 1] >= '0' && text[length - 1] <= '9';
}

static const char *binary_text(uint64_t bytes, char text[32])
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	unsigned power = 0;

	while (value >= 1024 && power + 1 < sizeof units / sizeof *units) {
		value /= 1024;
		power++;
	}
	snprintf(text, 32, "%.4g %s", value, units[power]);
	return text;
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

bool xfp_size_is_binary(const char *given)
{
	size_t length = strlen(given);

	return length > 2 && !strcasecmp(given + length - 2, "iB");
}

const char *xfp_size_exact(uint64_t bytes, char text[32])
{
	static const char *const letters[] = { "kMGT", "KMGT" }, *const ends[] = { "B", "iB" };
	static const unsigned base[] = { 1000, 1024 };
	uint64_t rest[2] = { bytes, bytes };
	unsigned power[2] = { 0, 0 };
	int unit;

	for (int i = 0; i < 2; i++)
		for (; rest[i] && rest[i] % base[i] == 0 && power[i] < 4; power[i]++)
			rest[i] /= base[i];
	unit = rest[1] < rest[0];
	if (power[unit])
		snprintf(text, 32, "%" PRIu64 "%c%s", rest[unit], letters[unit][power[unit] - 1], ends[unit]);
	else
		snprintf(text, 32, "%" PRIu64, bytes);
	return text;
}

const char *xfp_size_text(uint64_t bytes, bool binary, char text[32])
{
	return binary ? binary_text(bytes, text) : xfp_human((double)bytes, "B", text);
}

const char *xfp_size_text_rounded_up(uint64_t bytes, bool binary, char text[32])
{
	uint64_t step = 4 * (binary ? 1 << 20 : 1000000);

	snprintf(text, 32, "%" PRIu64 " %s", (bytes / step + 1) * 4, binary ? "MiB" : "MB");
	return text;
}

double xfp_tick_step(double range)
{
	double power = pow(10, floor(log10(range / 6))), share = range / 6 / power;

	return power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
}
