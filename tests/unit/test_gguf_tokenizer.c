/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizer.json from GGUF metadata generated here: its contents, and metadata without one.
 */
#include <jansson.h>
#include <math.h>

#include "base/bytes.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/gguf/splits.h"
#include "checkpoints/gguf/synthesized.h"
#include "tests/unit/scratch.h"

#define MAX_VALUES 24

static struct xfp_error err;

/* ---- metadata ------------------------------------------------------------------------------------ */

struct metadata_maker {
	struct xfp_gguf_value values[MAX_VALUES];
	uint32_t by_key[MAX_VALUES], count;
};

static struct xfp_gguf_value *put(struct metadata_maker *m, const char *key, enum xfp_gguf_kind kind, bool array,
				  uint64_t count, uint64_t bytes)
{
	struct xfp_gguf_value *value = &m->values[m->count];
	uint32_t at = m->count++;

	assert_true(m->count <= MAX_VALUES);
	*value = (struct xfp_gguf_value){ .key = { key, strlen(key) },
					  .kind = kind,
					  .array = array,
					  .count = count,
					  .at = calloc(1, bytes + 1),
					  .bytes = bytes };
	for (; at && strcmp(m->values[m->by_key[at - 1]].key.bytes, key) > 0; at--)
		m->by_key[at] = m->by_key[at - 1];
	m->by_key[at] = m->count - 1;
	return value;
}

static unsigned char *bytes_of(const struct xfp_gguf_value *value)
{
	return (unsigned char *)(uintptr_t)value->at;
}

static void put_texts(struct metadata_maker *m, const char *key, const char *const *texts, uint64_t count, bool array)
{
	uint64_t bytes = 0;
	unsigned char *at;

	for (uint64_t i = 0; i < count; i++)
		bytes += 8 + strlen(texts[i]);
	at = bytes_of(put(m, key, XFP_GGUF_TEXT, array, count, bytes));
	for (uint64_t i = 0; i < count; i++) {
		xfp_store64(at, strlen(texts[i]));
		memcpy(at + 8, texts[i], strlen(texts[i]));
		at += 8 + strlen(texts[i]);
	}
}

static void put_text(struct metadata_maker *m, const char *key, const char *text)
{
	put_texts(m, key, &text, 1, false);
}

static void put_numbers(struct metadata_maker *m, const char *key, const int32_t *numbers, uint64_t count, bool array)
{
	memcpy(bytes_of(put(m, key, XFP_GGUF_I32, array, count, count * 4)), numbers, count * 4);
}

static void put_number(struct metadata_maker *m, const char *key, int32_t number)
{
	put_numbers(m, key, &number, 1, false);
}

static void put_flag(struct metadata_maker *m, const char *key, bool flag)
{
	*bytes_of(put(m, key, XFP_GGUF_BOOL, false, 1, 1)) = flag;
}

static void put_scores(struct metadata_maker *m, const float *scores, uint64_t count)
{
	memcpy(bytes_of(put(m, "tokenizer.ggml.scores", XFP_GGUF_F32, true, count, count * 4)), scores, count * 4);
}

static struct xfp_checkpoint *make(struct metadata_maker *m)
{
	const struct xfp_gguf_metadata metadata = { .values = m->values, .by_key = m->by_key, .count = m->count };
	struct xfp_checkpoint *c = calloc(1, sizeof *c);

	c->folder = strdup("/nowhere");
	if (xfp_gguf_make_tokenizer(&metadata, c, &err))
		fail_msg("%s", err.text);
	for (uint32_t i = 0; i < m->count; i++)
		free(bytes_of(&m->values[i]));
	return c;
}

static const char *file_of(const struct xfp_checkpoint *c, const char *name)
{
	for (uint32_t i = 0; i < c->synthesized_count; i++)
		if (!strcmp(c->synthesized[i].name, name)) {
			assert_int_equal(strlen(c->synthesized[i].bytes), c->synthesized[i].size);
			return c->synthesized[i].bytes;
		}
	return NULL;
}

