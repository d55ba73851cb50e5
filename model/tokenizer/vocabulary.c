/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/vocabulary.h"

#include <stdlib.h>

#include "base/printable.h"
#include "base/utf8.h"

#define NONE UINT32_MAX

struct token {
	size_t at; /* in texts */
	uint32_t size, id;
};

struct xfp_vocabulary {
	struct xfp_growable texts;
	struct token *token; /* by id */
	uint32_t tokens, longest;
	uint32_t *by_text; /* open addressing: indices of tokens, or NONE */
	size_t text_mask;
};

size_t xfp_hash_mask(size_t entries)
{
	size_t places = 16;

	while (places < 2 * entries)
		places *= 2;
	return places - 1;
}

uint64_t xfp_probe_limit(size_t entries)
{
	return 64 * ((uint64_t)entries + 64);
}

/* FNV-1a, whose bits are mixed by slot_of. */
#define HASH_START 0xcbf29ce484222325

static uint64_t hash_more(uint64_t h, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		h = (h ^ (unsigned char)text[i]) * 0x100000001b3;
	return h;
}

static size_t slot_of(uint64_t hash)
{
	return (size_t)(hash ^ hash >> 29);
}

static int by_id(const void *a, const void *b)
{
	const struct token *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* The id of the token with this hash that consists of two parts. */
static int64_t find(const struct xfp_vocabulary *v, uint64_t hash, const char *first, size_t first_size,
		    const char *second, size_t second_size)
{
	for (size_t at = slot_of(hash);; at++) {
		uint32_t index = v->by_text[at & v->text_mask];
		const char *text;

		if (index == NONE)
			return -1;
		text = v->texts.bytes + v->token[index].at;
		if (v->token[index].size == first_size + second_size && !memcmp(text, first, first_size) &&
		    !memcmp(text + first_size, second, second_size))
			return v->token[index].id;
	}
}

int64_t xfp_vocabulary_find(const struct xfp_vocabulary *v, const char *text, size_t size)
{
	return find(v, hash_more(HASH_START, text, size), "", 0, text, size);
}

int64_t xfp_vocabulary_joined(const struct xfp_vocabulary *v, uint32_t first, uint32_t second)
{
	size_t first_size = 0, second_size = 0;
	const char *a = xfp_vocabulary_text(v, first, &first_size), *b = xfp_vocabulary_text(v, second, &second_size);

	if (!a || !b || first_size + second_size > v->longest)
		return -1;
	return find(v, hash_more(hash_more(HASH_START, a, first_size), b, second_size), a, first_size, b, second_size);
}

size_t xfp_vocabulary_longest(const struct xfp_vocabulary *v, const char *prefix, const char *text, size_t size,
			      uint32_t *id)
{
	size_t before = strlen(prefix), longest = 0, at = 0;
	uint64_t hash = hash_more(HASH_START, prefix, before);

	while (at < size && before + at < v->longest) {
		uint32_t character;
		size_t length = xfp_utf8_decode(text + at, &character);
		int64_t found;

		hash = hash_more(hash, text + at, length);
		at += length;
		if ((found = find(v, hash, prefix, before, text, at)) < 0)
			continue;
		longest = at;
		*id = (uint32_t)found;
	}
	return longest;
}

const char *xfp_vocabulary_text(const struct xfp_vocabulary *v, uint32_t id, size_t *size)
{
	const struct token key = { .id = id }, *token = NULL;

	/* Usually, ids have no gaps. */
	if (id < v->tokens && v->token[id].id == id)
		token = &v->token[id];
	else if (v->tokens)
		token = bsearch(&key, v->token, v->tokens, sizeof key, by_id);
	if (!token)
		return NULL;
	*size = token->size;
	return v->texts.bytes + token->at;
}

uint32_t xfp_vocabulary_ids(const struct xfp_vocabulary *v)
{
	return v->tokens ? v->token[v->tokens - 1].id + 1 : 0;
}

static void read_tokens(struct xfp_part_reader *r, struct xfp_vocabulary *v, const json_t *object)
{
	const char *text;
	json_t *value;

	json_object_foreach ((json_t *)object, text, value) {
		json_int_t id = json_is_integer(value) ? json_integer_value(value) : -1;
		size_t size = strlen(text);

		if (id < 0 || id >= INT32_MAX || size > INT32_MAX) {
			xfp_part_refuse(r, "model", "vocab: \"%s\" has no id from 0 to 2147483646",
					xfp_printable(text).text);
			return;
		}
		v->token[v->tokens++] =
			(struct token){ .at = v->texts.size, .size = (uint32_t)size, .id = (uint32_t)id };
		v->longest = size > v->longest ? (uint32_t)size : v->longest;
		if (!xfp_growable_add(&v->texts, text, size)) {
			r->status = xfp_no_memory_for(r->err, r->file);
			return;
		}
	}
}

static void fill(struct xfp_part_reader *r, struct xfp_vocabulary *v)
{
	uint64_t probes = xfp_probe_limit(v->tokens);

	memset(v->by_text, 0xff, (v->text_mask + 1) * sizeof *v->by_text);
	qsort(v->token, v->tokens, sizeof *v->token, by_id);
	for (uint32_t i = 0; i < v->tokens && !r->status; i++) {
		size_t at = slot_of(hash_more(HASH_START, v->texts.bytes + v->token[i].at, v->token[i].size));

		if (i && v->token[i - 1].id == v->token[i].id)
			xfp_part_refuse(r, "model", "vocab: two tokens have the id %u", v->token[i].id);
		for (; v->by_text[at & v->text_mask] != NONE && probes; probes--)
			at++;
		if (!probes)
			xfp_part_refuse(r, "model", "vocab: too many hash collisions; not a real tokenizer");
		v->by_text[at & v->text_mask] = i;
	}
}

struct xfp_vocabulary *xfp_vocabulary_open(struct xfp_part_reader *r, const json_t *object)
{
	size_t count = json_object_size(object);
	struct xfp_vocabulary *v;

	if (!json_is_object(object) || count > INT32_MAX)
		xfp_part_refuse(r, "model", "vocab is not an object of tokens");
	if (r->status)
		return NULL;
	if ((v = calloc(1, sizeof *v))) {
		v->text_mask = xfp_hash_mask(count);
		v->token = calloc(count + 1, sizeof *v->token);
		v->by_text = malloc((v->text_mask + 1) * sizeof *v->by_text);
	}
	if (!v || !v->token || !v->by_text || !xfp_growable_add(&v->texts, "", 1))
		r->status = xfp_no_memory_for(r->err, r->file);
	if (!r->status)
		read_tokens(r, v, object);
	if (!r->status)
		fill(r, v);
	if (!r->status)
		return v;
	xfp_vocabulary_free(v);
	return NULL;
}

void xfp_vocabulary_free(struct xfp_vocabulary *v)
{
	if (!v)
		return;
	free(v->texts.bytes);
	free(v->token);
	free(v->by_text);
	free(v);
}
