/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/wordpiece.h"

#include <stdlib.h>

#include "base/printable.h"
#include "base/utf8.h"

struct xfp_wordpiece {
	const struct xfp_vocabulary *vocabulary;
	char *prefix; /* of tokens that continue a word */
	uint32_t unknown, longest_word;
};

struct xfp_wordpiece *xfp_wordpiece_open(struct xfp_part_reader *r, const json_t *model,
					 const struct xfp_vocabulary *vocabulary)
{
	static const char *const names[] = {
		"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab", NULL
	};
	struct xfp_wordpiece *w = r->status ? NULL : calloc(1, sizeof *w);
	const char *unknown = xfp_part_text(r, "model", model, "unk_token", NULL);
	const char *prefix = xfp_part_text(r, "model", model, "continuing_subword_prefix", NULL);
	uint32_t longest_word = xfp_part_number(r, "model", model, "max_input_chars_per_word");
	int64_t id = r->status ? -1 : xfp_vocabulary_find(vocabulary, unknown, strlen(unknown));

	xfp_part_only(r, "model", model, names);
	if (id < 0)
		xfp_part_refuse(r, "model", "unk_token %s is not in vocab", xfp_printable(unknown).text);
	if (!r->status && (!w || !(w->prefix = strdup(prefix))))
		r->status = xfp_no_memory_for(r->err, r->file);
	if (r->status) {
		xfp_wordpiece_free(w);
		return NULL;
	}
	w->vocabulary = vocabulary;
	w->unknown = (uint32_t)id;
	w->longest_word = longest_word;
	return w;
}

void xfp_wordpiece_free(struct xfp_wordpiece *w)
{
	if (!w)
		return;
	free(w->prefix);
	free(w);
}

/* Whether a text has more characters than a word may have. */
static bool is_too_long(const struct xfp_wordpiece *w, const char *text, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; i < size && count <= w->longest_word; i++)
		count += !xfp_utf8_continues(text[i]);
	return count > w->longest_word;
}

enum xfp_status xfp_wordpiece_encode(const struct xfp_wordpiece *w, const char *text, size_t size,
				     struct xfp_token_ids *ids, struct xfp_error *err)
{
	size_t before = ids->count;
	bool known = !is_too_long(w, text, size);

	for (size_t at = 0, length; known && at < size; at += length) {
		uint32_t id;

		length = xfp_vocabulary_longest(w->vocabulary, at ? w->prefix : "", text + at, size - at, &id);
		known = length > 0;
		if (known && !xfp_ids_add(ids, id))
			return xfp_no_memory(err);
	}
	if (known)
		return XFP_OK;
	ids->count = before;
	return xfp_ids_add(ids, w->unknown) ? XFP_OK : xfp_no_memory(err);
}
