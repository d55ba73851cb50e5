/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokenizers of tests/tokenizer_families.json, compared with the stored ids and texts; invalid UTF-8; refusals;
 * splitting; and words of a million letters.
 */
#include "tests/unit/tokenizer_families.h"

#include <time.h>

#include "model/tokenizer/pattern.h"

static enum xfp_status open_text(const char *text, struct xfp_tokenizer **t, struct xfp_error *err)
{
	return xfp_tokenizer_open(text, strlen(text), "t.json", t, err);
}

static struct xfp_tokenizer *family(const char *name)
{
	for (size_t i = 0; i < json_array_size(families); i++)
		if (!strcmp(json_string_value(json_object_get(json_array_get(families, i), "name")), name))
			return opened(json_object_get(json_array_get(families, i), "files"));
	fail_msg("there is no %s", name);
	return NULL;
}

static void expect_ids(const struct xfp_token_ids *ids, const json_t *wanted, const char *name, const char *text)
{
	for (size_t i = 0; i < ids->count && i < json_array_size(wanted); i++)
		if (ids->id[i] != json_integer_value(json_array_get(wanted, i)))
			fail_msg("%s: %s: id %d is %u", name, text, (int)i, ids->id[i]);
	if (ids->count != json_array_size(wanted))
		fail_msg("%s: %s: %d ids", name, text, (int)ids->count);
}

/* At once, and token by token: no piece begins or ends within a character. */
static void expect_text(const struct xfp_tokenizer *t, const struct xfp_token_ids *ids, bool plain, const char *wanted,
			const char *name)
{
	struct xfp_decoding *d = NULL;
	size_t size = 0, done = 0;
	char *whole = NULL;

	assert_int_equal(xfp_tokenizer_decode(t, ids->id, ids->count, plain, &whole, &size, NULL), XFP_OK);
	if (size != strlen(wanted) || memcmp(whole, wanted, size))
		fail_msg("%s: \"%s\" instead of \"%s\"", name, whole, wanted);
	assert_int_equal(xfp_decoding_begin(t, plain, &d, NULL), XFP_OK);
	for (size_t i = 0; i <= ids->count; i++) {
		const char *piece = NULL;

		assert_int_equal(i < ids->count ? xfp_decoding_add(d, ids->id[i], &piece, &size, NULL)
						: xfp_decoding_end(d, &piece, &size, NULL),
				 XFP_OK);
		if (done + size > strlen(wanted) || memcmp(piece, wanted + done, size) ||
		    (size && (*piece & 0xc0) == 0x80))
			fail_msg("%s: token %d is \"%.*s\"", name, (int)i, (int)size, piece);
		done += size;
	}
	assert_int_equal(done, strlen(wanted));
	xfp_decoding_free(d);
	free(whole);
}

static void stored(void **state)
{
	size_t index, row;
	json_t *one, *text;

	(void)state;
	assert_true(json_array_size(families) > 10);
	json_array_foreach(families, index, one)
	{
		struct xfp_tokenizer *t = opened(json_object_get(one, "files"));
		const char *name = json_string_value(json_object_get(one, "name"));
		json_t *mixed = json_object_get(one, "ids");
		struct xfp_token_ids ids = { 0 };

		json_array_foreach(json_object_get(one, "texts"), row, text)
		{
			const char *bytes = json_string_value(json_array_get(text, 0));

			for (int whole = 0; whole < 2; whole++) {
				ids.count = 0;
				assert_int_equal(xfp_tokenizer_encode(t, bytes, strlen(bytes), whole, &ids, NULL),
						 XFP_OK);
				expect_ids(&ids, json_array_get(text, whole ? 1 : 2), name, bytes);
			}
			expect_text(t, &ids, false, json_string_value(json_array_get(text, 3)), name);
			expect_text(t, &ids, true, json_string_value(json_array_get(text, 4)), name);
		}
		ids.count = json_array_size(json_array_get(mixed, 0));
		ids.id = realloc(ids.id, ids.capacity = (ids.count + 1) * sizeof *ids.id);
		for (size_t at = 0; at < ids.count; at++)
			ids.id[at] = (uint32_t)json_integer_value(json_array_get(json_array_get(mixed, 0), at));
		expect_text(t, &ids, false, json_string_value(json_array_get(mixed, 1)), name);
		expect_text(t, &ids, true, json_string_value(json_array_get(mixed, 2)), name);
		free(ids.id);
		xfp_tokenizer_free(t);
	}
}