/* The value at a path of names in tokenizer.json, as compact JSON; the caller frees it. */
static char *part_of(const struct xfp_checkpoint *c, const char *file, const char *first, const char *second)
{
	const char *text = file_of(c, file);
	json_error_t wrong;
	json_t *root = json_loads(text ? text : "", JSON_REJECT_DUPLICATES, &wrong), *at = root;
	char *out;

	if (!root)
		fail_msg("%s: %s: %s", file, wrong.text, text ? text : "none");
	at = first ? json_object_get(at, first) : at;
	at = second ? json_object_get(at, second) : at;
	assert_non_null(at);
	out = json_dumps(at, JSON_COMPACT | JSON_ENCODE_ANY);
	json_decref(root);
	return out;
}

static void says(const struct xfp_checkpoint *c, const char *file, const char *first, const char *second,
		 const char *expected)
{
	char *have = part_of(c, file, first, second);

	if (strcmp(have, expected))
		fail_msg("%s of %s:\n%s\ninstead of\n%s", second ? second : first, file, have, expected);
	free(have);
}

/* No file, and a note with the reason. */
static void says_why(struct metadata_maker *m, const char *why)
{
	struct xfp_checkpoint *c = make(m);

	if (c->synthesized_count || c->note_count != 1 || !strstr(c->notes[0], why))
		fail_msg("%u files, note \"%s\", not \"%s\"", (unsigned)c->synthesized_count,
			 c->note_count ? c->notes[0] : "", why);
	xfp_checkpoint_close(c);
}

/* ---- bytes --------------------------------------------------------------------------------------- */

static const char *const words[] = { "a", "b", "ab", "\"\\", "\xc4\xa0", "<|end|>", "<think>", "[PAD7]" };
static const int32_t word_types[] = { 1, 1, 1, 1, 1, 3, 4, 5 };

static struct metadata_maker words_of(const char *pre)
{
	static const char *const merges[] = { "a b" };
	struct metadata_maker m = { .count = 0 };

	put_text(&m, "tokenizer.ggml.model", "gpt2");
	if (pre)
		put_text(&m, "tokenizer.ggml.pre", pre);
	put_texts(&m, "tokenizer.ggml.tokens", words, 8, true);
	put_numbers(&m, "tokenizer.ggml.token_type", word_types, 8, true);
	put_texts(&m, "tokenizer.ggml.merges", merges, 1, true);
	return m;
}

#define ADDED(id, content, rstrip, special)                                                                      \
	"{\"id\":" #id ",\"content\":\"" content "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":" #rstrip \
	",\"normalized\":false,\"special\":" #special "}"

static void bytes_are_split_and_merged(void **state)
{
	struct metadata_maker m = words_of("qwen2");
	struct xfp_checkpoint *c;

	(void)state;
	put_number(&m, "tokenizer.ggml.eos_token_id", 5);
	put_number(&m, "tokenizer.ggml.padding_token_id", 7);
	put_number(&m, "tokenizer.ggml.bos_token_id", 0);
	c = make(&m);
	assert_int_equal(c->synthesized_count, 2);
	assert_int_equal(c->note_count, 0);
	says(c, "tokenizer.json", "version", NULL, "\"1.0\"");
	says(c, "tokenizer.json", "added_tokens", NULL,
	     "[" ADDED(5, "<|end|>", false, true) "," ADDED(6, "<think>", false, false) "]");
	says(c, "tokenizer.json", "normalizer", NULL, "{\"type\":\"NFC\"}");
	says(c, "tokenizer.json", "pre_tokenizer", NULL,
	     "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"
	     "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
	     "|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| ?[^\\\\s\\\\p{L}\\\\p{N}]+"
	     "[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":false},"
	     "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}]}");
	says(c, "tokenizer.json", "post_processor", NULL, "null");
	says(c, "tokenizer.json", "decoder", NULL,
	     "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true}");
	says(c, "tokenizer.json", "model", NULL,
	     "{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,"
	     "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,"
	     "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\\\"\\\\\":3,\"\xc4\xa0\":4,\"<|end|>\":5,\"<think>\":6},"
	     "\"merges\":[\"a b\"]}");
	says(c, "tokenizer_config.json", NULL, NULL,
	     "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"clean_up_tokenization_spaces\":false,"
	     "\"eos_token\":\"<|end|>\"}");
	xfp_checkpoint_close(c);
}

