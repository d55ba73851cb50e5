/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocab.txt and tiktoken.model: refusals, and the defaults of a vocab.txt without tokenizer_config.json.
 */
#include "tests/unit/tokenizer_families.h"

#include "model/tokenizer/content.h"

/* The stored files of a family, with one text in one of them replaced; NULL: the file is missing. */
static json_t *changed(const char *name, const char *file, const char *from, const char *to)
{
	for (size_t i = 0; i < json_array_size(families); i++) {
		json_t *one = json_array_get(families, i), *files = json_deep_copy(json_object_get(one, "files"));
		const char *text = json_string_value(json_object_get(files, file)), *found;
		char *dumped = text ? NULL : json_dumps(json_object_get(files, file), JSON_COMPACT);

		if (strcmp(json_string_value(json_object_get(one, "name")), name)) {
			json_decref(files);
			free(dumped);
			continue;
		}
		text = text ? text : dumped;
		if (!from)
			json_object_del(files, file);
		else if (!(found = strstr(text, from)))
			fail_msg("%s: no %s", name, from);
		else
			json_object_set_new(
				files, file,
				json_sprintf("%.*s%s%s", (int)(found - text), text, to, found + strlen(from)));
		free(dumped);
		return files;
	}
	fail_msg("there is no %s", name);
	return NULL;
}

#define CONFIG "tokenizer_config.json"

