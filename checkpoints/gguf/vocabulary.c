/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocabulary.c - look up tokens by text.
 *
 * The hash of a text is a polynomial in its bytes, so that one pass over a text gives the hashes of all its prefixes
 * and suffixes.
 */
#include "checkpoints/gguf/vocabulary.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_BASE UINT64_C(0x9e3779b97f4a7c15)
#define MAX_PROBES 64 /* maximum average probes per token */

static const char lower_block[] = "\xe2\x96\x81"; /* U+2581, SentencePiece's space */

static uint64_t hash_of(const char *bytes, uint64_t length)
{
	uint64_t hash = 0;

	for (uint64_t i = 0; i < length; i++)
		hash = hash * HASH_BASE + (unsigned char)bytes[i] + 1;
	return hash;
}

static uint64_t mixed(uint64_t hash)
{
	hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	return hash ^ hash >> 31;
}

static uint32_t find_hashed(const struct xfp_gguf_vocabulary *v, uint64_t hash, const char *bytes, uint64_t length)
{
	for (uint64_t at = mixed(hash) & v->mask;; at = (at + 1) & v->mask) {
		uint32_t number = v->slots[at];

		if (number == UINT32_MAX || (v->tokens[number].length == length &&
					     (!length || !memcmp(v->tokens[number].bytes, bytes, length))))
			return number;
	}
}

uint32_t xfp_gguf_vocabulary_find(const struct xfp_gguf_vocabulary *v, const char *bytes, uint64_t length)
{
	return length > v->longest ? UINT32_MAX : find_hashed(v, hash_of(bytes, length), bytes, length);
}

/* Return whether a token consists of several spaces; a single one is already U+2581 in a vocabulary. */
static bool all_spaces(const struct xfp_gguf_text *text)
{
	for (uint64_t i = 0; i < text->length; i++)
		if (text->bytes[i] != ' ')
			return false;
	return text->length > 1;
}

/* Respell tokens that consist of spaces. */
static bool spell_spaces(struct xfp_gguf_vocabulary *v)
{
	uint64_t spaces = 0;
	char *at;

	for (uint32_t i = 0; i < v->count; i++)
		spaces += all_spaces(&v->tokens[i]) ? v->tokens[i].length : 0;
	if (!spaces)
		return true;
	if (!(at = v->spelled = malloc(spaces * (sizeof lower_block - 1))))
		return false;
	for (uint32_t i = 0; i < v->count; i++) {
		uint64_t length = v->tokens[i].length;

		if (!all_spaces(&v->tokens[i]))
			continue;
		v->tokens[i] = (struct xfp_gguf_text){ at, length * (sizeof lower_block - 1) };
		for (; length; length--, at += sizeof lower_block - 1)
			memcpy(at, lower_block, sizeof lower_block - 1);
	}
	return true;
}

static bool read_types(struct xfp_gguf_vocabulary *v, const struct xfp_gguf_value *types)
{
	for (uint32_t i = 0; types && i < v->count; i++) {
		uint64_t type;

		if (!types->array || !xfp_gguf_integer(types, i, &type))
			return false;
		v->types[i] = type <= XFP_GGUF_TOKEN_BYTE ? (uint8_t)type : 0;
	}
	return true;
}

/* Fill the hash table; returns NULL or an error. Tokens need two probes each; crafted texts with colliding hashes would
 * need quadratic time. */
static const char *fill_slots(struct xfp_gguf_vocabulary *v)
{
	uint64_t probes = MAX_PROBES * ((uint64_t)v->count + 64);

	for (uint32_t i = 0; i < v->count; i++) {
		const struct xfp_gguf_text *text = &v->tokens[i];
		uint64_t slot = mixed(hash_of(text->bytes, text->length)) & v->mask;

		for (; v->slots[slot] != UINT32_MAX; slot = (slot + 1) & v->mask) {
			const struct xfp_gguf_text *other = &v->tokens[v->slots[slot]];

			if (other->length == text->length &&
			    (!text->length || !memcmp(other->bytes, text->bytes, text->length)))
				return "two of its tokens are the same text";
			if (!probes--)
				return "its tokens have too many hash collisions to be those of a tokenizer";
		}
		v->slots[slot] = i;
	}
	return NULL;
}

