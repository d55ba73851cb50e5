/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/bpe_tables.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/printable.h"

/* FNV-1a, with its bits mixed. */
static uint64_t hash_text(const char *text, size_t size)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < size; i++)
		h = (h ^ (unsigned char)text[i]) * 0x100000001b3;
	return h ^ h >> 29;
}

static uint64_t hash_pair(uint32_t left, uint32_t right)
{
	uint64_t h = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15;

	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
	return h ^ h >> 31;
}

/* Limit of probes of a table while it is filled, on average per entry. Texts of tokens need two; without a limit, a
 * file with colliding hashes would need quadratic time. */
#define MAX_PROBES 64

static uint64_t probe_limit(size_t things)
{
	return MAX_PROBES * ((uint64_t)things + 64);
}

/* At least twice as many slots as entries, minus one. */
static size_t mask_for(size_t things)
{
	size_t places = 16;

	while (places < 2 * things)
		places *= 2;
	return places - 1;
}

static int by_id(const void *a, const void *b)
{
	const struct bpe_token *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

int64_t xfp_bpe_find(const struct xfp_bpe *bpe, const char *text, size_t size)
{
	for (size_t at = hash_text(text, size);; at++) {
		uint32_t index = bpe->by_text[at & bpe->text_mask];

		if (index == BPE_NONE)
			return -1;
		if (bpe->token[index].size == size && !memcmp(bpe->texts.bytes + bpe->token[index].at, text, size))
			return bpe->token[index].id;
	}
}

const char *xfp_bpe_text(const struct xfp_bpe *bpe, uint32_t id, size_t *size)
{
	const struct bpe_token key = { .id = id }, *token = NULL;

	/* Usually, ids have no gaps. */
	if (id < bpe->tokens && bpe->token[id].id == id)
		token = &bpe->token[id];
	else if (bpe->tokens)
		token = bsearch(&key, bpe->token, bpe->tokens, sizeof key, by_id);
	if (!token)
		return NULL;
	*size = token->size;
	return bpe->texts.bytes + token->at;
}

uint32_t xfp_bpe_ids(const struct xfp_bpe *bpe)
{
	return bpe->tokens ? bpe->token[bpe->tokens - 1].id + 1 : 0;
}

const struct bpe_merge *bpe_merge_of(const struct xfp_bpe *bpe, uint32_t left, uint32_t right)
{
	for (size_t at = hash_pair(left, right);; at++) {
		const struct bpe_merge *merge = &bpe->merge[at & bpe->merge_mask];

		if (merge->rank == BPE_NONE)
			return NULL;
		if (merge->left == left && merge->right == right)
			return merge;
	}
}

static void read_vocabulary(struct xfp_part_reader *r, struct xfp_bpe *bpe, const json_t *vocabulary)
{
	size_t count = json_object_size(vocabulary);
	uint64_t probes = probe_limit(count);
	const char *text;
	json_t *value;

	if (!json_is_object(vocabulary) || count > INT32_MAX) {
		xfp_part_refuse(r, "model", "vocab is not an object of tokens");
		return;
	}
	bpe->text_mask = mask_for(count);
	bpe->token = calloc(count + 1, sizeof *bpe->token);
	bpe->by_text = malloc((bpe->text_mask + 1) * sizeof *bpe->by_text);
	if (!bpe->token || !bpe->by_text || !xfp_growable_add(&bpe->texts, "", 1))
		goto no_memory;
	memset(bpe->by_text, 0xff, (bpe->text_mask + 1) * sizeof *bpe->by_text);
	json_object_foreach ((json_t *)vocabulary, text, value) {
		json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
		size_t size = strlen(text);

		if (id < 0 || id >= INT32_MAX || size > INT32_MAX) {
			xfp_part_refuse(r, "model", "vocab: \"%s\" has no id from 0 to 2147483646",
					xfp_printable(text).text);
			return;
		}
		bpe->token[bpe->tokens++] =
			(struct bpe_token){ .at = bpe->texts.size, .size = (uint32_t)size, .id = (uint32_t)id };
		if (!xfp_growable_add(&bpe->texts, text, size))
			goto no_memory;
	}
	qsort(bpe->token, bpe->tokens, sizeof *bpe->token, by_id);
	for (uint32_t i = 0; i < bpe->tokens && !r->status; i++) {
		size_t at = hash_text(bpe->texts.bytes + bpe->token[i].at, bpe->token[i].size);

		if (i && bpe->token[i - 1].id == bpe->token[i].id)
			xfp_part_refuse(r, "model", "vocab: two tokens have the id %u", bpe->token[i].id);
		for (; bpe->by_text[at & bpe->text_mask] != BPE_NONE && probes; probes--)
			at++;
		if (!probes)
			xfp_part_refuse(r, "model", "vocab: too many hash collisions; not a real tokenizer");
		bpe->by_text[at & bpe->text_mask] = i;
	}
	return;
no_memory:
	r->status = xfp_no_memory_for(r->err, r->file);
}

/* "a b", or ["a", "b"]. False if it is neither. */
static bool halves(const json_t *merge, const char *half[2], size_t size[2])
{
	if (json_is_string(merge)) {
		const char *blank = strchr(json_string_value(merge), ' ');

		half[0] = json_string_value(merge);
		if (!blank || strchr(blank + 1, ' '))
			return false;
		half[1] = blank + 1;
		size[0] = (size_t)(blank - half[0]);
	} else {
		half[0] = json_string_value(json_array_get(merge, 0));
		half[1] = json_string_value(json_array_get(merge, 1));
		if (json_array_size(merge) != 2 || !half[0] || !half[1])
			return false;
		size[0] = strlen(half[0]);
	}
	size[1] = strlen(half[1]);
	return true;
}

/* Of duplicate pairs, the later one applies. False if the probe limit is exceeded. */
static bool insert(struct xfp_bpe *bpe, struct bpe_merge merge, uint64_t *probes)
{
	size_t at = hash_pair(merge.left, merge.right);
	struct bpe_merge *place;

	for (; (place = &bpe->merge[at & bpe->merge_mask])->rank != BPE_NONE &&
	       (place->left != merge.left || place->right != merge.right);
	     at++)
		if (!(*probes)--)
			return false;
	*place = merge;
	return true;
}

static void read_merge(struct xfp_part_reader *r, struct xfp_bpe *bpe, const json_t *merge, size_t rank,
		       struct xfp_growable *both, uint64_t *probes)
{
	size_t size[2], prefix = strlen(bpe->prefix);
	int64_t left, right, id;
	const char *half[2];

	if (!halves(merge, half, size)) {
		xfp_part_refuse(r, "model", "merges[%zu] is not two tokens", rank);
		return;
	}
	both->size = 0;
	if (size[1] < prefix) {
		xfp_part_refuse(r, "model", "merges[%zu]: the second token is shorter than the prefix", rank);
		return;
	}
	if (!xfp_growable_add(both, half[0], size[0]) || !xfp_growable_add(both, half[1] + prefix, size[1] - prefix)) {
		r->status = xfp_no_memory_for(r->err, r->file);
		return;
	}
	left = xfp_bpe_find(bpe, half[0], size[0]);
	right = xfp_bpe_find(bpe, half[1], size[1]);
	id = both->size ? xfp_bpe_find(bpe, both->bytes, both->size) : -1;
	if (left < 0 || right < 0 || id < 0)
		xfp_part_refuse(r, "model", "merges[%zu]: the vocabulary lacks %s", rank,
				left < 0    ? "the first token"
				: right < 0 ? "the second token"
					    : "the merged token");
	else if (!insert(bpe, (struct bpe_merge){ (uint32_t)left, (uint32_t)right, (uint32_t)rank, (uint32_t)id },
			 probes))
		xfp_part_refuse(r, "model", "merges: too many hash collisions; not a real tokenizer");
}

static void read_merges(struct xfp_part_reader *r, struct xfp_bpe *bpe, const json_t *model)
{
	const json_t *merges = xfp_part_list(r, "model", model, "merges");
	size_t count = json_array_size(merges);
	uint64_t probes = probe_limit(count);
	struct xfp_growable both = { 0 };

	if (!r->status && count >= INT32_MAX)
		xfp_part_refuse(r, "model", "too many merges");
	if (r->status)
		return;
	bpe->merge_mask = mask_for(count);
	if (!(bpe->merge = malloc((bpe->merge_mask + 1) * sizeof *bpe->merge))) {
		r->status = xfp_no_memory_for(r->err, r->file);
		return;
	}
	memset(bpe->merge, 0xff, (bpe->merge_mask + 1) * sizeof *bpe->merge);
	for (size_t i = 0; i < count && !r->status; i++) {
		const json_t *merge = json_array_get(merges, i);

		/* Older files contain the first line of merges.txt. */
		if (!json_is_string(merge) || strncmp(json_string_value(merge), "#version", 8))
			read_merge(r, bpe, merge, i, &both, &probes);
	}
	free(both.bytes);
}

static void read_unknown(struct xfp_part_reader *r, struct xfp_bpe *bpe, const json_t *model)
{
	const char *unknown = xfp_part_text(r, "model", model, "unk_token", "");
	int64_t id = *unknown && !r->status ? xfp_bpe_find(bpe, unknown, strlen(unknown)) : -1;

	bpe->unknown = id < 0 ? BPE_NONE : (uint32_t)id;
	if (*unknown && id < 0)
		xfp_part_refuse(r, "model", "unk_token %s is not in vocab", xfp_printable(unknown).text);
}

static void read_bytes(struct xfp_bpe *bpe)
{
	for (unsigned i = 0; i < 256; i++) {
		char text[8];
		int64_t id;

		snprintf(text, sizeof text, "<0x%02X>", i);
		id = xfp_bpe_find(bpe, text, 6);
		bpe->byte[i] = id < 0 ? BPE_NONE : (uint32_t)id;
	}
}

struct xfp_bpe *xfp_bpe_open(struct xfp_part_reader *r, const json_t *model)
{
	static const char *const names[] = { "type",
					     "dropout",
					     "unk_token",
					     "continuing_subword_prefix",
					     "end_of_word_suffix",
					     "fuse_unk",
					     "byte_fallback",
					     "ignore_merges",
					     "vocab",
					     "merges",
					     NULL };
	struct xfp_bpe *bpe = r->status ? NULL : calloc(1, sizeof *bpe);
	/* Files without a type are BPE, the only model with merges. */
	const char *type = xfp_part_text(r, "model", model, "type", json_object_get(model, "merges") ? "BPE" : "");
	const json_t *dropout;

	if (r->status)
		goto done;
	if (strcmp(type, "BPE"))
		xfp_part_refuse(r, "model", "%s is not supported: only BPE is",
				*type ? xfp_printable(type).text : "a model without a type");
	xfp_part_only(r, "model", model, names);
	dropout = json_object_get(model, "dropout");
	if (dropout && !json_is_null(dropout) && !(json_is_number(dropout) && json_number_value(dropout) == 0))
		xfp_part_refuse(r, "model", "dropout is not supported: it makes tokens random");
	if (r->status || !bpe)
		goto done;
	bpe->prefix = strdup(xfp_part_text(r, "model", model, "continuing_subword_prefix", ""));
	bpe->suffix = strdup(xfp_part_text(r, "model", model, "end_of_word_suffix", ""));
	if (bpe->prefix && bpe->suffix && strlen(bpe->prefix) + strlen(bpe->suffix) > BPE_LONGEST_AFFIXES)
		xfp_part_refuse(r, "model", "continuing_subword_prefix and end_of_word_suffix are too long");
	bpe->fuse_unknown = xfp_part_bool(r, "model", model, "fuse_unk", false);
	bpe->byte_fallback = xfp_part_bool(r, "model", model, "byte_fallback", false);
	bpe->ignore_merges = xfp_part_bool(r, "model", model, "ignore_merges", false);
	if (!r->status && bpe->prefix && bpe->suffix)
		read_vocabulary(r, bpe, json_object_get(model, "vocab"));
	if (!r->status && bpe->by_text) {
		read_merges(r, bpe, model);
		read_unknown(r, bpe, model);
		read_bytes(bpe);
	}
done:
	if (!r->status && (!bpe || !bpe->prefix || !bpe->suffix))
		r->status = xfp_no_memory_for(r->err, r->file);
	if (!r->status)
		return bpe;
	xfp_bpe_free(bpe);
	return NULL;
}

void xfp_bpe_free(struct xfp_bpe *bpe)
{
	if (!bpe)
		return;
	free(bpe->texts.bytes);
	free(bpe->token);
	free(bpe->by_text);
	free(bpe->merge);
	free(bpe->prefix);
	free(bpe->suffix);
	free(bpe);
}
