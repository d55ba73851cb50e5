/* SPDX-License-Identifier: Apache-2.0 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "model/tokenizer/pattern.h"

#include <pcre2.h>
#include <stdlib.h>

#include "base/printable.h"
#include "model/tokenizer/unicode.h"

/* What an expression may take: steps at one place of a text, KiB of memory. */
#define MOST_STEPS 500000000
#define MOST_MEMORY (256 * 1024)

struct xfp_pattern {
	char *string; /* NULL: an expression */
	size_t size;
	pcre2_code *code;
	pcre2_match_context *limits;
};

static bool limit(struct xfp_pattern *p)
{
	p->limits = pcre2_match_context_create(NULL);
	return p->limits && !pcre2_set_match_limit(p->limits, MOST_STEPS) &&
	       !pcre2_set_heap_limit(p->limits, MOST_MEMORY);
}

struct xfp_pattern *xfp_pattern_of(struct xfp_part_reader *r, const char *where, const char *expression)
{
	struct xfp_pattern *p = r->status ? NULL : calloc(1, sizeof *p);
	pcre2_compile_context *context = pcre2_compile_context_create(NULL);
	struct xfp_grown text = { 0 };
	const char *problem = NULL;
	PCRE2_SIZE at = 0;
	int error = 0;

	if (r->status)
		goto done;
	if (!p || !context || !limit(p)) {
		r->status = xfp_no_memory_for(r->err, r->file);
		goto done;
	}
	if ((problem = xfp_pattern_translate(expression, &text))) {
		if (!*problem)
			r->status = xfp_no_memory_for(r->err, r->file);
		else
			xfp_part_refuse(r, where, "the expression has %s, which this version does not know: %s",
					problem, xfp_printable(expression).text);
		goto done;
	}
	pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	p->code = pcre2_compile((PCRE2_SPTR)(text.bytes ? text.bytes : ""), text.size,
				PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &at, context);
	if (!p->code) {
		char said[128] = "";

		pcre2_get_error_message(error, (PCRE2_UCHAR *)said, sizeof said);
		xfp_part_refuse(r, where, "the expression is none (%s): %s", said, xfp_printable(expression).text);
	}
done:
	pcre2_compile_context_free(context);
	free(text.bytes);
	if (!r->status)
		return p;
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
		return xfp_pattern_of(r, where, xfp_part_text(r, where, value, "Regex", NULL));
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
	pcre2_code_free(p->code);
	pcre2_match_context_free(p->limits);
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

static enum xfp_status told(int result, struct xfp_error *err)
{
	char said[128] = "";

	if (result == PCRE2_ERROR_NOMEMORY)
		return xfp_no_memory(err);
	pcre2_get_error_message(result, (PCRE2_UCHAR *)said, sizeof said);
	return xfp_fail(err, XFP_FAILED, "the tokenizer's expression and this text take too long: %s", said);
}

/* A match of nothing right behind another does not count. */
enum xfp_status xfp_pattern_find(const struct xfp_pattern *p, const char *text, size_t size, struct xfp_spans *spans,
				 struct xfp_error *err)
{
	size_t at = 0, done = 0, last = SIZE_MAX;
	pcre2_match_data *found;
	const PCRE2_SIZE *place;
	enum xfp_status status = XFP_OK;

	spans->count = 0;
	if (p->string)
		return find_string(p, text, size, spans, err);
	if (!(found = pcre2_match_data_create(1, NULL)))
		return xfp_no_memory(err);
	place = pcre2_get_ovector_pointer(found);
	while (!status && at <= size) {
		int result = pcre2_match(p->code, (PCRE2_SPTR)text, size, at, PCRE2_NO_UTF_CHECK, found, p->limits);
		uint32_t character;

		if (result == PCRE2_ERROR_NOMATCH)
			break;
		if (result < 0) {
			status = told(result, err);
		} else if (place[0] == place[1] && place[1] == last) {
			if (at == size)
				break;
			at += xfp_utf8_take(text + at, &character);
		} else {
			if ((place[0] > done && !add(spans, done, place[0], false)) ||
			    !add(spans, place[0], place[1], true))
				status = xfp_no_memory(err);
			at = done = last = place[1];
		}
	}
	pcre2_match_data_free(found);
	if (!status && done < size && !add(spans, done, size, false))
		status = xfp_no_memory(err);
	return status;
}
