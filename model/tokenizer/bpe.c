/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/bpe.h"

#include <stdlib.h>

#include "model/tokenizer/bpe_tables.h"
#include "model/tokenizer/unicode/unicode.h"

/* A symbol of the piece: a list, from which merged symbols disappear. */
struct bpe_symbol {
	uint32_t id; /* BPE_NONE: merged into one before it */
	uint32_t previous, next;
};

/* A candidate merge of two neighbours. By the time it is considered, either may have been merged. */
struct bpe_pair {
	uint32_t rank, at, id;
};

void xfp_bpe_work_free(struct xfp_bpe_work *work)
{
	free(work->symbol);
	free(work->heap);
	*work = (struct xfp_bpe_work){ 0 };
}

static bool before(const struct bpe_pair *a, const struct bpe_pair *b)
{
	return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static bool push(struct xfp_bpe_work *w, struct bpe_pair pair)
{
	size_t at = w->heaped;

	if (!xfp_grow(&w->heap, sizeof *w->heap, w->heaped, 1, &w->pairs))
		return false;
	for (w->heaped++; at && before(&pair, &w->heap[(at - 1) / 2]); at = (at - 1) / 2)
		w->heap[at] = w->heap[(at - 1) / 2];
	w->heap[at] = pair;
	return true;
}

static struct bpe_pair pop(struct xfp_bpe_work *w)
{
	struct bpe_pair first = w->heap[0], last = w->heap[--w->heaped];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < w->heaped) {
		child += child + 1 < w->heaped && before(&w->heap[child + 1], &w->heap[child]);
		if (!before(&w->heap[child], &last))
			break;
		w->heap[at] = w->heap[child];
		at = child;
	}
	w->heap[at] = last;
	return first;
}

static bool add_symbol(struct xfp_bpe_work *w, uint32_t id)
{
	if (!xfp_grow(&w->symbol, sizeof *w->symbol, w->count, 1, &w->symbols))
		return false;
	w->symbol[w->count] = (struct bpe_symbol){ id, (uint32_t)w->count - 1, (uint32_t)w->count + 1 };
	w->count++;
	return true;
}

/* The token of a character, with prefix and suffix. */
static int64_t character_id(const struct xfp_bpe *bpe, const char *text, size_t size, bool first, bool last)
{
	size_t prefix = first ? 0 : strlen(bpe->prefix), suffix = last ? strlen(bpe->suffix) : 0;
	char some[BPE_LONGEST_AFFIXES + 4];

	if (!prefix && !suffix)
		return xfp_vocabulary_find(bpe->vocabulary, text, size);
	memcpy(some, bpe->prefix, prefix);
	memcpy(some + prefix, text, size);
	memcpy(some + prefix + size, bpe->suffix, suffix);
	return xfp_vocabulary_find(bpe->vocabulary, some, prefix + size + suffix);
}

static bool has_bytes(const struct xfp_bpe *bpe, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (bpe->byte[(unsigned char)text[i]] == BPE_NONE)
			return false;
	return bpe->byte_fallback;
}

/* Convert characters to tokens. An unknown character becomes byte tokens if they exist, or else the unknown token (one
 * for several, if the model fuses them), or else nothing. */
static bool begin(const struct xfp_bpe *bpe, const char *text, size_t size, struct xfp_bpe_work *w)
{
	bool unknown = false, made = true;
	size_t length;

	w->count = w->heaped = 0;
	for (size_t at = 0; made && at < size; at += length) {
		uint32_t character;
		int64_t id;

		length = xfp_utf8_decode(text + at, &character);
		id = character_id(bpe, text + at, length, !at, at + length == size);
		if (id < 0 && has_bytes(bpe, text + at, length)) {
			for (size_t i = 0; made && i < length; i++)
				made = add_symbol(w, bpe->byte[(unsigned char)text[at + i]]);
		} else if (id < 0 && bpe->unknown != BPE_NONE) {
			made = !unknown || bpe->fuse_unknown || add_symbol(w, bpe->unknown);
			unknown = true;
		} else if (id >= 0) {
			made = (!unknown || add_symbol(w, bpe->unknown)) && add_symbol(w, (uint32_t)id);
			unknown = false;
		}
	}
	return made && (!unknown || add_symbol(w, bpe->unknown));
}

static bool consider(const struct xfp_bpe *bpe, struct xfp_bpe_work *w, uint32_t at)
{
	struct bpe_merge merge;

	return !bpe_merge_of(bpe, w->symbol[at].id, w->symbol[w->symbol[at].next].id, &merge) ||
	       push(w, (struct bpe_pair){ merge.rank, at, merge.id });
}

/* Merge by priority, of equal ones from left to right. A stale pair counts if its present neighbours merge to the same
 * token. */
static bool merge_all(const struct xfp_bpe *bpe, struct xfp_bpe_work *w)
{
	uint32_t count = (uint32_t)w->count;

	for (uint32_t i = 0; i + 1 < count; i++)
		if (!consider(bpe, w, i))
			return false;
	while (w->heaped) {
		struct bpe_pair pair = pop(w);
		struct bpe_symbol *left = &w->symbol[pair.at], *right;
		struct bpe_merge merge;

		if (left->id == BPE_NONE || left->next == count)
			continue;
		right = &w->symbol[left->next];
		if (!bpe_merge_of(bpe, left->id, right->id, &merge) || merge.id != pair.id)
			continue;
		left->id = pair.id;
		right->id = BPE_NONE;
		left->next = right->next;
		if (left->next != count)
			w->symbol[left->next].previous = pair.at;
		if ((pair.at && !consider(bpe, w, left->previous)) ||
		    (left->next != count && !consider(bpe, w, pair.at)))
			return false;
	}
	return true;
}

enum xfp_status xfp_bpe_encode(const struct xfp_bpe *bpe, const char *text, size_t size, struct xfp_bpe_work *w,
			       struct xfp_token_ids *ids, struct xfp_error *err)
{
	int64_t whole = bpe->ignore_merges ? xfp_vocabulary_find(bpe->vocabulary, text, size) : -1;

	if (whole >= 0)
		return xfp_ids_add(ids, (uint32_t)whole) ? XFP_OK : xfp_no_memory(err);
	if (size > INT32_MAX)
		return xfp_fail(err, XFP_BAD_INPUT, "a text of %zu bytes is a single word for the tokenizer; split it",
				size);
	if (!begin(bpe, text, size, w) || !merge_all(bpe, w))
		return xfp_no_memory(err);
	for (uint32_t i = 0; i < w->count; i = w->symbol[i].next)
		if (!xfp_ids_add(ids, w->symbol[i].id))
			return xfp_no_memory(err);
	return XFP_OK;
}
