/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An expression of Oniguruma as one of PCRE2.
 */
#include "model/tokenizer/pattern.h"

#include <stdlib.h>
#include <string.h>

#define DEEPEST 100
#define SPACE "\\p{White_Space}"
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}"

struct translation {
	const char *at;
	struct xfp_grown *out;
	size_t open[DEEPEST]; /* where the groups that are open begin in what was written */
	unsigned depth;
	size_t atom; /* where the last thing that can be repeated begins; SIZE_MAX: there is none */
	const char *problem;
};

static void put(struct translation *t, const char *text, size_t size)
{
	if (!t->problem && !xfp_grown_add(t->out, text, size))
		t->problem = "";
}

static void puts_(struct translation *t, const char *text)
{
	put(t, text, strlen(text));
}

/* Behind \x or \u: as \x{...}. */
static void hexadecimal(struct translation *t, size_t most)
{
	bool braces = most == 2 && *t->at == '{';
	size_t digits;

	t->at += braces;
	digits = strspn(t->at, "0123456789abcdefABCDEF");
	if (braces ? !digits || digits > 8 || t->at[digits] != '}' : digits < most) {
		t->problem = "\\x or \\u without digits";
		return;
	}
	if (!braces)
		digits = most;
	puts_(t, "\\x{");
	put(t, t->at, digits);
	puts_(t, "}");
	t->at += digits + braces;
}

/* \p{...}, \p{^...}: general categories and scripts have the same names in both. */
static void property(struct translation *t)
{
	const char *end = t->at[1] == '{' ? strchr(t->at, '}') : NULL;

	if (!end) {
		t->problem = "\\p without braces";
		return;
	}
	puts_(t, "\\");
	put(t, t->at, (size_t)(end + 1 - t->at));
	t->at = end + 1;
}

/* What follows a backslash. */
static void escape(struct translation *t, bool set)
{
	char c = *t->at;

	if (c == 'p' || c == 'P') {
		property(t);
		return;
	}
	t->at += c != '\0';
	if (c == 's')
		puts_(t, SPACE);
	else if (c == 'S')
		puts_(t, "\\P{White_Space}");
	else if (c == 'd')
		puts_(t, "\\p{Nd}");
	else if (c == 'D')
		puts_(t, "\\P{Nd}");
	else if (c == 'w')
		puts_(t, set ? WORD : "[" WORD "]");
	else if (c == 'W' && !set)
		puts_(t, "[^" WORD "]");
	else if (c == 'v')
		puts_(t, "\\x{b}");
	else if (c == 'x')
		hexadecimal(t, 2);
	else if (c == 'u')
		hexadecimal(t, 4);
	else if (c && strchr("rnftae", c))
		put(t, t->at - 2, 2);
	else if (!set && (c == 'A' || c == 'z'))
		put(t, t->at - 2, 2);
	else if (c && !(c & 0x80) && strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ", c))
		put(t, t->at - 2, 2);
	else
		t->problem =
			set ? "an escape in a set of characters" : "an escape other than for characters and classes";
}

static void set_of_characters(struct translation *t)
{
	puts_(t, "[");
	t->at++;
	if (*t->at == '^') {
		puts_(t, "^");
		t->at++;
	}
	if (*t->at == ']') {
		t->problem = "an empty set of characters";
		return;
	}
	while (!t->problem && *t->at != ']') {
		if (!*t->at)
			t->problem = "a set of characters without an end";
		else if (*t->at == '[')
			t->problem = "a set of characters within another";
		else if (t->at[0] == '&' && t->at[1] == '&')
			t->problem = "an intersection of sets of characters";
		else if (*t->at == '\\') {
			t->at++;
			escape(t, true);
		} else
			put(t, t->at++, 1);
	}
	puts_(t, "]");
	t->at++;
}

static void group(struct translation *t)
{
	static const char *const known[] = { "(?:", "(?i:", "(?-i:", "(?=", "(?!", "(?<=", "(?<!", "(?>" };
	const char *found = t->at[1] == '?' ? NULL : "(";

	for (size_t i = 0; !found && i < sizeof known / sizeof *known; i++)
		if (!strncmp(t->at, known[i], strlen(known[i])))
			found = known[i];
	if (!found || t->depth == DEEPEST) {
		t->problem =
			found ? "groups in each other" : "a group of another kind than (?: (?i: (?= (?! (?<= (?<! (?>";
		return;
	}
	t->open[t->depth++] = t->out->size;
	puts_(t, found);
	t->at += strlen(found);
	t->atom = SIZE_MAX;
}

/* Put the thing that is repeated, so far, into a group. */
static void enclose(struct translation *t)
{
	size_t length = t->out->size - t->atom;

	puts_(t, "(?:)");
	if (t->problem)
		return;
	memmove(t->out->bytes + t->atom + 3, t->out->bytes + t->atom, length);
	memcpy(t->out->bytes + t->atom, "(?:", 3);
	t->out->bytes[t->out->size - 1] = ')';
}

/* Oniguruma has no possessive {n,m}: a + behind it repeats that. {,m} begins at none. */
static void repetition(struct translation *t)
{
	size_t first, second, length;

	if (t->atom == SIZE_MAX) {
		t->problem = "a repetition of nothing";
		return;
	}
	if (*t->at != '{') {
		put(t, t->at++, 1);
		if (*t->at == '+' || *t->at == '?')
			put(t, t->at++, 1);
		t->atom = SIZE_MAX;
		return;
	}
	first = strspn(t->at + 1, "0123456789");
	length = 1 + first;
	second = t->at[length] == ',' ? strspn(t->at + length + 1, "0123456789") : 0;
	if (t->at[length] == ',')
		length += 1 + second;
	else if (t->at[length] == '}' && t->at[length + 1] == '?')
		t->problem = "{n}?";
	if (t->at[length] != '}' || (!first && !second))
		t->problem = "a { that begins no repetition";
	if (t->problem)
		return;
	puts_(t, first ? "{" : "{0");
	put(t, t->at + 1, length);
	t->at += length + 1;
	if (*t->at == '?')
		put(t, t->at++, 1);
	else if (*t->at == '+') {
		enclose(t);
		puts_(t, "+");
		t->at++;
	}
	t->atom = SIZE_MAX;
}

const char *xfp_pattern_translate(const char *expression, struct xfp_grown *out)
{
	struct translation t = { .at = expression, .out = out, .atom = SIZE_MAX };

	while (!t.problem && *t.at) {
		size_t begins = out->size;

		if (*t.at == '(') {
			group(&t);
		} else if (*t.at == ')') {
			if (!t.depth)
				return "a ) without a (";
			puts_(&t, ")");
			t.at++;
			t.atom = t.open[--t.depth];
		} else if (*t.at == '|' || *t.at == '^' || *t.at == '$') {
			put(&t, t.at++, 1);
			t.atom = SIZE_MAX;
		} else if (strchr("*+?{", *t.at)) {
			repetition(&t);
		} else {
			if (*t.at == '[') {
				set_of_characters(&t);
			} else if (*t.at == '\\') {
				t.at++;
				escape(&t, false);
			} else {
				/* All bytes of a character, as that is what is repeated. */
				size_t length = 1;

				while ((t.at[length] & 0xc0) == 0x80)
					length++;
				put(&t, t.at, length);
				t.at += length;
			}
			t.atom = begins;
		}
	}
	return t.problem ? t.problem : t.depth ? "a ( without a )" : NULL;
}