#define TEMPLATE(single, pair, tokens) \
	"{\"type\":\"TemplateProcessing\",\"single\":[" single "],\"pair\":[" pair "],\"special_tokens\":{" tokens "}}"
#define WHERE(kind, id, type) "{\"" kind "\":{\"id\":\"" id "\",\"type_id\":" #type "}}"
#define NAMED(id, number) "\"" id "\":{\"id\":\"" id "\",\"ids\":[" #number "],\"tokens\":[\"" id "\"]}"

static void texts_begin_and_end(void **state)
{
	static const char begin[] =
		TEMPLATE(WHERE("SpecialToken", "<|end|>", 0) "," WHERE("Sequence", "A", 0),
			 WHERE("SpecialToken", "<|end|>", 0) "," WHERE("Sequence", "A", 0) "," WHERE(
				 "SpecialToken", "<|end|>", 1) "," WHERE("Sequence", "B", 1),
			 NAMED("<|end|>", 5));
	static const char both[] =
		TEMPLATE(WHERE("SpecialToken", "<think>", 0) "," WHERE("Sequence", "A", 0) "," WHERE("SpecialToken",
												     "<|end|>", 0),
			 WHERE("SpecialToken", "<think>", 0) "," WHERE("Sequence", "A", 0) "," WHERE(
				 "SpecialToken", "<|end|>",
				 0) "," WHERE("SpecialToken", "<think>",
					      1) "," WHERE("Sequence", "B", 1) "," WHERE("SpecialToken", "<|end|>", 1),
			 NAMED("<think>", 6) "," NAMED("<|end|>", 5));
	/* The name, the flags (0, 1, or 2: missing), and the result. */
	static const struct {
		const char *pre;
		int begins, ends;
		int32_t bos, eos;
		const char *expected;
	} cases[] = {
		{ "llama-bpe", 2, 2, 5, 5, begin }, { "llama-bpe", 0, 2, 5, 5, "null" }, { "qwen2", 1, 2, 5, 5, begin },
		{ "qwen2", 2, 2, 5, 5, "null" },    { "llama-bpe", 2, 2, 8, 5, "null" }, { "gpt-2", 1, 1, 6, 5, both },
		{ "gpt-2", 1, 1, 5, 8, begin },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct metadata_maker m = words_of(cases[i].pre);
		struct xfp_checkpoint *c;

		put_number(&m, "tokenizer.ggml.bos_token_id", cases[i].bos);
		put_number(&m, "tokenizer.ggml.eos_token_id", cases[i].eos);
		if (cases[i].begins < 2)
			put_flag(&m, "tokenizer.ggml.add_bos_token", cases[i].begins);
		if (cases[i].ends < 2)
			put_flag(&m, "tokenizer.ggml.add_eos_token", cases[i].ends);
		c = make(&m);
		says(c, "tokenizer.json", "post_processor", NULL, cases[i].expected);
		says(c, "tokenizer.json", "model", "ignore_merges", cases[i].pre[0] == 'l' ? "true" : "false");
		xfp_checkpoint_close(c);
	}
}

