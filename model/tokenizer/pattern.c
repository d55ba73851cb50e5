/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/pattern.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/printable.h"
#include "model/tokenizer/program.h"
#include "model/tokenizer/unicode/unicode.h"

struct xfp_pattern {
	char *string; /* NULL: a regular expression */
	size_t size;
	char *place; /* file and part, for messages */
	const struct xfp_tokenizer_watch *watch;
	struct xfp_program program;
};

struct xfp_pattern *xfp_pattern_compile(struct xfp_part_reader *r, const char *where, const char *expression)
{
	struct xfp_pattern *p = r->status ? NULL : calloc(1, sizeof *p);
	size_t size = strlen(r->file) + strlen(where) + 3;
	const char *problem = "";

	if (r->status)
		return NULL;
	if (p && (p->place = malloc(size))) {
		snprintf(p->place, size, "%s: %s", r->file, where);
		p->watch = r->watch;
		if (!(problem = xfp_program_read(&p->program, expression, &r->classes)))
			problem = xfp_program_classify(&p->program);
	}
	if (!problem)
		return p;
	if (!*problem)
		r->status = xfp_no_memory_for(r->err, r->file);
	else
		xfp_part_refuse(r, where, "the regular expression has %s, which this version does not support: %s",
				problem, xfp_printable(expression).text);
	xfp_pattern_free(p);
	return NULL;
}

struct xfp_pattern *xfp_pattern_open(struct xfp_part_reader *r, const char *where, const json_t *value)
{
	static const char *const kinds[] = { "String", "Regex", NULL };
	struct xfp_pattern *p;
	const char *string;

	xfp_part_only(r, where, value, kinds);
	if (!r->status && json_object_size(value) != 1)
		xfp_part_refuse(r, where, "the pattern is neither a String nor a Regex");
	if (r->status)
		return NULL;
	if (json_object_get(value, "Regex"))
		return xfp_pattern_compile(r, where, xfp_part_text(r, where, value, "Regex", NULL));
	string = xfp_part_text(r, where, value, "String", NULL);
	if (!*string)
		xfp_part_refuse(r, where, "the pattern is empty");
	if (r->status)
		return NULL;
	if (!(p = calloc(1, sizeof *p)) || !(p->string = strdup(string))) {
		free(p);
		r->status = xfp_no_memory_for(r->err, r->file);
		return NULL;
	}
	p->size = strlen(string);
	return p;
}

void xfp_pattern_free(struct xfp_pattern *p)
{
	if (!p)
		return;
	free(p->string);
	free(p->place);
	xfp_program_free(&p->program);
	free(p);
}

const char *xfp_pattern_string(const struct xfp_pattern *pattern)
{
	return pattern->string;
}

static bool add(struct xfp_spans *spans, size_t start, size_t end, bool match)
{
	if (!xfp_grow(&spans->span, sizeof *spans->span, spans->count, 1, &spans->capacity))
		return false;
	spans->span[spans->count++] = (struct xfp_span){ start, end, match };
	return true;
}

static enum xfp_status find_string(const struct xfp_pattern *p, const char *text, size_t size, struct xfp_spans *spans,
				   struct xfp_error *err)
{
	size_t at = 0;

	for (const char *found; (found = memmem(text + at, size - at, p->string, p->size));) {
		size_t start = (size_t)(found - text);

		if ((start > at && !add(spans, at, start, false)) || !add(spans, start, start + p->size, true))
			return xfp_no_memory(err);
		at = start + p->size;
	}
	return at == size || add(spans, at, size, false) ? XFP_OK : xfp_no_memory(err);
}

static enum xfp_status failure(const struct xfp_pattern *p, enum xfp_search search, struct xfp_error *err)
{
	if (search == XFP_TOO_MANY_STEPS)
		return xfp_fail(err, XFP_BAD_INPUT,
				"%s: the regular expression needs too many steps for this text; "
				"use a tokenizer.json without nested repetitions",
				p->place);
	return search == XFP_STOPPED ? xfp_fail(err, XFP_FAILED, "interrupted") : xfp_no_memory(err);
}

/* A position in a text, in characters and in bytes. */
struct position {
	size_t character, byte;
};

static size_t byte_of(struct position *p, const char *text, size_t character)
{
	uint32_t ignored;

	for (; p->character < character; p->character++)
		p->byte += text[p->byte] & 0x80 ? xfp_utf8_decode(text + p->byte, &ignored) : 1;
	return p->byte;
}

/* An empty match directly after another match is ignored. */
enum xfp_status xfp_pattern_find(const struct xfp_pattern *p, const char *text, size_t size,
				 struct xfp_pattern_budget *budget, struct xfp_spans *spans, struct xfp_error *err)
{
	struct xfp_matching m = { .program = &p->program, .watch = p->watch, .budget = *budget };
	size_t at = 0, last = SIZE_MAX, start, end;
	enum xfp_search search = XFP_FOUND;
	struct position position = { 0 };
	bool made = true;

	spans->count = 0;
	if (p->string)
		return find_string(p, text, size, spans, err);
	if (!xfp_program_kinds(&p->program, text, size, &m.kinds))
		return xfp_no_memory(err);
	while (made && at <= m.kinds.count && (search = xfp_match(&m, at, &start, &end)) == XFP_FOUND) {
		size_t done = position.byte, first;

		if (start == end && end == last) {
			at = end + 1;
			continue;
		}
		first = byte_of(&position, text, start);
		made = (first == done || add(spans, done, first, false)) &&
		       add(spans, first, byte_of(&position, text, end), true);
		at = last = end;
	}
	if (made && position.byte < size)
		made = add(spans, position.byte, size, false);
	*budget = m.budget;
	xfp_matching_free(&m);
	if (search > XFP_NOT_FOUND)
		return failure(p, search, err);
	return made ? XFP_OK : xfp_no_memory(err);
}
