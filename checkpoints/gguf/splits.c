/* SPDX-License-Identifier: Apache-2.0 */
/*
 * splits.c - the table of splits.h: the tokenizer.json settings of the models for which llama.cpp has each name.
 *
 * If llama.cpp uses a name for several models, the entry is for those whose architecture is supported. Settings that a
 * name does not determine, such as normalization, are those of the models that it was made for.
 */
#include "checkpoints/gguf/splits.h"

#include <string.h>

#define ENGLISH "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define ENDS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SLASH_ENDS "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LETTERS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
/* Words that begin with capitals. */
#define SMALL "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
#define CAPITAL "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
/* Ideographs and neighbouring ranges, as DeepSeek defines them. */
#define HAN_AND_HANGUL "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"

/* Letters of alphabets with case, in Unicode 14. */
#define CASED                                                                                                      \
	"A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af\u0370-\u0373"  \
	"\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-"   \
	"\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-" \
	"\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59\u1f5b\u1f5d"   \
	"\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-" \
	"\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-"    \
	"\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-"   \
	"\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e\uab70-\uabbf\ufb00-"  \
	"\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-"       \
	"\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df\U0001e900-\U0001e943"

static const struct xfp_gguf_splits gpt2 = { .words = true };
static const struct xfp_gguf_splits digits = { .digits = true, .words = true };
static const struct xfp_gguf_splits digits_nfc = { .normalizer = "NFC", .digits = true, .words = true };
static const struct xfp_gguf_splits llama3 = { .splits = { ENGLISH LETTERS "|\\p{N}{1,3}" ENDS },
					       .whole = true,
					       .begins = true };
static const struct xfp_gguf_splits glm4 = { .splits = { ENGLISH LETTERS "|\\p{N}{1,3}" ENDS }, .whole = true };
static const struct xfp_gguf_splits cl100k = { .splits = { ENGLISH LETTERS "|\\p{N}{1,3}" ENDS } };
static const struct xfp_gguf_splits qwen2 = { .normalizer = "NFC", .splits = { ENGLISH LETTERS "|\\p{N}" ENDS } };
static const struct xfp_gguf_splits qwen35 = {
	.normalizer = "NFC",
	.splits = { ENGLISH "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*"
			    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+" },
};
static const struct xfp_gguf_splits gpt4o = {
	.splits = { SMALL ENGLISH "?|" CAPITAL ENGLISH "?|\\p{N}{1,3}" SLASH_ENDS },
};
static const struct xfp_gguf_splits tekken = { .splits = { SMALL "|" CAPITAL "|\\p{N}" SLASH_ENDS }, .whole = true };
static const struct xfp_gguf_splits deepseek_llm = {
	.splits = { "[\r\n]", "\\s?[" CASED "]+", "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
		    "\\s+$", HAN_AND_HANGUL },
	.digits = true,
};
static const struct xfp_gguf_splits deepseek_coder = {
	.splits = { "[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", HAN_AND_HANGUL },
	.digits = true,
};
static const struct xfp_gguf_splits deepseek_v3 = {
	.splits = { "\\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
		    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
		    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+" },
};

static const struct {
	const char *name;
	const struct xfp_gguf_splits *splits;
} known[] = {
	{ "default", &gpt2 },
	{ "gpt-2", &gpt2 },
	{ "llama-bpe", &llama3 },
	{ "llama3", &llama3 },
	{ "llama-v3", &llama3 },
	{ "falcon3", &llama3 },
	{ "pixtral", &llama3 },
	{ "midm-2.0", &llama3 },
	{ "smaug-bpe", &cl100k },
	{ "dbrx", &cl100k }, /* also Phi-4 */
	{ "glm4", &glm4 },
	{ "chatglm-bpe", &cl100k },
	{ "qwen2", &qwen2 },
	{ "deepseek-r1-qwen", &qwen2 },
	{ "megrez", &qwen2 },
	{ "qwen35", &qwen35 },
	{ "gpt-4o", &gpt4o },
	{ "llama4", &gpt4o },
	{ "tekken", &tekken },
	{ "deepseek-llm", &deepseek_llm },
	{ "deepseek-coder", &deepseek_coder },
	{ "deepseek-v3", &deepseek_v3 },
	{ "smollm", &digits },
	{ "starcoder", &digits },
	{ "refact", &digits },
	{ "command-r", &digits_nfc },
};

const struct xfp_gguf_splits *xfp_gguf_splits_find(const struct xfp_gguf_text *name)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (strlen(known[i].name) == name->length && !memcmp(known[i].name, name->bytes, name->length))
			return known[i].splits;
	return NULL;
}
