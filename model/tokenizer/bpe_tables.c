/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/bpe_tables.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/printable.h"

static uint64_t hash_pair(uint32_t left, uint32_t right)
{
	uint64_t h = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15;

	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
	return h ^ h >> 31;
}

bool bpe_merge_of(const struct xfp_bpe *bpe, uint32_t left, uint32_t right, struct bpe_merge *merge)
{
	int64_t id = bpe->merge ? -1 : xfp_vocabulary_joined(bpe->vocabulary, left, right);

	if (!bpe->merge)
		*merge = (struct bpe_merge){ left, right, (uint32_t)id, (uint32_t)id };
	for (size_t at = hash_pair(left, right); bpe->merge; at++) {
		*merge = bpe->merge[at & bpe->merge_mask];
		if (merge->rank == BPE_NONE || (merge->left == left && merge->right == right))
			return merge->rank != BPE_NONE;
	}
	return id >= 0;
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
	left = xfp_vocabulary_find(bpe->vocabulary, half[0], size[0]);
	right = xfp_vocabulary_find(bpe->vocabulary, half[1], size[1]);
	id = both->size ? xfp_vocabulary_find(bpe->vocabulary, both->bytes, both->size) : -1;
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
	uint64_t probes = xfp_probe_limit(count);
	struct xfp_growable both = { 0 };

	if (!r->status && count >= INT32_MAX)
		xfp_part_refuse(r, "model", "too many merges");
	if (r->status)
		return;
	bpe->merge_mask = xfp_hash_mask(count);
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
	int64_t id = *unknown && !r->status ? xfp_vocabulary_find(bpe->vocabulary, unknown, strlen(unknown)) : -1;

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
		id = xfp_vocabulary_find(bpe->vocabulary, text, 6);
		bpe->byte[i] = id < 0 ? BPE_NONE : (uint32_t)id;
	}
}

struct xfp_bpe *xfp_bpe_open(struct xfp_part_reader *r, const json_t *model, const struct xfp_vocabulary *vocabulary)
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
	const json_t *dropout = json_object_get(model, "dropout");
	struct xfp_bpe *bpe;

	xfp_part_only(r, "model", model, names);
	if (dropout && !json_is_null(dropout) && !(json_is_number(dropout) && json_number_value(dropout) == 0))
		xfp_part_refuse(r, "model", "dropout is not supported: it makes tokens random");
	if (r->status || !(bpe = calloc(1, sizeof *bpe)))
		goto failed;
	bpe->vocabulary = vocabulary;
	bpe->prefix = strdup(xfp_part_text(r, "model", model, "continuing_subword_prefix", ""));
	bpe->suffix = strdup(xfp_part_text(r, "model", model, "end_of_word_suffix", ""));
	if (bpe->prefix && bpe->suffix && strlen(bpe->prefix) + strlen(bpe->suffix) > BPE_LONGEST_AFFIXES)
		xfp_part_refuse(r, "model", "continuing_subword_prefix and end_of_word_suffix are too long");
	bpe->fuse_unknown = xfp_part_bool(r, "model", model, "fuse_unk", false);
	bpe->byte_fallback = xfp_part_bool(r, "model", model, "byte_fallback", false);
	bpe->ignore_merges = xfp_part_bool(r, "model", model, "ignore_merges", false);
	if (bpe->prefix && bpe->suffix) {
		if (!r->tiktoken)
			read_merges(r, bpe, model);
		read_unknown(r, bpe, model);
		read_bytes(bpe);
		if (!r->status)
			return bpe;
	}
	xfp_bpe_free(bpe);
failed:
	if (!r->status)
		r->status = xfp_no_memory_for(r->err, r->file);
	return NULL;
}

void xfp_bpe_free(struct xfp_bpe *bpe)
{
	if (!bpe)
		return;
	free(bpe->merge);
	free(bpe->prefix);
	free(bpe->suffix);
	free(bpe);
}
