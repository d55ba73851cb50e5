/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/added.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/printable.h"
#include "model/tokenizer/unicode/unicode.h"

struct added_token {
	char *text;                 /* as in the file */
	struct xfp_growable needle; /* as in a text: normalized if it is matched in normalized text */
	uint32_t id;
	bool single_word, left, right, normalized, special;
};

/* Tokens sorted by their bytes, so that those with a common prefix are adjacent. */
struct finder {
	const struct added_token **token;
	size_t count;
	bool begins[256];
};

struct xfp_added {
	struct added_token *token; /* by id */
	size_t count;
	struct finder original, normalized;
};

static int by_id(const void *a, const void *b)
{
	const struct added_token *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int by_bytes(const void *a, const void *b)
{
	const struct added_token *x = *(const struct added_token *const *)a, *y = *(const struct added_token *const *)b;
	size_t size = x->needle.size < y->needle.size ? x->needle.size : y->needle.size;
	int order = memcmp(x->needle.bytes, y->needle.bytes, size);

	if (order)
		return order;
	if (x->needle.size != y->needle.size)
		return x->needle.size < y->needle.size ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static void read_token(struct xfp_part_reader *r, const json_t *value, size_t index,
		       const struct xfp_vocabulary *vocabulary, const struct xfp_normalizer *normalizer,
		       struct xfp_pattern_budget *budget, struct added_token *token)
{
	static const char *const names[] = { "id",     "content",    "single_word", "lstrip",
					     "rstrip", "normalized", "special",     NULL };
	char where[64];
	const char *text;
	int64_t id;

	snprintf(where, sizeof where, "added_tokens[%zu]", index);
	xfp_part_only(r, where, value, names);
	text = xfp_part_text(r, where, value, "content", NULL);
	token->id = xfp_part_number(r, where, value, "id");
	token->special = xfp_part_bool(r, where, value, "special", false);
	token->single_word = xfp_part_bool(r, where, value, "single_word", false);
	token->left = xfp_part_bool(r, where, value, "lstrip", false);
	token->right = xfp_part_bool(r, where, value, "rstrip", false);
	token->normalized = xfp_part_bool(r, where, value, "normalized", !token->special);
	if (r->status)
		return;
	id = xfp_vocabulary_find(vocabulary, text, strlen(text));
	if (id >= 0 && id != token->id)
		xfp_part_refuse(r, where, "\"%s\" has the id %u here, and %u in the vocabulary",
				xfp_printable(text).text, token->id, (unsigned)id);
	else if (!(token->text = strdup(text)) || !xfp_growable_add(&token->needle, text, strlen(text)))
		r->status = xfp_no_memory_for(r->err, r->file);
	else if (token->normalized)
		r->status = xfp_normalize(normalizer, budget, &token->needle, r->err);
}

static void fill(struct xfp_part_reader *r, const struct xfp_added *added, bool normalized, struct finder *finder)
{
	if (!r->status && !(finder->token = calloc(added->count + 1, sizeof *finder->token)))
		r->status = xfp_no_memory_for(r->err, r->file);
	if (r->status)
		return;
	for (size_t i = 0; i < added->count; i++) {
		const struct added_token *token = &added->token[i];

		if (token->normalized != normalized || !token->needle.size)
			continue;
		finder->token[finder->count++] = token;
		finder->begins[(unsigned char)token->needle.bytes[0]] = true;
	}
	qsort(finder->token, finder->count, sizeof *finder->token, by_bytes);
}

struct xfp_added *xfp_added_open(struct xfp_part_reader *r, const json_t *list, const struct xfp_vocabulary *vocabulary,
				 const struct xfp_normalizer *normalizer)
{
	struct xfp_added *added = r->status ? NULL : calloc(1, sizeof *added);
	struct xfp_pattern_budget budget = XFP_PATTERN_BUDGET;

	if (r->status)
		return NULL;
	if (list && !json_is_null(list) && !json_is_array(list))
		xfp_part_refuse(r, "added_tokens", "not a list");
	if (!added || !(added->token = calloc(json_array_size(list) + 1, sizeof *added->token)))
		r->status = xfp_no_memory_for(r->err, r->file);
	for (size_t i = 0; !r->status && i < json_array_size(list); i++)
		read_token(r, json_array_get(list, i), i, vocabulary, normalizer, &budget,
			   &added->token[added->count++]);
	if (!r->status) {
		qsort(added->token, added->count, sizeof *added->token, by_id);
		for (size_t i = 1; i < added->count; i++)
			if (added->token[i - 1].id == added->token[i].id)
				xfp_part_refuse(r, "added_tokens", "two tokens have the id %u", added->token[i].id);
	}
	if (added) {
		fill(r, added, false, &added->original);
		fill(r, added, true, &added->normalized);
	}
	if (!r->status)
		return added;
	xfp_added_free(added);
	return NULL;
}

void xfp_added_free(struct xfp_added *added)
{
	if (!added)
		return;
	for (size_t i = 0; added->token && i < added->count; i++) {
		free(added->token[i].text);
		free(added->token[i].needle.bytes);
	}
	free(added->token);
	free(added->original.token);
	free(added->normalized.token);
	free(added);
}

const char *xfp_added_text(const struct xfp_added *added, uint32_t id, size_t *size, bool *special)
{
	const struct added_token key = { .id = id };
	const struct added_token *found =
		added->count ? bsearch(&key, added->token, added->count, sizeof key, by_id) : NULL;

	if (!found)
		return NULL;
	*special = found->special;
	*size = found->needle.size;
	return found->needle.bytes;
}

int64_t xfp_added_find(const struct xfp_added *added, const char *text)
{
	for (size_t i = 0; i < added->count; i++)
		if (!strcmp(added->token[i].text, text))
			return added->token[i].id;
	return -1;
}

uint32_t xfp_added_ids(const struct xfp_added *added)
{
	return added->count ? added->token[added->count - 1].id + 1 : 0;
}

/* The first token from `low` on whose byte at `depth` is not less than the given one. */
static size_t bound(const struct finder *f, size_t low, size_t high, size_t depth, unsigned byte)
{
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct xfp_growable *text = &f->token[middle]->needle;

		if (text->size <= depth || (unsigned char)text->bytes[depth] < byte)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The longest token that is a prefix of the text; NULL: none. */
static const struct added_token *longest(const struct finder *f, const char *text, size_t size)
{
	size_t low = 0, high = f->count;
	const struct added_token *found = NULL;

	for (size_t depth = 0; depth < size; depth++) {
		unsigned byte = (unsigned char)text[depth];

		low = bound(f, low, high, depth, byte);
		high = bound(f, low, high, depth, byte + 1);
		if (low == high)
			break;
		if (f->token[low]->needle.size == depth + 1)
			found = f->token[low];
	}
	return found;
}

/* The character that ends at an offset of the text. */
static size_t character_before(const char *text, size_t at, uint32_t *character)
{
	size_t start = at - 1;

	while (start && xfp_utf8_continues(text[start]))
		start--;
	xfp_utf8_decode(text + start, character);
	return start;
}

static bool within_word(const char *text, size_t size, size_t start, size_t end)
{
	uint32_t character;

	if (start) {
		character_before(text, start, &character);
		if (xfp_is_word(character))
			return true;
	}
	if (end == size)
		return false;
	xfp_utf8_decode(text + end, &character);
	return xfp_is_word(character);
}

static bool put(struct xfp_pieces *pieces, const char *text, size_t size, int64_t id, bool first)
{
	size_t at = pieces->text.size;

	return xfp_growable_add(&pieces->text, text, size) &&
	       xfp_pieces_add(pieces, (struct xfp_text_piece){ at, size, id, first });
}

/* The search resumes after each match, even if blanks after it become part of it. */
static bool find_all(const struct finder *f, const char *text, size_t size, bool first, struct xfp_pieces *out)
{
	size_t done = 0, next, blank = 0; /* blank: end of the blanks that belong to a token already */
	uint32_t character;

	for (size_t at = 0; f->count && at < size; at = next) {
		const struct added_token *token =
			f->begins[(unsigned char)text[at]] ? longest(f, text + at, size - at) : NULL;
		size_t start = at, end;

		next = token ? at + token->needle.size : at + 1;
		end = next;
		if (!token || (token->single_word && within_word(text, size, start, end)))
			continue;
		while (token->left && start > done) {
			size_t before = character_before(text, start, &character);

			if (!xfp_is_white(character))
				break;
			start = before;
		}
		if (token->right && end < blank)
			end = blank;
		while (token->right && end < size) {
			size_t length = xfp_utf8_decode(text + end, &character);

			if (!xfp_is_white(character))
				break;
			blank = end += length;
		}
		if ((start > done && !put(out, text + done, start - done, -1, first && !done)) ||
		    !put(out, text + at, next - at, token->id, false))
			return false;
		done = end;
	}
	return done >= size || put(out, text + done, size - done, -1, first && !done);
}

enum xfp_status xfp_added_split(const struct xfp_added *added, const struct xfp_normalizer *normalizer,
				struct xfp_pattern_budget *budget, const struct xfp_growable *text,
				struct xfp_pieces *pieces, struct xfp_error *err)
{
	struct xfp_pieces found = { 0 };
	struct xfp_growable part = { 0 };
	enum xfp_status status = XFP_OK;

	if (!find_all(&added->original, text->bytes, text->size, true, &found))
		status = xfp_no_memory(err);
	for (size_t i = 0; !status && i < found.count; i++) {
		const struct xfp_text_piece *piece = &found.piece[i];
		const char *bytes = found.text.bytes + piece->at;

		part.size = 0;
		if (piece->id >= 0) {
			if (!put(pieces, bytes, piece->size, piece->id, false))
				status = xfp_no_memory(err);
		} else if (!xfp_growable_add(&part, bytes, piece->size)) {
			status = xfp_no_memory(err);
		} else if (!(status = xfp_normalize(normalizer, budget, &part, err)) &&
			   !find_all(&added->normalized, part.bytes, part.size, piece->first, pieces)) {
			status = xfp_no_memory(err);
		}
	}
	free(part.bytes);
	xfp_pieces_free(&found);
	return status;
}