enum xfp_status xfp_gguf_vocabulary_read(struct xfp_gguf_vocabulary *v, const struct xfp_gguf_metadata *metadata,
					 bool spaces, const char **wrong)
{
	const struct xfp_gguf_value *tokens = xfp_gguf_find(metadata, "tokenizer.ggml.tokens");
	uint64_t at = 0, slots = 16;

	*wrong = NULL;
	*v = (struct xfp_gguf_vocabulary){ .count = 0 };
	if (!tokens || !tokens->array || tokens->kind != XFP_GGUF_TEXT || !tokens->count ||
	    tokens->count >= UINT32_MAX / 4) {
		*wrong = "the metadata has no tokenizer.ggml.tokens that are texts";
		return XFP_OK;
	}
	while (slots < 2 * tokens->count)
		slots *= 2;
	v->mask = slots - 1;
	v->tokens = malloc(tokens->count * sizeof *v->tokens);
	v->types = calloc(tokens->count, sizeof *v->types);
	v->slots = malloc(slots * sizeof *v->slots);
	if (!v->tokens || !v->types || !v->slots)
		return XFP_FAILED;
	memset(v->slots, 0xff, slots * sizeof *v->slots);
	while (v->count < tokens->count && xfp_gguf_next_text(tokens, &at, &v->tokens[v->count]))
		v->count++;
	if (!read_types(v, xfp_gguf_find(metadata, "tokenizer.ggml.token_type"))) {
		*wrong = "its tokenizer.ggml.token_type is not a number for every token";
		return XFP_OK;
	}
	if (spaces && !spell_spaces(v))
		return XFP_FAILED;
	for (uint32_t i = 0; i < v->count; i++)
		v->longest = v->tokens[i].length > v->longest ? v->tokens[i].length : v->longest;
	if (!(v->powers = malloc((v->longest + 1) * sizeof *v->powers)))
		return XFP_FAILED;
	for (uint64_t i = 0, power = 1; i <= v->longest; i++, power *= HASH_BASE)
		v->powers[i] = power;
	*wrong = fill_slots(v);
	return XFP_OK;
}

void xfp_gguf_vocabulary_free(struct xfp_gguf_vocabulary *v)
{
	free(v->tokens);
	free(v->types);
	free(v->slots);
	free(v->powers);
	free(v->spelled);
}

bool xfp_gguf_vocabulary_pads(const struct xfp_gguf_vocabulary *v, uint32_t token)
{
	char text[24];

	if (v->types[token] != XFP_GGUF_TOKEN_UNUSED && v->types[token] != XFP_GGUF_TOKEN_USER)
		return false;
	snprintf(text, sizeof text, "[PAD%u]", (unsigned)token);
	return v->tokens[token].length == strlen(text) && !memcmp(v->tokens[token].bytes, text, strlen(text));
}

/* ---- listed merges ------------------------------------------------------------------------------- */

static bool add_merge(struct xfp_gguf_merges *m, const struct xfp_gguf_vocabulary *v, uint32_t left, uint32_t right)
{
	const struct xfp_gguf_text *texts[2] = { &v->tokens[left], &v->tokens[right] };

	/* Capacities are powers of two. */
	if (!(m->count & (m->count - 1))) {
		size_t room = m->count ? 2 * (size_t)m->count : 1;
		struct xfp_gguf_merge *grown = realloc(m->merges, room * sizeof *grown);

		if (!grown)
			return false;
		m->merges = grown;
	}
	m->merges[m->count++] = (struct xfp_gguf_merge){ left, right };
	for (int i = 0; i < 2; i++)
		m->spaced |= texts[i]->length && memchr(texts[i]->bytes, ' ', texts[i]->length);
	return true;
}

enum xfp_status xfp_gguf_merges_read(struct xfp_gguf_merges *m, const struct xfp_gguf_vocabulary *v,
				     const struct xfp_gguf_value *listed, const char **wrong)
{
	enum xfp_status status = XFP_OK;
	struct xfp_gguf_text text;
	uint64_t at = 0;
	char *both = malloc(v->longest + 1);

	*wrong = NULL;
	*m = (struct xfp_gguf_merges){ .count = 0 };
	if (!both)
		return XFP_FAILED;
	if (!listed || !listed->array || listed->kind != XFP_GGUF_TEXT || listed->count >= UINT32_MAX / 2)
		*wrong = "the metadata has no tokenizer.ggml.merges that are texts";
	while (!status && !*wrong && xfp_gguf_next_text(listed, &at, &text)) {
		const char *space = text.length > 1 ? memchr(text.bytes + 1, ' ', text.length - 1) : NULL;
		uint64_t before = space ? (uint64_t)(space - text.bytes) : 0,
			 after = space ? text.length - before - 1 : 0;
		uint32_t left, right, whole = UINT32_MAX;

		left = after ? xfp_gguf_vocabulary_find(v, text.bytes, before) : UINT32_MAX;
		right = after ? xfp_gguf_vocabulary_find(v, space + 1, after) : UINT32_MAX;
		if (left != UINT32_MAX && right != UINT32_MAX && before + after <= v->longest) {
			memcpy(both, text.bytes, before);
			memcpy(both + before, space + 1, after);
			whole = xfp_gguf_vocabulary_find(v, both, before + after);
		}
		if (whole == UINT32_MAX || xfp_gguf_vocabulary_pads(v, left) || xfp_gguf_vocabulary_pads(v, right) ||
		    xfp_gguf_vocabulary_pads(v, whole))
			*wrong = "one of its tokenizer.ggml.merges does not join two tokens to a third";
		else if (!add_merge(m, v, left, right))
			status = XFP_FAILED;
	}
	free(both);
	return status;
}