static void expect_same(const struct xfp_tokenizer *t, const char *broken, size_t size, const char *sound)
{
	struct xfp_token_ids a = { 0 }, b = { 0 };

	assert_int_equal(xfp_tokenizer_encode(t, broken, size, false, &a, NULL), XFP_OK);
	assert_int_equal(xfp_tokenizer_encode(t, sound, strlen(sound), false, &b, NULL), XFP_OK);
	assert_int_equal(a.count, b.count);
	assert_memory_equal(a.id, b.id, a.count * sizeof *a.id);
	free(a.id);
	free(b.id);
}

#define U "\xef\xbf\xbd"

/* As Python's bytes.decode(errors='replace'). */
static void broken(void **state)
{
	struct xfp_tokenizer *t = family("qwen2");

	(void)state;
	expect_same(t,
		    "a\xff"
		    "b",
		    3, "a" U "b");
	expect_same(t, "\xe2\x82", 2, U); /* truncated: one */
	expect_same(t, "\xe2\x82z", 3, U "z");
	expect_same(t, "\xf0\x9f\x91 \x80", 5, U " " U);
	expect_same(t, "\xc0\xaf", 2, U U); /* overlong: one each */
	expect_same(t, "\xe0\x80\x80", 3, U U U);
	expect_same(t, "\xed\xa0\x80", 3, U U U);       /* a surrogate */
	expect_same(t, "\xf4\x90\x80\x80", 4, U U U U); /* beyond U+10FFFF */
	expect_same(t, "\xf8\x88\x80\x80\x80", 5, U U U U U);
	expect_same(t, "\xe2\x28\xa1", 3, U "(" U);
	xfp_tokenizer_free(t);
}

static void ids_of_tokens(void **state)
{
	struct xfp_tokenizer *t = family("llama2");
	uint32_t id = 0;

	(void)state;
	assert_true(xfp_tokenizer_find(t, "</s>", &id));
	assert_int_equal(id, 2);
	assert_true(xfp_tokenizer_find(t, "<|end|>", &id));
	assert_true(id < xfp_tokenizer_ids(t));
	assert_false(xfp_tokenizer_find(t, "<nothing>", &id));
	xfp_tokenizer_free(t);
}

#define MODEL "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"
#define SPLIT(expression)                                                                                       \
	"{" MODEL                                                                                               \
	",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"" expression \
	"\"}}}"

