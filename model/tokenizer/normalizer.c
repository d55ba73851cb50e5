/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/normalizer.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/printable.h"
#include "model/tokenizer/pattern.h"
#include "model/tokenizer/unicode.h"

enum normalizer_kind { NORMAL_FORM, COMPATIBLE_FORM, PREPEND, REPLACE };

struct xfp_normalizer {
	enum normalizer_kind kind;
	char *content;
	struct xfp_pattern *pattern;
	struct xfp_normalizer *next;
};

static void add(struct xfp_part_reader *r, const char *where, const json_t *value, void *to, int depth)
{
	static const char *const type_alone[] = { "type", NULL }, *const prepend[] = { "type", "prepend", NULL },
				 *const replace[] = { "type", "pattern", "content", NULL };
	const char *type = xfp_part_type(r, where, value), *content = NULL;
	struct xfp_normalizer ***end = to, n = { 0 };

	if (!strcmp(type, "Sequence")) {
		xfp_part_sequence(r, where, value, "normalizers", add, end, depth);
		return;
	}
	if (!strcmp(type, "NFC") || !strcmp(type, "NFKC")) {
		n.kind = type[2] == 'C' ? NORMAL_FORM : COMPATIBLE_FORM;
		xfp_part_only(r, where, value, type_alone);
	} else if (!strcmp(type, "Prepend")) {
		n.kind = PREPEND;
		xfp_part_only(r, where, value, prepend);
		content = xfp_part_text(r, where, value, "prepend", NULL);
	} else if (!strcmp(type, "Replace")) {
		n.kind = REPLACE;
		xfp_part_only(r, where, value, replace);
		content = xfp_part_text(r, where, value, "content", NULL);
		n.pattern = xfp_pattern_open(r, where, json_object_get(value, "pattern"));
	} else {
		xfp_part_refuse(r, where, "%s is not supported: NFC, NFKC, Prepend, Replace and Sequence are",
				xfp_printable(type).text);
	}
	if (!r->status && (!(**end = malloc(sizeof n)) || (content && !(n.content = strdup(content)))))
		r->status = xfp_no_memory_for(r->err, r->file);
	if (!**end) {
		xfp_pattern_free(n.pattern);
		return;
	}
	***end = n;
	*end = &(**end)->next;
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

enum xfp_status xfp_normalize(const struct xfp_normalizer *n, struct xfp_pattern_budget *budget,
			      struct xfp_growable *text, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (; n && text->size && !status; n = n->next) {
		struct xfp_growable out = { 0 };

		if (n->kind == REPLACE)
			status = replace(n, text, budget, &out, err);
		else if (n->kind != PREPEND)
			status = xfp_normal_form(text->bytes, text->size, n->kind == COMPATIBLE_FORM, &out, err);
		else if (!xfp_growable_add(&out, n->content, strlen(n->content)) ||
			 !xfp_growable_add(&out, text->bytes, text->size))
			status = xfp_no_memory(err);
		if (status) {
			free(out.bytes);
		} else {
			free(text->bytes);
			*text = out;
		}
	}
	return status;
}
