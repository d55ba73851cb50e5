/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/normalizer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/printable.h"
#include "model/tokenizer/pattern.h"
#include "model/tokenizer/unicode/unicode.h"

enum normalizer_kind { FORM, PREPEND, REPLACE, CLEAN, SURROUND_CHINESE, DROP_ACCENTS, LOWERCASE };

struct xfp_normalizer {
	enum normalizer_kind kind;
	enum xfp_unicode_form form;
	char *content;
	struct xfp_pattern *pattern;
	struct xfp_normalizer *next;
};

static void append(struct xfp_part_reader *r, struct xfp_normalizer n, const char *content,
		   struct xfp_normalizer ***end)
{
	if (!r->status && (!(**end = malloc(sizeof n)) || (content && !(n.content = strdup(content)))))
		r->status = xfp_no_memory_for(r->err, r->file);
	if (!**end) {
		xfp_pattern_free(n.pattern);
		return;
	}
	***end = n;
	*end = &(**end)->next;
}

/* Append one normalizer per step. */
static void add_bert(struct xfp_part_reader *r, const char *where, const json_t *value, struct xfp_normalizer ***end)
{
	static const char *const names[] = { "type",          "clean_text", "handle_chinese_chars",
					     "strip_accents", "lowercase",  NULL };
	bool lowercase = xfp_part_bool(r, where, value, "lowercase", true);

	xfp_part_only(r, where, value, names);
	if (xfp_part_bool(r, where, value, "clean_text", true))
		append(r, (struct xfp_normalizer){ .kind = CLEAN }, NULL, end);
	if (xfp_part_bool(r, where, value, "handle_chinese_chars", true))
		append(r, (struct xfp_normalizer){ .kind = SURROUND_CHINESE }, NULL, end);
	if (xfp_part_bool(r, where, value, "strip_accents", lowercase)) {
		append(r, (struct xfp_normalizer){ .form = XFP_NFD }, NULL, end);
		append(r, (struct xfp_normalizer){ .kind = DROP_ACCENTS }, NULL, end);
	}
	if (lowercase)
		append(r, (struct xfp_normalizer){ .kind = LOWERCASE }, NULL, end);
}

static void add(struct xfp_part_reader *r, const char *where, const json_t *value, void *to, int depth)
{
	static const char *const alone[] = { "type", NULL }, *const prepend[] = { "type", "prepend", NULL },
				 *const replace[] = { "type", "pattern", "content", NULL },
				 *const forms[] = { "NFC", "NFKC", "NFD", "NFKD" };
	const char *type = xfp_part_type(r, where, value), *content = NULL;
	struct xfp_normalizer ***end = to, n = { 0 };

	while (n.form < 4 && strcmp(type, forms[n.form]))
		n.form++;
	if (!strcmp(type, "Sequence")) {
		xfp_part_sequence(r, where, value, "normalizers", add, end, depth);
	} else if (!strcmp(type, "BertNormalizer")) {
		add_bert(r, where, value, end);
	} else if (n.form < 4 || !strcmp(type, "Lowercase")) {
		n.kind = n.form < 4 ? FORM : LOWERCASE;
		xfp_part_only(r, where, value, alone);
		append(r, n, NULL, end);
	} else if (!strcmp(type, "Prepend")) {
		n.kind = PREPEND;
		xfp_part_only(r, where, value, prepend);
		content = xfp_part_text(r, where, value, "prepend", NULL);
		append(r, n, content, end);
	} else if (!strcmp(type, "Replace")) {
		n.kind = REPLACE;
		xfp_part_only(r, where, value, replace);
		content = xfp_part_text(r, where, value, "content", NULL);
		n.pattern = xfp_pattern_open(r, where, json_object_get(value, "pattern"));
		append(r, n, content, end);
	} else {
		xfp_part_refuse(
			r, where,
			"%s is not supported: NFC, NFD, NFKC, NFKD, Prepend, Replace, Lowercase, BertNormalizer "
			"and Sequence are",
			xfp_printable(type).text);
	}
}

struct xfp_normalizer *xfp_normalizer_open(struct xfp_part_reader *r, const json_t *value)
{
	struct xfp_normalizer *first = NULL, **end = &first;

	if (r->status || !value || json_is_null(value))
		return NULL;
	add(r, "normalizer", value, &end, 0);
	if (!r->status)
		return first;
	xfp_normalizer_free(first);
	return NULL;
}

void xfp_normalizer_free(struct xfp_normalizer *n)
{
	while (n) {
		struct xfp_normalizer *next = n->next;

		xfp_pattern_free(n->pattern);
		free(n->content);
		free(n);
		n = next;
	}
}

static enum xfp_status replace(const struct xfp_normalizer *n, const struct xfp_growable *text,
			       struct xfp_pattern_budget *budget, struct xfp_growable *out, struct xfp_error *err)
{
	struct xfp_spans spans = { 0 };
	size_t length = strlen(n->content);
	enum xfp_status status = xfp_pattern_find(n->pattern, text->bytes, text->size, budget, &spans, err);

	for (size_t i = 0; !status && i < spans.count; i++) {
		const struct xfp_span *s = &spans.span[i];

		if (!(s->match ? xfp_growable_add(out, n->content, length)
			       : xfp_growable_add(out, text->bytes + s->start, s->end - s->start)))
			status = xfp_no_memory(err);
	}
	free(spans.span);
	return status;
}

/* Append a character as a step of BertNormalizer leaves it. */
static bool put(enum normalizer_kind kind, uint32_t c, const char *text, size_t size, struct xfp_growable *out)
{
	bool chinese = kind == SURROUND_CHINESE && xfp_is_chinese(c);

	if (kind == LOWERCASE)
		return xfp_lower(c, out);
	if ((kind == CLEAN && xfp_is_control(c)) || (kind == DROP_ACCENTS && xfp_is_accent(c)))
		return true;
	if (kind == CLEAN && xfp_is_white(c))
		return xfp_growable_add(out, " ", 1);
	return (!chinese || xfp_growable_add(out, " ", 1)) && xfp_growable_add(out, text, size) &&
	       (!chinese || xfp_growable_add(out, " ", 1));
}

static enum xfp_status change(const struct xfp_normalizer *n, const struct xfp_growable *text,
			      struct xfp_pattern_budget *budget, struct xfp_growable *out, struct xfp_error *err)
{
	bool made = true;

	if (n->kind == REPLACE)
		return replace(n, text, budget, out, err);
	if (n->kind == FORM)
		return xfp_normal_form(text->bytes, text->size, n->form, out, err);
	if (n->kind == PREPEND)
		made = xfp_growable_add(out, n->content, strlen(n->content)) &&
		       xfp_growable_add(out, text->bytes, text->size);
	for (size_t at = 0, length; n->kind != PREPEND && made && at < text->size; at += length) {
		uint32_t c;

		length = xfp_utf8_decode(text->bytes + at, &c);
		made = put(n->kind, c, text->bytes + at, length, out);
	}
	return made ? XFP_OK : xfp_no_memory(err);
}

enum xfp_status xfp_normalize(const struct xfp_normalizer *n, struct xfp_pattern_budget *budget,
			      struct xfp_growable *text, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (; n && text->size && !status; n = n->next) {
		struct xfp_growable out = { 0 };

		if ((status = change(n, text, budget, &out, err))) {
			free(out.bytes);
		} else {
			free(text->bytes);
			*text = out;
		}
	}
	return status;
}
