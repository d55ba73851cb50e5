/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of a tokenizer when memory runs out, at every allocation: it fails, reports that, and leaks nothing.
 */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/files.h"

static size_t asked, fails_at; /* counted from 1; 0: never */
static size_t held;            /* blocks not freed yet */

static int refused(void)
{
	return fails_at && ++asked == fails_at;
}

/* Replace the functions of libc through the linker's --wrap. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

static void *counted(void *block)
{
	held += block != NULL;
	return block;
}

void *__wrap_malloc(size_t size)
{
	return refused() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
	return refused() ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *block, size_t size)
{
	if (refused())
		return NULL;
	held -= block != NULL;
	return counted(__real_realloc(block, size));
}

char *__wrap_strdup(const char *text)
{
	return refused() ? NULL : counted(__real_strdup(text));
}

void __wrap_free(void *block)
{
	held -= block != NULL;
	__real_free(block);
}

/* With a part of every kind, as far as they can be combined. */
static const char file[] =
	"{\"model\":{\"type\":\"BPE\",\"unk_token\":\"b\",\"byte_fallback\":true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,"
	"\"<0xC3>\":3,\"<0xA9>\":4},\"merges\":[\"a b\"]},\"added_tokens\":[{\"id\":5,"
	"\"content\":\"<x>\",\"special\":true},"
	"{\"id\":6,\"content\":\"ba\"}],\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},"
	"{\"type\":\"Prepend\",\"prepend\":\"b\"},{\"type\":\"Replace\","
	"\"pattern\":{\"String\":\"c\"},\"content\":\"a\"}]},"
	"\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"behavior\":\"Isolated\","
	"\"pattern\":{\"Regex\":\"\\\\p{L}{1,2}+\"}},{\"type\":\"Digits\"},{\"type\":\"Metaspace\","
	"\"replacement\":\"_\"}]},"
	"\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\"}},"
	"{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"x\":{\"ids\":[5]}}},\"decoder\":{\"type\":\"Sequence\","
	"\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"_\"},\"content\":\" \"},"
	"{\"type\":\"ByteFallback\"},"
	"{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":1}]}}";

/* BERT and, with a token for each byte (of which one is shown), Kimi. */
static const char bert[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nab\n##e\ne\n##\xcc\x81\ncb\n##1\n2\n";
static const char config[] =
	"{\"tokenizer_class\":\"TikTokenTokenizer\",\"added_tokens_decoder\":{\"259\":{\"content\":\"<x>\"}}}";
static char ranks[4096];

static void fill_ranks(void)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t size = 0;

	for (int i = 0; i < 256; i++)
		size += (size_t)snprintf(ranks + size, sizeof ranks - size, "%c%c== %d\n", digits[i >> 2],
					 digits[(i & 3) << 4], i);
	snprintf(ranks + size, sizeof ranks - size, "YWI= 256\n"); /* ab */
}

static const struct source {
	const char *name, *content, *config;
} sources[] = { { "tokenizer.json", file, NULL }, { "vocab.txt", bert, "{}" }, { "tiktoken.model", ranks, config } };

static enum xfp_status read_file(void *source, const char *name, char **bytes, size_t *size, struct xfp_error *err)
{
	const struct source *s = source;
	const char *content = !strcmp(name, s->name)                                ? s->content
			      : s->config && !strcmp(name, "tokenizer_config.json") ? s->config
										    : NULL;

	*bytes = content ? strdup(content) : NULL;
	*size = *bytes ? strlen(*bytes) : 0;
	return content && !*bytes ? xfp_no_memory(err) : XFP_OK;
}

static enum xfp_status use(const struct source *source, struct xfp_error *err)
{
	const struct xfp_tokenizer_files files = { read_file, (void *)source, "m" };

	static const char text[] = "ab \xc3\xa9 e\xcc\x81<x> cb1 2 \xff";
	struct xfp_tokenizer *t = NULL;
	struct xfp_token_ids ids = { 0 };
	enum xfp_status status;
	char *whole = NULL;
	size_t size = 0;

	if ((status = xfp_tokenizer_open_files(&files, &t, err)))
		return status;
	status = xfp_tokenizer_encode(t, text, sizeof text - 1, true, &ids, err);
	assert_true(!status || !ids.count);
	if (!status)
		status = xfp_tokenizer_decode(t, ids.id, ids.count, false, &whole, &size, err);
	free(whole);
	free(ids.id);
	xfp_tokenizer_free(t);
	return status;
}

static void everywhere(void **state)
{
	(void)state;
	fill_ranks();
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		struct xfp_error err = { 0 };
		size_t failures = 0, before = held;

		if (use(&sources[i], &err))
			fail_msg("%s", err.text);
		assert_int_equal(held, before);
		for (fails_at = 1;; fails_at++) {
			enum xfp_status status;

			asked = 0;
			err = (struct xfp_error){ 0 };
			status = use(&sources[i], &err);
			if (asked < fails_at)
				break;
			failures++;
			if (status != XFP_FAILED || !strstr(err.text, "out of memory"))
				fail_msg("%s: request %d: %s", sources[i].name, (int)fails_at, err.text);
			assert_int_equal(held, before);
		}
		fails_at = 0;
		assert_true(failures > 40);
	}
}

PROGRAM("test_tokenizer_memory")
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(everywhere) };

	return cmocka_run_group_tests_name("tokenizer_memory", tests, NULL, NULL);
}