/* ---- derived merges ------------------------------------------------------------------------------ */

/* Limit of the size of derived merges as text, relative to the tokens, and its minimum. */
#define MAX_TEXT 64
#define MIN_TEXT_SIZE (UINT64_C(1) << 20)

struct implied {
	struct xfp_gguf_merge merge;
	double score;
	uint32_t left_length; /* characters; the length of the right token follows */
	uint32_t number;      /* in order of discovery */
};

struct implying {
	struct implied *found;
	size_t room;
	uint32_t count;
	uint64_t text, most_text;
};

/* Order by descending scores and lengths, then by discovery. */
static int compare(const void *a, const void *b)
{
	const struct implied *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	if (x->left_length != y->left_length)
		return x->left_length > y->left_length ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Return whether a token is a piece of text: not a control or byte token. */
static bool is_piece(const struct xfp_gguf_vocabulary *v, uint32_t token)
{
	return v->types[token] != XFP_GGUF_TOKEN_CONTROL && v->types[token] != XFP_GGUF_TOKEN_UNKNOWN &&
	       v->types[token] != XFP_GGUF_TOKEN_BYTE && !xfp_gguf_vocabulary_pads(v, token);
}

static bool keep_implied(struct implying *all, const struct xfp_gguf_vocabulary *v, const struct implied *found)
{
	all->text += v->tokens[found->merge.left].length + v->tokens[found->merge.right].length + sizeof "\" \",";
	if (all->count == all->room) {
		size_t room = all->room ? 2 * all->room : 256;
		struct implied *grown = realloc(all->found, room * sizeof *grown);

		if (!grown)
			return false;
		all->found = grown;
		all->room = room;
	}
	all->found[all->count++] = *found;
	return true;
}

/* Find all pairs of tokens that join to this one. */
static bool split_token(struct implying *all, const struct xfp_gguf_vocabulary *v, uint32_t token, double score)
{
	const struct xfp_gguf_text *text = &v->tokens[token];
	uint64_t whole = hash_of(text->bytes, text->length), before = 0;
	uint32_t characters = 0;

	for (uint64_t i = 1; i < text->length; i++) {
		struct implied found = { .score = score, .number = all->count };
		uint64_t after;

		before = before * HASH_BASE + (unsigned char)text->bytes[i - 1] + 1;
		if (xfp_utf8_continues(text->bytes[i]))
			continue;
		found.left_length = ++characters;
		after = whole - before * v->powers[text->length - i];
		found.merge.left = find_hashed(v, before, text->bytes, i);
		if (found.merge.left == UINT32_MAX || !is_piece(v, found.merge.left))
			continue;
		found.merge.right = find_hashed(v, after, text->bytes + i, text->length - i);
		if (found.merge.right == UINT32_MAX || !is_piece(v, found.merge.right))
			continue;
		if (!keep_implied(all, v, &found))
			return false;
		if (all->text > all->most_text)
			break;
	}
	return true;
}

enum xfp_status xfp_gguf_merges_derive(struct xfp_gguf_merges *m, const struct xfp_gguf_vocabulary *v,
				       const struct xfp_gguf_value *scores, const char **wrong)
{
	struct implying all = { .most_text = MIN_TEXT_SIZE };
	enum xfp_status status = XFP_OK;

	*wrong = NULL;
	*m = (struct xfp_gguf_merges){ .count = 0 };
	for (uint32_t i = 0; i < v->count; i++)
		all.most_text += MAX_TEXT * v->tokens[i].length;
	for (uint32_t i = 0; !status && !*wrong && i < v->count; i++) {
		double score = -(double)i;

		if (scores && (!scores->array || !xfp_gguf_real(scores, i, &score) || !(score == score)))
			*wrong = "its tokenizer.ggml.scores is not a number for every token";
		else if (is_piece(v, i) && !split_token(&all, v, i, score))
			status = XFP_FAILED;
		else if (all.text > all.most_text || all.count >= UINT32_MAX / 4)
			*wrong = "its tokens imply more merges than any real tokenizer has";
	}
	if (!status && !*wrong && all.count)
		qsort(all.found, all.count, sizeof *all.found, compare);
	for (uint32_t i = 0; !status && !*wrong && i < all.count; i++)
		if (!add_merge(m, v, all.found[i].merge.left, all.found[i].merge.right))
			status = XFP_FAILED;
	free(all.found);
	return status;
}