static void refused(void **state)
{
	static const struct {
		const char *file, *said;
	} all[] = {
		{ "{", "not JSON" },
		{ "[]", "not an object" },
		{ "{}", "not a tokenizer.json" },
		{ "{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", "Unigram is not supported" },
		{ "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{}}}", "model: unk_token is missing" },
		{ "{\"model\":{\"vocab\":{},\"max_input_chars_per_word\":1,\"unk_token\":\"u\","
		  "\"continuing_subword_prefix\":\"\"}}",
		  "unk_token u is not in vocab" },
		{ "{\"model\":{\"vocab\":{},\"max_input_chars_per_word\":1,\"unk_token\":\"u\"}}",
		  "continuing_subword_prefix is missing" },
		{ "{\"model\":{\"vocab\":{\"u\":0},\"max_input_chars_per_word\":1,\"unk_token\":\"u\","
		  "\"continuing_subword_prefix\":\"\",\"merges_\":[]}}",
		  "member \"merges_\"" },
		{ "{" MODEL ",\"chat\":1}", "member \"chat\" is not known" },
		{ "{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[],\"new\":1}}", "model: member \"new\"" },
		{ "{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[],\"dropout\":0.1}}", "dropout" },
		{ "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", "\"a\" has no id" },
		{ "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1,\"b\":1},\"merges\":[]}}",
		  "two tokens have the id 1" },
		{ "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[\"a\"]}}", "merges[0] is not two" },
		{ "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[[\"a\",\"b\"]]}}", "lacks the second" },
		{ "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1},\"merges\":[\"a a\"]}}", "the merged token" },
		{ "{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[],\"unk_token\":\"u\"}}", "unk_token u" },
		{ "{\"model\":{\"type\":5}}", "type is not a text" },
		{ "{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[],\"dropout\":\"some\"}}", "dropout" },
		{ "{" MODEL ",\"normalizer\":{\"type\":\"Nmt\"}}", "normalizer: Nmt is not supported" },
		{ "{" MODEL ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFX\"}]}}",
		  "normalizer[0]: NFX is not supported" },
		{ "{" MODEL ",\"normalizer\":{\"type\":\"NFC\",\"strict\":true}}", "member \"strict\"" },
		{ "{" MODEL ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"\"}}",
		  "pattern is empty" },
		{ "{" MODEL ",\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}}", "UnicodeScripts is not supported" },
		{ "{" MODEL ",\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"__\"}}",
		  "not one character" },
		{ "{" MODEL ",\"post_processor\":{\"type\":\"BertProcessing\"}}",
		  "post_processor: cls has an invalid id" },
		{ "{" MODEL ",\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"c\",1],\"sep\":[\"s\"]}}",
		  "post_processor: sep has an invalid id" },
		{ "{" MODEL ",\"post_processor\":{\"type\":\"Processing\"}}", "Processing is not supported" },
		{ "{" MODEL ",\"decoder\":{\"type\":\"CTC\"}}", "decoder: CTC is not supported" },
		{ "{" MODEL ",\"added_tokens\":[{\"id\":7,\"content\":\"a\"}]}", "7 here, and 0 in the vocabulary" },
		{ "{" MODEL ",\"added_tokens\":[{\"id\":7,\"content\":\"x\"},{\"id\":7,\"content\":\"y\"}]}",
		  "the id 7" },
		{ SPLIT("\\\\bx"), "an escape other than" },
		{ SPLIT("(?<name>x)"), "a group of another kind" },
		{ SPLIT("(?i:[a&&b])"), "an intersection" },
		{ SPLIT("(?i:[a[b]])"), "within another" },
		{ SPLIT("[a&&]"), "an empty set" },
		{ SPLIT("[&&a]"), "an empty set" },
		{ SPLIT("[a&&&&a]"), "an empty set" },
		{ SPLIT("[a[]]"), "an empty set" },
		{ SPLIT("[a&&b"), "without an end" },
		{ SPLIT("[a[b]"), "without an end" },
		{ SPLIT("[!-&&a]"), "begins or ends with a class" },
		{ SPLIT("[!-[a]]"), "begins or ends with a class" },
		{ SPLIT("(x"), "a ( without a )" },
		{ SPLIT("+"), "a repetition of nothing" },
		{ SPLIT("[z-a]"), "ends before it begins" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct xfp_tokenizer *t = NULL;
		struct xfp_error err = { 0 };

		if (open_text(all[i].file, &t, &err) != XFP_BAD_INPUT || t || !strstr(err.text, all[i].said) ||
		    strncmp(err.text, "t.json: ", 8))
			fail_msg("%s: %s", all[i].file, err.text);
	}
}

/* The treatment of matches, two of them adjacent, shown by words that are tokens. */
static void pieces(void **state)
{
	static const struct {
		const char *behaviour, *cut;
	} all[] = {
		{ "Isolated", "b|a|a|b|" },      { "Removed", "b|b|" },       { "MergedWithPrevious", "ba|a|b|" },
		{ "MergedWithNext", "b|a|ab|" }, { "Contiguous", "b|aa|b|" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct xfp_token_ids ids = { 0 };
		struct xfp_tokenizer *t = NULL;
		char file[512], cut[64] = "";

		snprintf(file, sizeof file,
			 "{\"model\":{\"type\":\"BPE\",\"ignore_merges\":true,\"merges\":[],\"vocab\":{\"a\":0,\"b\":1,"
			 "\"aa\":2,\"ab\":3,\"ba\":4}},\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"%s\","
			 "\"pattern\":{\"String\":\"a\"}}}",
			 all[i].behaviour);
		assert_int_equal(open_text(file, &t, NULL), XFP_OK);
		assert_int_equal(xfp_tokenizer_encode(t, "baab", 4, true, &ids, NULL), XFP_OK);
		for (size_t k = 0; k < ids.count; k++) {
			char *text = NULL;
			size_t size;

			assert_int_equal(xfp_tokenizer_decode(t, &ids.id[k], 1, false, &text, &size, NULL), XFP_OK);
			snprintf(cut + strlen(cut), sizeof cut - strlen(cut), "%s|", text);
			free(text);
		}
		assert_string_equal(cut, all[i].cut);
		free(ids.id);
		xfp_tokenizer_free(t);
	}
}

#define UNKNOWN "\"vocab\":{\"<u>\":0,\"a\":1,\"b\":2,\"<0x63>\":3,\"ab\":4},\"merges\":[\"a b\"]"
#define AFFIXES                                                                                                    \
	"\"continuing_subword_prefix\":\"##\",\"end_of_word_suffix\":\"</w>\",\"vocab\":{\"a\":0,\"##b\":1,"       \
	"\"##b</w>\":2,\"##a\":3,\"a##b\":4,\"ab\":5,\"ab</w>\":6,\"a</w>\":7,\"b\":8,\"##a</w>\":9,\"ab##a\":10," \
	"\"aba</w>\":11}"
#define THREE "\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"bc\":3,\"ab\":4,\"abc\":5}"
#define WHOLE                                                                                                   \
	"\"ignore_merges\":true,\"merges\":[],\"vocab\":{\"a\":0,\"b\":1,\"aa\":2,\"ab\":3,\"ba\":4,\"\\n\":5," \
	"\"\\na\":6,\"a\\n\":7,\"\xe2\x96\x81"                                                                  \
	"a\":8,\"\xe2\x96\x81\":9,\"\xe2\x96\x81"                                                               \
	"b\":10}"
#define WORDS "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"Removed\"}"
#define CUT(behavior, invert, pattern)                                                            \
	",\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"" behavior "\",\"invert\":" invert \
	",\"pattern\":" pattern "}}"
#define BAR(scheme) \
	"{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"split\":false,\"prepend_scheme\":\"" scheme "\"}"
#define AROUND(token, id)                                                                 \
	"{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"" token \
	"\"}},{\"Sequence\":{\"id\":"                                                     \
	"\"A\"}}],\"pair\":[],\"special_tokens\":{\"" token "\":{\"ids\":[" id "]}}}"

#define MADE(tokens) "\"model\":{\"ignore_merges\":true,\"merges\":[],\"vocab\":{" tokens "}},\"pre_tokenizer\":" WORDS
#define STRIPPED(start, stop) \
	",\"decoder\":{\"type\":\"Strip\",\"content\":\"a\",\"start\":" start ",\"stop\":" stop "}}"

/* Cases that the families lack, as in tokenizers 0.23.3. */
static void corners(void **state)
{
	static const struct {
		const char *file, *text, *ids, *decoded; /* NULL: not checked */
	} all[] = {
		/* separate, or fused; bytes only if requested; nothing without a token for it */
		{ "{\"model\":{" UNKNOWN ",\"unk_token\":\"<u>\"}}", "abxyazcxx", "4 0 0 1 0 0 0 0 ", NULL },
		{ "{\"model\":{" UNKNOWN ",\"unk_token\":\"<u>\",\"fuse_unk\":true}}", "abxyazcxx", "4 0 1 0 ", NULL },
		{ "{\"model\":{" UNKNOWN ",\"unk_token\":\"<u>\",\"byte_fallback\":true}}", "abxyazcxx",
		  "4 0 0 1 3 0 0 0 ", NULL },
		{ "{\"model\":{" UNKNOWN "}}", "abxyazcxx", "4 1 ", NULL },
		/* a pair whose second half was merged into another */
		{ "{\"model\":{" THREE ",\"merges\":[\"b c\",\"a b\",\"a bc\"]}}", "abc", "5 ", NULL },
		{ "{\"model\":{\"vocab\":{\"a\":0,\"<u>\":1,\"-a\":2},\"unk_token\":\"<u>\","
		  "\"continuing_subword_prefix\":\"-\",\"max_input_chars_per_word\":3},\"pre_tokenizer\":" WORDS "}",
		  "aa a b", "0 2 0 1 ", NULL },
		/* WordPiece without a type; a word has three characters at most */
		{ "{\"model\":{\"vocab\":{\"<u>\":0,\"a\":1,\"-b\":2,\"-bb\":3,\"\xc3\xa9\":4,\"-\xc3\xa9\":5},"
		  "\"unk_token\":\"<u>\",\"continuing_subword_prefix\":\"-\",\"max_input_chars_per_word\":3},"
		  "\"pre_tokenizer\":" WORDS ",\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"-\"}}",
		  "ab abb abbb aba b \xc3\xa9\xc3\xa9\xc3\xa9 -b", "1 2 1 3 0 0 0 4 5 5 2 ",
		  "ab abb <u> <u> <u> \xc3\xa9\xc3\xa9\xc3\xa9"
		  "b" },
		{ "{\"model\":{" THREE ",\"merges\":[\"#version: 0.2\",\"a b\"]}}", "abc", "4 2 ", NULL },
		{ "{\"model\":{" AFFIXES ",\"merges\":[\"a ##b\"]},\"pre_tokenizer\":" WORDS "}", "ab a aba abb bab",
		  "0 2 7 5 9 5 2 8 3 2 ", NULL },
		{ "{\"model\":{" AFFIXES
		  ",\"merges\":[\"ab ##a</w>\",\"a ##b\",\"a ##b</w>\"]},\"pre_tokenizer\":" WORDS "}",
		  "ab a aba abb bab", "6 7 11 5 2 8 3 2 ", NULL },
		{ "{\"model\":{" WHOLE "}" CUT("Contiguous", "true", "{\"String\":\"a\"}"), "baab", "1 2 1 ", NULL },
		{ "{\"model\":{" WHOLE "}" CUT("Isolated", "false", "{\"Regex\":\"^a\"}"), "aa\na", "0 7 0 ", NULL },
		{ "{\"model\":{" WHOLE "}" CUT("Removed", "false", "{\"Regex\":\"b|$\"}"), "ab\na", "0 6 ", NULL },
		{ "{\"model\":{" WHOLE "},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" WORDS
		  "," BAR("first") "]}}",
		  "a b a", "8 1 0 ", NULL },
		{ "{\"model\":{" WHOLE "},\"pre_tokenizer\":" BAR("always") "}",
		  "\xe2\x96\x81"
		  "a",
		  "8 ", NULL },
		/* blanks after a token, each of which is a token, too */
		{ "{" MODEL ",\"added_tokens\":[{\"id\":3,\"content\":\"<x>\",\"rstrip\":true,\"normalized\":false},"
		  "{\"id\":4,\"content\":\" \",\"rstrip\":true,\"normalized\":false},"
		  "{\"id\":5,\"content\":\"<y>\",\"lstrip\":true,\"normalized\":false}]}",
		  "ab<x>  ab <x>a   b<y>  <y>ab  ", "2 3 4 4 2 4 3 0 4 4 4 1 5 4 4 5 2 4 4 ", NULL },
		{ "{" MODEL ",\"post_processor\":{\"type\":\"Sequence\",\"processors\":[" AROUND("b", "1") "," AROUND(
			  "a", "0") "]}}",
		  "ab", "0 1 2 ", NULL },
		/* the longest match, and blanks before it that no other token includes */
		{ "{" MODEL ",\"added_tokens\":[{\"id\":3,\"content\":\"x\"},{\"id\":4,\"content\":\"xyz\"},"
		  "{\"id\":5,\"content\":\"<y>\",\"lstrip\":true}]}",
		  "xyzxyxa  <y>  <y><y>", "4 3 3 0 5 5 5 ", "xyz x x a <y> <y> <y>" },
		/* texts that look like byte tokens at first */
		{ "{" MODEL
		  ",\"decoder\":{\"type\":\"ByteLevel\"},\"added_tokens\":[{\"id\":3,\"content\":\"a b\xc4\xa0\"}]}",
		  "aba b\xc4\xa0"
		  "ab",
		  "2 3 2 ",
		  "aba b\xc4\xa0"
		  "ab" },
		{ "{" MADE("\"aaaba\":0,\"b\":1,\"aab\":2,\"baaa\":3") STRIPPED("2", "2"), "aaaba b aab baaa b",
		  "0 1 2 3 1 ", "abbbbab" },
		{ "{" MADE("\"baab\":0,\"ba\":1,\"ab\":2") STRIPPED("0", "2"), "baab ba ab ba", "0 1 2 1 ",
		  "baabbabb" },
		{ "{" MADE(
			  "\"<0xe2>\":0,\"<0x82>\":1,\"<0xAC>\":2,\"b\":3") ",\"decoder\":{\"type\":\"ByteFallback\"}}",
		  "<0xe2> <0x82> <0xAC> b <0xe2> <0x82> b <0xe2>", "0 1 2 3 0 1 3 0 ",
		  "\xe2\x82\xac"
		  "b" U U "b" U },
	};

	(void)state;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		struct xfp_token_ids ids = { 0 };
		struct xfp_tokenizer *t = NULL;
		struct xfp_error err = { 0 };
		char said[256] = "";

		if (open_text(all[i].file, &t, &err))
			fail_msg("%s", err.text);
		assert_int_equal(xfp_tokenizer_encode(t, all[i].text, strlen(all[i].text), true, &ids, NULL), XFP_OK);
		for (size_t k = 0; k < ids.count; k++)
			snprintf(said + strlen(said), sizeof said - strlen(said), "%u ", ids.id[k]);
		if (strcmp(said, all[i].ids))
			fail_msg("%s: %s instead of %s", all[i].file, said, all[i].ids);
		if (all[i].decoded)
			expect_text(t, &ids, false, all[i].decoded, all[i].file);
		free(ids.id);
		xfp_tokenizer_free(t);
	}
}

/* One word of a million letters is merged in the time of sorting it, and so are as many marks after one letter. */
static void long_words(void **state)
{
	static const char *const words[] = { "ab", "a", "\xcc\xa3\xcc\x81" };
	struct xfp_tokenizer *t = NULL;
	size_t size = 1000000;
	char *text = malloc(size);

	(void)state;
	assert_int_equal(open_text("{" MODEL ",\"normalizer\":{\"type\":\"NFC\"}}", &t, NULL), XFP_OK);
	for (size_t w = 0; w < 3; w++) {
		struct xfp_token_ids ids = { 0 };
		clock_t begins = clock();

		for (size_t i = 0; i < size; i++)
			text[i] = words[w][i % strlen(words[w])];
		assert_int_equal(xfp_tokenizer_encode(t, text, size, true, &ids, NULL), XFP_OK);
		assert_int_equal(ids.count, w == 0 ? size / 2 : w == 1 ? size : 0);
		assert_true((double)(clock() - begins) / CLOCKS_PER_SEC < 30);
		free(ids.id);
	}
	xfp_tokenizer_free(t);
	free(text);
}

/* As in model/tokenizer/vocabulary.c and bpe_tables.c. */
static uint64_t hash_of_text(const char *text)
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3;
	return h ^ h >> 29;
}

