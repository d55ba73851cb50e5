/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/glob.h"

#include <stddef.h>
#include <string.h>

/* ---- one character against a set --------------------------------------------------------------- */

static bool between(unsigned char c, char low, char high)
{
	return c >= (unsigned char)low && c <= (unsigned char)high;
}

/* The character classes of the C locale. */
static bool in_class(unsigned char c, const char *name, size_t length)
{
	bool lower = between(c, 'a', 'z'), upper = between(c, 'A', 'Z'), digit = between(c, '0', '9');
	bool blank = c == ' ' || c == '\t', graph = between(c, '!', '~');
	const struct {
		const char *name;
		bool in;
	} classes[] = {
		{ "alpha", lower || upper },
		{ "digit", digit },
		{ "alnum", lower || upper || digit },
		{ "lower", lower },
		{ "upper", upper },
		{ "blank", blank },
		{ "space", blank || between(c, '\n', '\r') },
		{ "cntrl", c < ' ' || c == 0x7f },
		{ "graph", graph },
		{ "print", graph || c == ' ' },
		{ "punct", graph && !lower && !upper && !digit },
		{ "xdigit", digit || between(c, 'a', 'f') || between(c, 'A', 'F') },
	};

	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (strlen(classes[i].name) == length && !memcmp(classes[i].name, name, length))
			return classes[i].in;
	return false;
}

/* Parse one member of a set, or one end of a range, at *at, and advance *at past it; false: the pattern ends. */
static bool parse_member(const char **at, unsigned char *member)
{
	const char *p = *at;

	if (p[0] == '[' && (p[1] == '.' || p[1] == '=') && p[2] && p[3] == p[1] && p[4] == ']') {
		*member = (unsigned char)p[2];
		*at = p + 5;
		return true;
	}
	p += *p == '\\';
	*member = (unsigned char)*p;
	*at = p + 1;
	return *p;
}

/* The end of the class name "[:...:]" at p; NULL: not a class. */
static const char *class_end(const char *p)
{
	const char *end;

	if (p[0] != '[' || p[1] != ':')
		return NULL;
	end = p + 2 + strspn(p + 2, "abcdefghijklmnopqrstuvwxyz");
	return end > p + 2 && end[0] == ':' && end[1] == ']' ? end : NULL;
}

/* Match `c` with the set at `set`, which points past its [. Returns the rest of the pattern; NULL: the set is not
 * closed. */
static const char *match_set(const char *set, unsigned char c, bool *in)
{
	bool others = *set == '!' || *set == '^', found = false;
	const char *first = set + others, *p = first;

	/* A ] in first position is a member. */
	while (p == first || *p != ']') {
		const char *end = class_end(p);
		unsigned char low, high;

		if (end) {
			found |= in_class(c, p + 2, (size_t)(end - p - 2));
			p = end + 2;
			continue;
		}
		if (!parse_member(&p, &low))
			return NULL;
		high = low;
		if (p[0] == '-' && p[1] && p[1] != ']') {
			p++;
			if (!parse_member(&p, &high))
				return NULL;
		}
		found |= c >= low && c <= high;
	}
	*in = found != others;
	return p + 1;
}

/* ---- names ------------------------------------------------------------------------------------- */

/* Whether the first element of *pattern, which is not a star, matches the character; if so, *pattern is advanced past
 * it. */
static bool match_one(const char **pattern, unsigned char c)
{
	const char *p = *pattern, *behind;
	bool in;

	if (*p == '?') {
		*pattern = p + 1;
		return true;
	}
	if (*p == '[' && (behind = match_set(p + 1, c, &in))) {
		*pattern = behind;
		return in;
	}
	if (*p == '\\' && !*++p)
		return false;
	*pattern = p + 1;
	return (unsigned char)*p == c;
}

bool xfp_glob_matches(const char *pattern, const char *name)
{
	/* The pattern after the last star, and the text not yet matched by it: backtracking to an earlier star is never
	 * needed. */
	const char *star = NULL, *left = NULL;

	for (;;) {
		if (*pattern == '*') {
			star = ++pattern;
			left = name;
		} else if (!*name) {
			return !*pattern;
		} else if (*pattern && match_one(&pattern, (unsigned char)*name)) {
			name++;
		} else if (star) {
			pattern = star;
			name = ++left;
		} else {
			return false;
		}
	}
}
