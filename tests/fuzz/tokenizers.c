/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/tokenizers.h"

#include <stdlib.h>
#include <string.h>

#include "model/tokenizer/tokenizer.h"

#define LARGEST 8192

/* The parts that bytes stand for, so that few changes lead from one tokenizer to another. */
static const char *const parts[] = {
	("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\u2581\":3,"
	 "\"\u2581a\":4,\"<0xC3>\":5,\"<0xA9>\":6,"
	 "\"<unk>\":7,\"\u00c3\":8,\"\u00a9\":9},\"merges\":[\"a b\",[\"\u2581\",\"a\"]]"),
	",\"unk_token\":\"<unk>\"",
	",\"fuse_unk\":true",
	",\"byte_fallback\":true",
	",\"ignore_merges\":true",
	",\"end_of_word_suffix\":\"b\"",
	"}",
	",\"normalizer\":",
	",\"pre_tokenizer\":",
	",\"decoder\":",
	",\"post_processor\":",
	",\"added_tokens\":[",
	"{\"type\":\"Sequence\",\"normalizers\":[",
	"{\"type\":\"Sequence\",\"pretokenizers\":[",
	"{\"type\":\"Sequence\",\"decoders\":[",
	"]}",
	"{\"type\":\"NFC\"}",
	"{\"type\":\"NFKC\"}",
	"{\"type\":\"Prepend\",\"prepend\":\"\u2581\"}",
	"{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\u2581\"}",
	"{\"type\":\"Replace\",\"pattern\":{\"String\":\"\u2581\u2581a\"},\"content\":\" \"}",
	"{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a*\"},\"content\":\"b\"}",
	"{\"type\":\"ByteLevel\"}",
	"{\"type\":\"ByteLevel\",\"use_regex\":false,\"add_prefix_space\":false}",
	"{\"type\":\"Metaspace\",\"replacement\":\"\u2581\"}",
	"{\"type\":\"Metaspace\",\"replacement\":\"\u2581\",\"prepend_scheme\":\"first\",\"split\":false}",
	"{\"type\":\"Digits\",\"individual_digits\":true}",
	"{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"",
	"{\"type\":\"Split\",\"behavior\":\"Removed\",\"invert\":true,\"pattern\":{\"Regex\":\"",
	"{\"type\":\"Split\",\"behavior\":\"MergedWithPrevious\",\"pattern\":{\"Regex\":\"",
	"{\"type\":\"Split\",\"behavior\":\"MergedWithNext\",\"pattern\":{\"Regex\":\"",
	"{\"type\":\"Split\",\"behavior\":\"Contiguous\",\"pattern\":{\"Regex\":\"",
	"\"}}",
	"[^\\\\s\\\\p{L}]?+",
	"\\\\p{N}{1,3}+",
	"\\\\s+(?!\\\\S)",
	"{\"type\":\"ByteFallback\"}",
	"{\"type\":\"Fuse\"}",
	"{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":2}",
	"{\"id\":10,\"content\":\"<x>\",\"lstrip\":true,\"rstrip\":true,\"special\":true}",
	"{\"id\":11,\"content\":\"a\u00e9\",\"single_word\":true,\"normalized\":true}",
	("{\"type\":\"TemplateProcessing\",\"single\":["
	 "{\"SpecialToken\":{\"id\":\"s\"}},{\"Sequence\":{\"id\":\"A\"}}],"
	 "\"special_tokens\":{\"s\":{\"ids\":[7]}}}"),
	("{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0,\"b\":1,\"##b\":2,\"ab\":3,\"##\u00c3\":4,"
	 "\"\u00e9\":5,\"<unk>\":6,\".\":7},\"unk_token\":\"<unk>\",\"continuing_subword_prefix\":\"##\","
	 "\"max_input_chars_per_word\":9}"),
	"{\"type\":\"BertNormalizer\"}",
	"{\"type\":\"BertNormalizer\",\"lowercase\":false}",
	"{\"type\":\"NFKD\"}",
	"{\"type\":\"BertPreTokenizer\"}",
	"{\"type\":\"WordPiece\"}",
	"{\"type\":\"BertProcessing\",\"sep\":[\"a\",0],\"cls\":[\"b\",1]}",
	"[\\\\p{L}&&[^a]]",
};
#define PARTS (sizeof parts / sizeof *parts)

/* A byte that stands for a part: 1 to 0x1f, and from 0x80 on. */
static size_t part_of(uint8_t byte)
{
	return (size_t)(byte < 0x20 ? byte - 1 : byte - 0x80 + 0x1f) % PARTS;
}

static size_t lay_out(const uint8_t *data, size_t size, char *json)
{
	size_t used = 0;

	for (size_t i = 0; i < size && used < LARGEST - 512; i++) {
		if (data[i] >= 0x20 && data[i] < 0x80) {
			json[used++] = (char)data[i];
			continue;
		}
		memcpy(json + used, parts[part_of(data[i])], strlen(parts[part_of(data[i])]));
		used += strlen(parts[part_of(data[i])]);
	}
	return used;
}

static void demand(bool holds)
{
	if (!holds)
		abort();
}

static void decode(const struct xfp_tokenizer *t, const struct xfp_token_ids *ids, bool plain)
{
	struct xfp_decoding *d = NULL;
	size_t size = 0, done = 0, more;
	const char *piece;
	char *text = NULL;

	demand(!xfp_tokenizer_decode(t, ids->id, ids->count, plain, &text, &size, NULL));
	demand(!xfp_decoding_begin(t, plain, &d, NULL));
	for (size_t i = 0; i <= ids->count; i++) {
		demand(!(i < ids->count ? xfp_decoding_add(d, ids->id[i], &piece, &more, NULL)
					: xfp_decoding_end(d, &piece, &more, NULL)));
		demand(more <= size - done && !memcmp(piece, text + done, more));
		demand(!more || (*piece & 0xc0) != 0x80);
		done += more;
	}
	demand(done == size);
	xfp_decoding_free(d);
	free(text);
}

int fuzz_tokenizer(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, 0, size) : NULL;
	struct xfp_token_ids ids = { 0 };
	struct xfp_tokenizer *t = NULL;
	char *json = malloc(LARGEST);
	int count = -1;
	size_t used;

	demand(json != NULL);
	used = lay_out(data, end ? (size_t)(end - data) : size, json);
	if (xfp_tokenizer_open(json, used, "fuzzed", &t, NULL))
		goto done;
	count = 0;
	/* An expression that takes too long is an error, too. */
	if (end && !xfp_tokenizer_encode(t, (const char *)end + 1, size - (size_t)(end + 1 - data), true, &ids, NULL)) {
		for (size_t i = 0; i < ids.count; i++)
			demand(ids.id[i] < xfp_tokenizer_ids(t));
		decode(t, &ids, false);
		decode(t, &ids, true);
		count = (int)ids.count;
		/* Ids that occur in no text. */
		for (size_t i = 0; i < ids.count; i++)
			ids.id[i] = (ids.id[i] * 7 + (uint32_t)i) % 13;
		decode(t, &ids, false);
	}
	xfp_tokenizer_free(t);
done:
	free(ids.id);
	free(json);
	return count;
}