static uint64_t hash_of_pair(uint32_t left, uint32_t right)
{
	uint64_t h = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15;

	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9;
	return h ^ h >> 31;
}

static void refuse(json_t *file, const char *said)
{
	struct xfp_tokenizer *t = NULL;
	struct xfp_error err = { 0 };
	char *text = json_dumps(file, 0);

	assert_int_equal(open_text(text, &t, &err), XFP_BAD_INPUT);
	if (!strstr(err.text, said))
		fail_msg("%s", err.text);
	free(text);
	json_decref(file);
}

/* Files made to need excessive time or stack. */
static void made_to_take_long(void **state)
{
	json_t *vocab = json_object(), *merges = json_array(), *parts = json_array();
	char token[32], other[32];
	struct xfp_token_ids ids = { 0 };
	struct xfp_tokenizer *t = NULL;
	size_t size = 200000;
	char *blanks = malloc(size);

	(void)state;
	for (unsigned i = 0; json_object_size(vocab) < 1000; i++) {
		snprintf(token, sizeof token, "%x", i);
		if (!(hash_of_text(token) & 2047))
			json_object_set_new(vocab, token, json_integer((int)json_object_size(vocab)));
	}
	refuse(json_pack("{s{so so}}", "model", "vocab", vocab, "merges", merges), "vocab: too many hash collisions");

	vocab = json_object();
	merges = json_array();
	for (uint32_t i = 0; i < 512; i++) {
		snprintf(token, sizeof token, "%03x", i);
		json_object_set_new(vocab, token, json_integer(i));
	}
	for (uint32_t i = 0; json_array_size(merges) < 256; i++) {
		if (hash_of_pair(i / 512, i % 512) & 511)
			continue;
		snprintf(token, sizeof token, "%03x", i / 512);
		snprintf(other, sizeof other, "%03x", i % 512);
		json_array_append_new(merges, json_pack("[ss]", token, other));
		snprintf(token, sizeof token, "%03x%03x", i / 512, i % 512);
		json_object_set_new(vocab, token, json_integer((int)json_object_size(vocab)));
	}
	refuse(json_pack("{s{so so}}", "model", "vocab", vocab, "merges", merges), "merges: too many hash collisions");

	for (int i = 0; i < 65; i++)
		json_array_append_new(parts, json_pack("{ss}", "type", "Fuse"));
	refuse(json_pack("{s{s{} s[]} s{ss so}}", "model", "vocab", "merges", "decoder", "type", "Sequence", "decoders",
			 parts),
	       "decoder: more than 64 parts");

	/* Each blank is a token that includes all blanks after it. */
	assert_int_equal(
		open_text("{" MODEL ",\"added_tokens\":[{\"id\":3,\"content\":\" \",\"rstrip\":true}]}", &t, NULL),
		XFP_OK);
	memset(blanks, ' ', size);
	assert_int_equal(xfp_tokenizer_encode(t, blanks, size, true, &ids, NULL), XFP_OK);
	assert_int_equal(ids.count, size);
	xfp_tokenizer_free(t);
	free(ids.id);
	free(blanks);
}

PROGRAM("test_tokenizer")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stored),        cmocka_unit_test(broken),
		cmocka_unit_test(ids_of_tokens), cmocka_unit_test(refused),
		cmocka_unit_test(long_words),    cmocka_unit_test(pieces),
		cmocka_unit_test(corners),       cmocka_unit_test(made_to_take_long),
	};

	return cmocka_run_group_tests_name("tokenizer", tests, read_families, drop_families);
}
