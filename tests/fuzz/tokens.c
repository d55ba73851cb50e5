/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/tokens.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/gguf/synthesized.h"

#define MAX_KEYS 12
#define MAX_TOKENS 40
#define LONGEST 9

struct made_of {
	const uint8_t *at, *end;
	struct xfp_gguf_value values[MAX_KEYS];
	uint32_t by_key[MAX_KEYS], count;
	unsigned char bytes[MAX_KEYS][MAX_TOKENS * (8 + 2 * LONGEST + 1)];
	size_t used; /* bytes of the current value */
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static uint8_t next(struct made_of *m)
{
	return m->at < m->end ? *m->at++ : 0;
}

/* Keys come in their order. */
static void add(struct made_of *m, const char *key, enum xfp_gguf_kind kind, bool array, uint64_t count)
{
	must(m->count < MAX_KEYS && m->used <= sizeof m->bytes[0]);
	m->values[m->count] = (struct xfp_gguf_value){ .key = { key, strlen(key) },
						       .kind = kind,
						       .array = array,
						       .count = count,
						       .at = m->bytes[m->count],
						       .bytes = m->used };
	m->by_key[m->count] = m->count;
	m->count++;
	m->used = 0;
}

static void append(struct made_of *m, const char *text, size_t length)
{
	unsigned char *to = m->bytes[m->count] + m->used;

	xfp_store64(to, length);
	memcpy(to + 8, text, length);
	m->used += 8 + length;
}

/* Tokens of few characters, so that some are concatenations of others; the first few are characters. */
static size_t make_token(struct made_of *m, uint8_t number, char text[LONGEST * 3])
{
	static const char *const parts[8] = { "a", "b", "\xe2\x96\x81", " ", "\"", "\xc3\xa9", "\x01", "ab" };
	uint8_t how = next(m);
	size_t length = 0;

	for (unsigned i = number < 4 ? 1 : how % 4; i; i--) {
		const char *part = parts[number < 4 ? number : next(m) % 4];

		memcpy(text + length, part, strlen(part));
		length += strlen(part);
	}
	return length;
}

static void make_texts(struct made_of *m, const char *key, uint8_t count, bool pairs)
{
	for (uint8_t i = 0; i < count; i++) {
		char text[2 * LONGEST * 3 + 1];
		size_t length = make_token(m, pairs ? 4 : i, text);

		if (pairs) {
			text[length++] = ' ';
			length += make_token(m, 4, text + length);
		}
		append(m, text, length);
	}
	add(m, key, XFP_GGUF_TEXT, true, count);
}

static void make_number(struct made_of *m, const char *key)
{
	m->bytes[m->count][0] = next(m);
	m->used = 1;
	add(m, key, XFP_GGUF_U8, false, 1);
}

static void make_metadata(struct made_of *m)
{
	static const char *const models[4] = { "llama", "gpt2", "llama", "t5" };
	static const char *const pres[4] = { "qwen2", "llama-bpe", "default", "?" };
	static const char *const architectures[4] = { "llama", "gemma2", "phi3", "llama" };
	uint8_t what = next(m), count = next(m) % MAX_TOKENS, numbers;

	append(m, architectures[what & 3], strlen(architectures[what & 3]));
	add(m, "general.architecture", XFP_GGUF_TEXT, false, 1);
	if (what & 4) {
		m->bytes[m->count][0] = 1;
		m->used = 1;
		add(m, "tokenizer.ggml.add_bos_token", XFP_GGUF_BOOL, false, 1);
	}
	make_number(m, "tokenizer.ggml.bos_token_id");
	make_number(m, "tokenizer.ggml.eos_token_id");
	if (what & 8)
		make_texts(m, "tokenizer.ggml.merges", next(m) % 8, true);
	append(m, models[what >> 4 & 3], strlen(models[what >> 4 & 3]));
	add(m, "tokenizer.ggml.model", XFP_GGUF_TEXT, false, 1);
	append(m, pres[what >> 6], strlen(pres[what >> 6]));
	add(m, "tokenizer.ggml.pre", XFP_GGUF_TEXT, false, 1);
	numbers = next(m) % 8 ? count : next(m) % MAX_TOKENS;
	for (uint8_t i = 0; i < numbers; i++, m->used += sizeof(float)) {
		float score = (float)(next(m) % 64) - 32;

		memcpy(m->bytes[m->count] + m->used, &score, sizeof score);
	}
	add(m, "tokenizer.ggml.scores", XFP_GGUF_F32, true, numbers);
	for (uint8_t i = 0; i < numbers; i++) { /* mostly mergeable tokens */
		uint8_t type = next(m);

		m->bytes[m->count][m->used++] = type < 200 ? 1 : type % 8;
	}
	add(m, "tokenizer.ggml.token_type", XFP_GGUF_U8, true, numbers);
	make_texts(m, "tokenizer.ggml.tokens", count, false);
}

/* Both halves and the result are tokens. */
static void check_merge(const json_t *vocabulary, const json_t *merge)
{
	char text[4 * LONGEST * 3], left[sizeof text], right[sizeof text];
	const char *space;

	if (json_is_array(merge)) {
		snprintf(left, sizeof left, "%s", json_string_value(json_array_get(merge, 0)));
		snprintf(right, sizeof right, "%s", json_string_value(json_array_get(merge, 1)));
	} else {
		snprintf(text, sizeof text, "%s", json_string_value(merge));
		must((space = strchr(text, ' ')) && !strchr(space + 1, ' '));
		snprintf(left, sizeof left, "%.*s", (int)(space - text), text);
		snprintf(right, sizeof right, "%s", space + 1);
	}
	must(json_object_get(vocabulary, left) && json_object_get(vocabulary, right));
	must((size_t)snprintf(text, sizeof text, "%s%s", left, right) < sizeof text);
	must(json_object_get(vocabulary, text) != NULL);
}

int fuzz_tokens(const uint8_t *data, size_t size)
{
	struct made_of *m = calloc(1, sizeof *m);
	struct xfp_checkpoint *c = calloc(1, sizeof *c);
	struct xfp_gguf_metadata metadata;
	int merges = -1;

	must(m && c && (c->folder = strdup("/nowhere")) != NULL);
	m->at = data;
	m->end = data + size;
	make_metadata(m);
	metadata = (struct xfp_gguf_metadata){ .values = m->values, .by_key = m->by_key, .count = m->count };
	must(!xfp_gguf_make_tokenizer(&metadata, c, NULL));
	must(c->synthesized_count == 2 || (!c->synthesized_count && c->note_count == 1));
	for (uint32_t i = 0; i < c->synthesized_count; i++) {
		json_t *root =
			json_loadb(c->synthesized[i].bytes, c->synthesized[i].size, JSON_REJECT_DUPLICATES, NULL);
		const json_t *model = json_object_get(root, "model"), *list = json_object_get(model, "merges");

		must(root && c->synthesized[i].size < 1 << 20);
		for (size_t k = 0; k < json_array_size(list); k++)
			check_merge(json_object_get(model, "vocab"), json_array_get(list, k));
		merges = list ? (int)json_array_size(list) : merges;
		json_decref(root);
	}
	xfp_checkpoint_close(c);
	free(m);
	return merges;
}
