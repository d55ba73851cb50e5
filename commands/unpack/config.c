/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - members are cut out of the text without building a tree, so that a diff with the published config.json
 * shows only their removal.
 */
#include "commands/unpack/config.h"

#include <string.h>

/* The input, and the output so far. */
struct config_text {
	const char *at, *end;
	char *to;
};

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end && strchr(" \t\r\n", *at) && *at)
		at++;
	return at;
}

/* Skip a string. Returns the position after it. */
static const char *skip_string(const char *at, const char *end)
{
	if (at >= end || *at != '"')
		return NULL;
	for (at++; at < end; at++) {
		if (*at == '"')
			return at + 1;
		if (*at == '\\')
			at++;
	}
	return NULL;
}

/* Skip a value. Returns the position after it. Only brackets and strings are parsed. */
static const char *skip_value(const char *at, const char *end)
{
	size_t depth = 0;

	while (at < end) {
		if (*at == '"') {
			if (!(at = skip_string(at, end)))
				return NULL;
		} else if (*at == '{' || *at == '[') {
			depth++;
			at++;
		} else if (*at == '}' || *at == ']') {
			if (!depth--)
				return NULL;
			at++;
		} else if (depth) {
			at++;
			continue;
		} else {
			while (at < end && !strchr(",}] \t\r\n", *at))
				at++;
			return at;
		}
		if (!depth)
			return at;
	}
	return NULL;
}

static bool is_key(const char *at, const char *behind, const char *key)
{
	size_t length = strlen(key);

	return (size_t)(behind - at) == length + 2 && !memcmp(at + 1, key, length);
}

static void keep(struct config_text *t, const char *from, const char *behind)
{
	memcpy(t->to, from, (size_t)(behind - from));
	t->to += behind - from;
}

static bool object(struct config_text *t, bool top);

/* Copy or drop a member, with the bracket or comma before it. */
static bool member(struct config_text *t, bool top, bool *first)
{
	const char *begin = t->at, *key = skip_blanks(begin, t->end), *behind = skip_string(key, t->end), *value;

	if (!behind || (value = skip_blanks(behind, t->end)) >= t->end || *value != ':')
		return false;
	value = skip_blanks(value + 1, t->end);
	if (is_key(key, behind, "quantization_config") || is_key(key, behind, "compression_config"))
		return (t->at = skip_value(value, t->end)) != NULL;
	if (!*first)
		*t->to++ = ',';
	*first = false;
	keep(t, begin, value);
	if (top && is_key(key, behind, "text_config") && value < t->end && *value == '{') {
		t->at = value;
		return object(t, false);
	}
	if (!(t->at = skip_value(value, t->end)))
		return false;
	keep(t, value, t->at);
	return true;
}

/* Copy an object, without the dropped members. */
static bool object(struct config_text *t, bool top)
{
	bool first = true, kept = false;

	if (t->at >= t->end || *t->at != '{')
		return false;
	*t->to++ = *t->at++;
	for (bool begun = false;; begun = true) {
		const char *blanks = t->at, *next = skip_blanks(blanks, t->end), *was;

		if (next >= t->end)
			return false;
		if (*next == '}') {
			keep(t, blanks, next + 1);
			t->at = next + 1;
			return true;
		}
		if (begun && *next != ',')
			return false;
		if (kept)
			keep(t, blanks, next);
		t->at = begun ? next + 1 : blanks;
		was = t->to;
		if (!member(t, top, &first))
			return false;
		kept = t->to != was;
	}
}

bool xfp_config_unpack(const char *text, size_t size, char *out, size_t *out_size)
{
	struct config_text t = { .at = text, .end = text + size, .to = out };

	keep(&t, text, skip_blanks(text, t.end));
	t.at = skip_blanks(text, t.end);
	if (!object(&t, true))
		return false;
	keep(&t, t.at, t.end);
	*out_size = (size_t)(t.to - out);
	return *out_size < size;
}