/* FNV-1a of the settings of each known name. A changed digest means that texts are encoded differently. */
static void names_stand_for_splits(void **state)
{
	static const struct {
		const char *name;
		uint64_t digest;
	} names[] = {
		{ "default", 0x4e53894d13a37bb3 },
		{ "gpt-2", 0x4e53894d13a37bb3 },
		{ "llama-bpe", 0xdfc8a8eebfa87b17 },
		{ "llama3", 0xdfc8a8eebfa87b17 },
		{ "llama-v3", 0xdfc8a8eebfa87b17 },
		{ "falcon3", 0xdfc8a8eebfa87b17 },
		{ "pixtral", 0xdfc8a8eebfa87b17 },
		{ "midm-2.0", 0xdfc8a8eebfa87b17 },
		{ "smaug-bpe", 0x06300328d0560d1a },
		{ "dbrx", 0x06300328d0560d1a },
		{ "glm4", 0xdfc8a8eebfa87b17 },
		{ "chatglm-bpe", 0x06300328d0560d1a },
		{ "qwen2", 0x3901e2fb66714776 },
		{ "megrez", 0x3901e2fb66714776 },
		{ "deepseek-r1-qwen", 0x3901e2fb66714776 },
		{ "qwen35", 0x8388de3c45cc8e3c },
		{ "gpt-4o", 0xab2a8aba33f78873 },
		{ "llama4", 0xab2a8aba33f78873 },
		{ "tekken", 0x4df076d217f5acf2 },
		{ "deepseek-llm", 0x5b2da1f55588fd88 },
		{ "deepseek-coder", 0x33c6a6893c1490e9 },
		{ "deepseek-v3", 0x36515e182e399725 },
		{ "smollm", 0x02a8b517f856db77 },
		{ "starcoder", 0x02a8b517f856db77 },
		{ "refact", 0x02a8b517f856db77 },
		{ "command-r", 0x5ec27a1dd9298285 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		static const char *const parts[][2] = { { "normalizer", NULL },
							{ "pre_tokenizer", NULL },
							{ "model", "ignore_merges" } };
		struct metadata_maker m = words_of(names[i].name);
		struct xfp_checkpoint *c = make(&m);
		uint64_t hash = 0xcbf29ce484222325;

		for (int p = 0; p < 3; p++) {
			char *text = part_of(c, "tokenizer.json", parts[p][0], parts[p][1]);

			for (const char *at = text; *at; at++)
				hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
			free(text);
		}
		if (hash != names[i].digest)
			fail_msg("%s: 0x%016llx", names[i].name, (unsigned long long)hash);
		assert_int_equal(c->note_count, !strcmp(names[i].name, "default"));
		xfp_checkpoint_close(c);
	}
}

static void what_tells_nothing_is_told(void **state)
{
	struct metadata_maker m = words_of(NULL);
	struct xfp_checkpoint *c = make(&m);

	(void)state;
	assert_int_equal(c->synthesized_count, 2);
	assert_int_equal(c->note_count, 1);
	assert_non_null(strstr(c->notes[0], "does not say how texts are split"));
	says(c, "tokenizer.json", "pre_tokenizer", NULL,
	     "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
	     "\"trim_offsets\":true,\"use_regex\":true}]}");
	xfp_checkpoint_close(c);
}

static void templates_go_along(void **state)
{
	static const char *const named[] = { "tool_use", "gone" };
	struct metadata_maker m = words_of("gpt-2");
	struct xfp_checkpoint *c;

	(void)state;
	put_text(&m, "tokenizer.chat_template", "{{ \"a\"\n\x01 }}");
	c = make(&m);
	says(c, "tokenizer_config.json", "chat_template", NULL, "\"{{ \\\"a\\\"\\n\\u0001 }}\"");
	xfp_checkpoint_close(c);
	m = words_of("gpt-2");
	put_text(&m, "tokenizer.chat_template", "x");
	put_texts(&m, "tokenizer.chat_templates", named, 2, true);
	put_text(&m, "tokenizer.chat_template.tool_use", "y");
	c = make(&m);
	says(c, "tokenizer_config.json", "chat_template", NULL,
	     "[{\"name\":\"default\",\"template\":\"x\"},{\"name\":\"tool_use\",\"template\":\"y\"}]");
	xfp_checkpoint_close(c);
}

/* ---- SentencePiece ------------------------------------------------------------------------------- */

#define B "\xe2\x96\x81"
static const char *const pieces[] = { "<unk>", "<s>", "</s>", "<0x41>", B, "a", "b", "ab", B "a", B "ab", "  ", "aa" };
static const int32_t piece_types[] = { 2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 4, 3 };
static const float piece_scores[] = { 0, 0, 0, 0, -9, -8, -7, -2, -1, -3, -1000, -1000 };

static struct metadata_maker pieces_of(const char *architecture)
{
	struct metadata_maker m = { .count = 0 };

	put_text(&m, "general.architecture", architecture);
	put_text(&m, "tokenizer.ggml.model", "llama");
	put_text(&m, "tokenizer.ggml.pre", "default");
	put_texts(&m, "tokenizer.ggml.tokens", pieces, 12, true);
	put_numbers(&m, "tokenizer.ggml.token_type", piece_types, 12, true);
	put_scores(&m, piece_scores, 12);
	put_number(&m, "tokenizer.ggml.bos_token_id", 1);
	put_number(&m, "tokenizer.ggml.eos_token_id", 2);
	put_number(&m, "tokenizer.ggml.unknown_token_id", 0);
	return m;
}

#define REPLACE "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" B "\"}"
#define UNDONE                                               \
	"{\"type\":\"Replace\",\"pattern\":{\"String\":\"" B \
	"\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}"

static void pieces_are_merged_by_score(void **state)
{
	struct metadata_maker m = pieces_of("llama");
	struct xfp_checkpoint *c = make(&m);

	(void)state;
	assert_int_equal(c->note_count, 0);
	says(c, "tokenizer.json", "added_tokens", NULL,
	     "[" ADDED(0, "<unk>", false, true) "," ADDED(1, "<s>", false, true) "," ADDED(
		     2, "</s>", false, true) "," ADDED(10, B B, false, false) "," ADDED(11, "aa", false, true) "]");
	says(c, "tokenizer.json", "normalizer", NULL,
	     "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"" B "\"}," REPLACE "]}");
	says(c, "tokenizer.json", "pre_tokenizer", NULL, "null");
	says(c, "tokenizer.json", "decoder", NULL,
	     "{\"type\":\"Sequence\",\"decoders\":[" UNDONE
	     ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}");
	/* With equal scores, longer left tokens first; a control token is not a piece. */
	says(c, "tokenizer.json", "model", NULL,
	     "{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":\"<unk>\",\"continuing_subword_prefix\":null,"
	     "\"end_of_word_suffix\":null,\"fuse_unk\":true,\"byte_fallback\":true,\"ignore_merges\":false,"
	     "\"vocab\":{\"<unk>\":0,\"<s>\":1,\"</s>\":2,\"<0x41>\":3,\"" B "\":4,\"a\":5,\"b\":6,\"ab\":7,\"" B
	     "a\":8,\"" B "ab\":9,\"" B B "\":10,\"aa\":11},"
	     "\"merges\":[\"" B " a\",\"a b\",\"" B "a b\",\"" B " ab\",\"" B " " B "\"]}");
	says(c, "tokenizer.json", "post_processor", NULL,
	     TEMPLATE(WHERE("SpecialToken", "<s>", 0) "," WHERE("Sequence", "A", 0),
		      WHERE("SpecialToken", "<s>", 0) "," WHERE("Sequence", "A", 0) "," WHERE(
			      "SpecialToken", "<s>", 1) "," WHERE("Sequence", "B", 1),
		      NAMED("<s>", 1)));
	says(c, "tokenizer_config.json", NULL, NULL,
	     "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"clean_up_tokenization_spaces\":false,"
	     "\"bos_token\":\"<s>\",\"eos_token\":\"</s>\",\"unk_token\":\"<unk>\"}");
	xfp_checkpoint_close(c);

	m = pieces_of("llama");
	put_flag(&m, "tokenizer.ggml.add_space_prefix", false);
	c = make(&m);
	says(c, "tokenizer.json", "normalizer", NULL, REPLACE);
	says(c, "tokenizer.json", "decoder", NULL, "{\"type\":\"Sequence\",\"decoders\":[" UNDONE "]}");
	xfp_checkpoint_close(c);
}

/* Gemma's scores do not determine the order of merges; Phi-3's control tokens include the blanks after them. */
static void architectures_differ(void **state)
{
	struct metadata_maker m = pieces_of("gemma3");
	struct xfp_checkpoint *c = make(&m);

	(void)state;
	says(c, "tokenizer.json", "model", "merges", "[\"a b\",\"" B " a\",\"" B "a b\",\"" B " ab\",\"" B " " B "\"]");
	says(c, "tokenizer.json", "normalizer", NULL, REPLACE);
	xfp_checkpoint_close(c);
	m = pieces_of("phi3");
	c = make(&m);
	says(c, "tokenizer.json", "added_tokens", NULL,
	     "[" ADDED(0, "<unk>", false, true) "," ADDED(1, "<s>", false, true) "," ADDED(
		     2, "</s>", true, true) "," ADDED(10, B B, false, false) "," ADDED(11, "aa", true, true) "]");
	xfp_checkpoint_close(c);
}

/* With equal scores, those of the first token first; merges of tokens with spaces are lists of two. */
static void ties_and_spaces(void **state)
{
	static const char *const tokens[] = { "x y", "b", "a", "ab", "ba", "x ", "y" };
	static const float scores[] = { -1, -1, -1, -1, -1, -1, -1 };
	struct metadata_maker m = { .count = 0 };
	struct xfp_checkpoint *c;

	(void)state;
	put_text(&m, "tokenizer.ggml.model", "llama");
	put_texts(&m, "tokenizer.ggml.tokens", tokens, 7, true);
	put_scores(&m, scores, 7);
	put_number(&m, "tokenizer.ggml.unknown_token_id", 2);
	c = make(&m);
	says(c, "tokenizer.json", "model", "merges", "[[\"x \",\"y\"],[\"a\",\"b\"],[\"b\",\"a\"]]");
	says(c, "tokenizer.json", "added_tokens", NULL, "[" ADDED(2, "a", false, true) "]");
	says(c, "tokenizer.json", "post_processor", NULL, "null");
	xfp_checkpoint_close(c);
}

/* ---- none ---------------------------------------------------------------------------------------- */

static void what_is_not_known_is_not_made_up(void **state)
{
	struct metadata_maker m = words_of("shakespeare");

	(void)state;
	says_why(&m, "how \"shakespeare\" (tokenizer.ggml.pre) splits texts is unknown");
	m = (struct metadata_maker){ .count = 0 };
	says_why(&m, "the metadata has no tokenizer");
	for (int none = 0; none < 2; none++) {
		m = (struct metadata_maker){ .count = 0 };
		put_text(&m, "tokenizer.ggml.model", none ? "none" : "no_vocab");
		says_why(&m, "the metadata has no tokenizer");
	}
	m = (struct metadata_maker){ .count = 0 };
	put_text(&m, "tokenizer.ggml.model", "t5");
	says_why(&m, "tokenizers of type \"t5\"");
	m = (struct metadata_maker){ .count = 0 };
	put_text(&m, "tokenizer.ggml.model", "a\x1b[31m");
	says_why(&m, "\"a\\x1b[31m\"");
}

static struct metadata_maker broken(int how)
{
	static const char *const same[] = { "a", "b", "ab", "a" };
	static const char *const merges[][1] = { { "a b c" }, { "b a" }, { " b" }, { "a " }, { "ab" }, { "a b" } };
	static const float scores[] = { 0, 0, 0 };
	struct metadata_maker m = { .count = 0 };

	put_text(&m, "tokenizer.ggml.model", how < 9 ? "gpt2" : "llama");
	put_text(&m, "tokenizer.ggml.pre", "gpt-2");
	if (how)
		put_texts(&m, "tokenizer.ggml.tokens", same, how == 1 ? 4 : 3, true);
	if (how == 2)
		put_numbers(&m, "tokenizer.ggml.token_type", word_types, 2, true);
	if (how >= 4 && how < 9)
		put_texts(&m, "tokenizer.ggml.merges", merges[how - 4], 1, true);
	if (how == 10)
		put_scores(&m, scores, 2);
	if (how == 11)
		put_scores(&m, (float[]){ 0, 0, NAN }, 3);
	return m;
}

static void what_is_wrong_is_told(void **state)
{
	static const char *const why[12] = { "no tokenizer.ggml.tokens",
					     "the same text",
					     "token_type",
					     "no tokenizer.ggml.merges",
					     "does not join two tokens to a third",
					     "does not join two tokens to a third",
					     "does not join two tokens to a third",
					     "does not join two tokens to a third",
					     "does not join two tokens to a third",
					     "no tokenizer.ggml.scores",
					     "scores is not a number",
					     "scores is not a number" };

	(void)state;
	for (int i = 0; i < 12; i++) {
		struct metadata_maker m = broken(i);

		says_why(&m, why[i]);
	}
}

/* a, aa, aaa ...: far more merges than tokens. */
static void tokens_that_imply_too_much(void **state)
{
	enum { COUNT = 1000 };
	static char text[COUNT + 1];
	static const char *tokens[COUNT];
	static float scores[COUNT];
	struct metadata_maker m = { .count = 0 };

	(void)state;
	memset(text, 'a', COUNT);
	for (int i = 0; i < COUNT; i++)
		tokens[i] = text + COUNT - 1 - i;
	put_text(&m, "tokenizer.ggml.model", "llama");
	put_texts(&m, "tokenizer.ggml.tokens", tokens, COUNT, true);
	put_scores(&m, scores, COUNT);
	says_why(&m, "imply more merges");
}

/* Blocks of a and b by the parity of the index's bits, and the inverse: two texts with equal polynomial hashes modulo
 * 2^64, for any base. */
static void tokens_whose_hashes_are_alike(void **state)
{
	enum { COUNT = 256, BLOCKS = 8, BLOCK = 2048 };
	struct metadata_maker m = { .count = 0 };
	const char *tokens[COUNT];
	float scores[COUNT] = { 0 };

	(void)state;
	for (unsigned i = 0; i < COUNT; i++) {
		char *text = calloc(1, BLOCKS * BLOCK + 1);

		for (unsigned k = 0; k < BLOCKS * BLOCK; k++) {
			unsigned bits = k % BLOCK;

			bits ^= bits >> 8;
			bits ^= bits >> 4;
			bits ^= bits >> 2;
			bits ^= bits >> 1;
			text[k] = (char)('a' + ((bits ^ i >> k / BLOCK) & 1));
		}
		tokens[i] = text;
	}
	put_text(&m, "tokenizer.ggml.model", "llama");
	put_texts(&m, "tokenizer.ggml.tokens", tokens, COUNT, true);
	put_scores(&m, scores, COUNT);
	says_why(&m, "too many hash collisions");
	for (int i = 0; i < COUNT; i++)
		free((char *)(uintptr_t)tokens[i]);
}

PROGRAM("test_gguf_tokenizer")
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_split_and_merged),
		cmocka_unit_test(texts_begin_and_end),
		cmocka_unit_test(names_stand_for_splits),
		cmocka_unit_test(what_tells_nothing_is_told),
		cmocka_unit_test(templates_go_along),
		cmocka_unit_test(pieces_are_merged_by_score),
		cmocka_unit_test(architectures_differ),
		cmocka_unit_test(ties_and_spaces),
		cmocka_unit_test(what_is_not_known_is_not_made_up),
		cmocka_unit_test(what_is_wrong_is_told),
		cmocka_unit_test(tokens_that_imply_too_much),
		cmocka_unit_test(tokens_whose_hashes_are_alike),
	};

	return cmocka_run_group_tests_name("gguf_tokenizer", tests, NULL, NULL);
}