static void refused_files(void **state)
{
	static const struct {
		const char *family, *file, *from, *to, *said;
	} all[] = {
		{ "vocab.txt", "vocab.txt", "[UNK]\n", "[PAD]\n",
		  "m: vocab.txt: vocab: line 2 repeats the token [PAD]" },
		{ "vocab.txt", "vocab.txt", "[SEP]", "[S]", "sep_token [SEP] is missing; name it in " CONFIG },
		{ "vocab.txt", "vocab.txt", "[CLS]", "[C]", "cls_token [CLS] is missing" },
		{ "vocab.txt", "vocab.txt", "[UNK]", "[U]", "unk_token [UNK] is missing" },
		{ "vocab.txt", CONFIG, "BertTokenizerFast", "BertJapaneseTokenizer",
		  "m: vocab.txt: " CONFIG ": how BertJapaneseTokenizer splits texts is not known" },
		{ "vocab.txt", CONFIG, "BertTokenizerFast", "BertTokenizerQuick", "BertTokenizerQuick splits" },
		{ "vocab.txt", CONFIG, "\"content\":\"[SEP]\"", "\"content\":5", "content is not a text" },
		{ "vocab.txt", CONFIG, "\"do_lower_case\":false", "\"do_lower_case\":0", "do_lower_case is neither" },
		{ "vocab.txt", CONFIG, "{", "", "m: " CONFIG ": not JSON" },
		{ "vocab.txt", CONFIG, "{", "{\"added_tokens_decoder\":{\"x\":{}},", "x is not the id of a token" },
		{ "vocab.txt", CONFIG, "{", "{\"added_tokens_decoder\":{\"\":{}},", " is not the id of a token" },
		{ "vocab.txt", CONFIG, "{", "{\"added_tokens_decoder\":{\"2147483647\":{}},", "not the id of a token" },
		{ "vocab.txt", CONFIG, "{", "{\"added_tokens_decoder\":{\"7\":5},", "7 is not the id of a token" },
		{ "tiktoken.model", "tiktoken.model", "IQ== 0\n", "IQ== 0\nIQ== 0\n",
		  "m: tiktoken.model: vocab: line 2 repeats a token; download the file again" },
		{ "tiktoken.model", "tiktoken.model", "Ig== 1\n", "", "319 tokens, but a rank of 319" },
		{ "tiktoken.model", "tiktoken.model", "Ig== 1", "Ig== 2", "two tokens have the id 2" },
		{ "tiktoken.model", "tiktoken.model", "Ig== 1", "IiI= 1", "no token for the byte 0x22" },
		{ "tiktoken.model", "tiktoken.model", "Ig== 1", "Ig= 1", "line 2: the token is not Base64" },
		{ "tiktoken.model", "tiktoken.model", "Ig== 1", "I=== 1", "line 2: the token is not Base64" },
		{ "tiktoken.model", "tiktoken.model", "Ig== 1", "I*== 1", "line 2: the token is not Base64" },
		{ "tiktoken.model", "tiktoken.model", "Ig== 1", " 1", "line 2: the token is not Base64" },
		{ "tiktoken.model", "tiktoken.model", "Ig== 1", "Ig==", "line 2 is not a token and its rank" },
		{ "tiktoken.model", "tiktoken.model", "Ig== 1", "Ig== 1x", "line 2 is not a token and its rank" },
		{ "tiktoken.model", "tiktoken.model", "Ig== 1", "Ig== -1", "line 2 is not a token and its rank" },
		{ "tiktoken.model", "tiktoken.model", "Ig== 1", "Ig== 2147483647", "line 2 is not a token" },
		{ "tiktoken.model", CONFIG, NULL, NULL,
		  "m: tiktoken.model: " CONFIG ": how the tokenizer class \"\" splits" },
		{ "tiktoken.model", CONFIG, "tokenization_kimi.", "", NULL },
		{ "tiktoken.model", CONFIG, "tokenization_kimi.", "moonshotai/Kimi-K2--tokenization_kimi.", NULL },
		{ "tiktoken.model", CONFIG, "tokenization_kimi.", "tokenization_moonshot.", NULL },
		{ "tiktoken.model", CONFIG, "tokenization_kimi.", "tokenization_other.",
		  "\"tokenization_other.TikTokenTokenizer\" splits texts is not known to this version, only Kimi's" },
		{ "tiktoken.model", CONFIG, "\"320\"", "\"319\"", "319 is not an id from 320 to 577" },
		{ "tiktoken.model", CONFIG, "\"320\"", "\"577\"", NULL },
		{ "tiktoken.model", CONFIG, "\"320\"", "\"578\"", "578 is not an id from 320 to 577" },
		{ "tiktoken.model", CONFIG, "\"content\":\"<|end|>\"", "\"c\":5", "content is missing" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		json_t *files = changed(all[i].family, all[i].file, all[i].from, all[i].to);
		struct xfp_tokenizer *t = NULL;
		struct xfp_error err = { 0 };
		enum xfp_status status = open_files(files, &t, &err);

		if (status != (all[i].said ? XFP_BAD_INPUT : XFP_OK) || !t != !!all[i].said ||
		    (all[i].said && !strstr(err.text, all[i].said)))
			fail_msg("%s: %s: %s", all[i].file, all[i].to ? all[i].to : "missing", err.text);
		xfp_tokenizer_free(t);
		json_decref(files);
	}
}

static void not_utf8(void **state)
{
	static const char *const vocabs[] = { "[UNK]\na\xff\n", "[UNK]\na\0b\n" };

	(void)state;
	for (size_t i = 0; i < sizeof vocabs / sizeof *vocabs; i++) {
		struct xfp_tokenizer *t = NULL;
		struct xfp_error err = { 0 };

		assert_int_equal(xfp_tokenizer_open_content(xfp_bert_content, vocabs[i], 9, "v", NULL, &t, &err),
				 XFP_BAD_INPUT);
		assert_string_equal(err.text, "v: vocab: line 2 is not UTF-8; download the file again");
	}
}

/* The defaults of transformers for a vocab.txt alone; lines that end in CR LF; the order of the formats. */
static void vocabulary_alone(void **state)
{
	static const char vocab[] = "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\ncafe\r\n##s\r\n\r\n\xe4\xb8\xad";
	static const uint32_t wanted[] = { 2, 5, 6, 8, 4, 1, 3 };
	json_t *files = json_pack("{ss}", "vocab.txt", vocab);
	struct xfp_tokenizer *t = opened(files);
	struct xfp_token_ids ids = { 0 };
	char word[101];

	(void)state;
	assert_int_equal(xfp_tokenizer_encode(t, "CAF\xc3\x89S\xe4\xb8\xad[MASK]x", 16, true, &ids, NULL), XFP_OK);
	assert_int_equal(ids.count, 7);
	assert_memory_equal(ids.id, wanted, sizeof wanted);
	memset(word, 's', sizeof word);
	memcpy(word, "cafe", 4);
	for (size_t size = 100; size <= sizeof word; size++) {
		ids.count = 0;
		assert_int_equal(xfp_tokenizer_encode(t, word, size, false, &ids, NULL), XFP_OK);
		assert_int_equal(ids.count, size > 100 ? 1 : 97);
	}
	xfp_tokenizer_free(t);
	json_object_set_new(files, "tiktoken.model", json_string("x"));
	t = NULL;
	assert_int_equal(open_files(files, &t, NULL), XFP_BAD_INPUT);
	json_object_set_new(files, "tokenizer.json", json_pack("{s{s{} s[]}}", "model", "vocab", "merges"));
	assert_int_equal(open_files(files, &t, NULL), XFP_OK);
	xfp_tokenizer_free(t);
	json_object_clear(files);
	assert_int_equal(open_files(files, &t, NULL), XFP_OK);
	assert_null(t);
	json_decref(files);
	free(ids.id);
}

/* Texts are cut after 400,000 characters, and within 25,001 blanks or 25,001 other characters. */
static void long_texts(void **state)
{
	static const struct {
		const char *begin, *middle, *end;
		size_t repeated, cuts;
	} all[] = { { "", "e", "", 25000, 0 },    { "", "e", "", 25001, 1 },          { " ", "e", "", 25001, 1 },
		    { "", "e", "x", 24999, 0 },   { "", "\x1f ", "", 12500, 0 },      { "", "\x1f ", "", 12501, 1 },
		    { "", "e\n", "", 200001, 1 }, { "", "\xc3\xa9 ", "", 199999, 0 }, { "", "e ", "x", 400000, 2 } };

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		uint32_t done = 0;
		size_t size = strlen(all[i].middle) * all[i].repeated, cuts = 0;
		char *text = malloc(size + 8), *at = text + sprintf(text, "%s", all[i].begin);

		for (size_t k = 0; k < all[i].repeated; k++)
			at += sprintf(at, "%s", all[i].middle);
		at += sprintf(at, "%s", all[i].end);
		for (const char *from = text; from < at; cuts++)
			from += xfp_tiktoken_part(from, (size_t)(at - from), &done);
		if (cuts != all[i].cuts + 1)
			fail_msg("%d: %d parts", (int)i, (int)cuts);
		free(text);
	}
}

/* A token that a cut divides, in a word of 25,001 letters. */
static void divided_token(void **state)
{
	json_t *files = changed("tiktoken.model", CONFIG, "{", "{");
	struct xfp_tokenizer *t = opened(files);
	struct xfp_token_ids ids = { 0 };
	static char text[25001];

	(void)state;
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = "xar"[i ? 2 - i % 2 : 0];
	assert_int_equal(xfp_tokenizer_encode(t, text, 24999, true, &ids, NULL), XFP_OK);
	assert_int_equal(ids.count, 12500);
	ids.count = 0;
	assert_int_equal(xfp_tokenizer_encode(t, text, 25001, true, &ids, NULL), XFP_OK);
	assert_int_equal(ids.count, 12502);
	xfp_tokenizer_free(t);
	json_decref(files);
	free(ids.id);
}

PROGRAM("test_tokenizer_files")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_files), cmocka_unit_test(not_utf8),      cmocka_unit_test(vocabulary_alone),
		cmocka_unit_test(long_texts),    cmocka_unit_test(divided_token),
	};

	return cmocka_run_group_tests_name("tokenizer files", tests, read_families, drop_families);
}
