/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokenizer.c - synthesize tokenizer.json and tokenizer_config.json from a GGUF file's metadata.
 *
 * Two kinds of tokenizers are supported, both BPE:
 *
 *   gpt2   byte-level: bytes, written as characters, of words that texts are split into (splits.h); merges are listed
 *   llama  SentencePiece: characters, with U+2581 for a space, and byte tokens for other characters; merges are derived
 *          from scores. A space is added before a text, unless the metadata says otherwise, so that the first word is
 *          like others. SentencePiece does this, and so does llama.cpp, even if a text begins with a space.
 *
 * Control and user-defined tokens are found in a text first, and so are the tokens that begin and end texts. Unknown
 * settings are not guessed: then there is no tokenizer.json, but a note.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text/text.h"
#include "checkpoints/format.h"
#include "checkpoints/gguf/splits.h"
#include "checkpoints/gguf/synthesized.h"
#include "checkpoints/gguf/vocabulary.h"
#include "checkpoints/note.h"

enum named_token { BOS, EOS, UNK, PAD, NAMED };

struct tokenizer {
	const struct xfp_gguf_metadata *metadata;
	struct xfp_gguf_vocabulary vocabulary;
	struct xfp_gguf_merges merges;
	const struct xfp_gguf_splits *splits;            /* NULL for SentencePiece */
	uint32_t named[NAMED];                           /* ids, or UINT32_MAX */
	bool gemma, phi3, has_pre, prefix, begins, ends; /* has_pre: tokenizer.ggml.pre names a pre-tokenizer */
};

/* ---- JSON ---------------------------------------------------------------------------------------- */

/* Write a text without quotation marks, escaped. */
static void put_inside(FILE *out, const struct xfp_gguf_text *text)
{
	uint64_t from = 0;

	for (uint64_t i = 0; i < text->length; i++) {
		unsigned char c = (unsigned char)text->bytes[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		fwrite(text->bytes + from, 1, i - from, out);
		from = i + 1;
		if (c < 0x20)
			fprintf(out, "\\u%04x", c);
		else
			fprintf(out, "\\%c", c);
	}
	fwrite(text->bytes + from, 1, text->length - from, out);
}

static void put_text(FILE *out, const struct xfp_gguf_text *text)
{
	putc('"', out);
	put_inside(out, text);
	putc('"', out);
}

static void put_string(FILE *out, const char *text)
{
	put_text(out, &(struct xfp_gguf_text){ text, strlen(text) });
}

static void put_token(FILE *out, const struct tokenizer *t, uint32_t token)
{
	put_text(out, &t->vocabulary.tokens[token]);
}

static const char *yes_or_no(bool value)
{
	return value ? "true" : "false";
}

/* ---- tokenizer.json ------------------------------------------------------------------------------ */

/* Return whether a token is found in a text first. If types are missing, this holds for the special tokens. */
static bool is_added(const struct tokenizer *t, uint32_t token)
{
	uint8_t type = t->vocabulary.types[token];

	if (!t->vocabulary.tokens[token].length || xfp_gguf_vocabulary_pads(&t->vocabulary, token))
		return false;
	if (type)
		return type == XFP_GGUF_TOKEN_CONTROL || type == XFP_GGUF_TOKEN_USER || type == XFP_GGUF_TOKEN_UNKNOWN;
	for (int i = 0; i < NAMED; i++)
		if (t->named[i] == token)
			return true;
	return false;
}

static bool is_text(const struct tokenizer *t, uint32_t token, const char *text)
{
	const struct xfp_gguf_text *have = &t->vocabulary.tokens[token];

	return have->length == strlen(text) && !memcmp(have->bytes, text, have->length);
}

/* Control tokens of Phi-3, and the end of a text, include following spaces, except the first ones. */
static bool strips_spaces(const struct tokenizer *t, uint32_t token)
{
	if (!t->phi3)
		return false;
	return is_text(t, token, "</s>") ||
	       (t->vocabulary.types[token] == XFP_GGUF_TOKEN_CONTROL && !is_text(t, token, "<s>") &&
		!is_text(t, token, "<unk>") && !is_text(t, token, "<|endoftext|>"));
}

static void put_added(FILE *out, const struct tokenizer *t)
{
	const char *between = "";

	fputs("  \"added_tokens\": [", out);
	for (uint32_t i = 0; i < t->vocabulary.count; i++) {
		if (!is_added(t, i))
			continue;
		fprintf(out, "%s\n    {\"id\": %u, \"content\": ", between, (unsigned)i);
		put_token(out, t, i);
		fprintf(out,
			", \"single_word\": false, \"lstrip\": false, \"rstrip\": %s, \"normalized\": false, "
			"\"special\": %s}",
			yes_or_no(strips_spaces(t, i)), yes_or_no(t->vocabulary.types[i] != XFP_GGUF_TOKEN_USER));
		between = ",";
	}
	fputs("\n  ],\n", out);
}

static void put_normalizer(FILE *out, const struct tokenizer *t)
{
	static const char spaces[] =
		"{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\u2581\"}";

	fputs("  \"normalizer\": ", out);
	if (t->splits && t->splits->normalizer)
		fprintf(out, "{\"type\": \"%s\"}", t->splits->normalizer);
	else if (t->splits)
		fputs("null", out);
	else if (t->prefix)
		fprintf(out,
			"{\"type\": \"Sequence\", \"normalizers\": "
			"[{\"type\": \"Prepend\", \"prepend\": \"\u2581\"}, %s]}",
			spaces);
	else
		fputs(spaces, out);
	fputs(",\n", out);
}

static void put_splits(FILE *out, const struct xfp_gguf_splits *splits)
{
	fputs("  \"pre_tokenizer\": ", out);
	if (!splits) {
		fputs("null,\n", out);
		return;
	}
	fputs("{\"type\": \"Sequence\", \"pretokenizers\": [", out);
	for (int i = 0; splits->splits[i]; i++) {
		fputs("\n    {\"type\": \"Split\", \"pattern\": {\"Regex\": ", out);
		put_string(out, splits->splits[i]);
		fputs("}, \"behavior\": \"Isolated\", \"invert\": false},", out);
	}
	if (splits->digits)
		fputs("\n    {\"type\": \"Digits\", \"individual_digits\": true},", out);
	fprintf(out,
		"\n    {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
		"\"trim_offsets\": true, \"use_regex\": %s}\n"
		"  ]},\n",
		yes_or_no(splits->words));
}

/* Write the tokens around a text; `number` is that of a text of a pair. */
static void put_sequence(FILE *out, const struct tokenizer *t, const char *between, int number)
{
	if (t->begins) {
		fprintf(out, "%s{\"SpecialToken\": {\"id\": ", between);
		put_token(out, t, t->named[BOS]);
		fprintf(out, ", \"type_id\": %d}}", number);
		between = ", ";
	}
	fprintf(out, "%s{\"Sequence\": {\"id\": \"%c\", \"type_id\": %d}}", between, 'A' + number, number);
	if (t->ends) {
		fputs(", {\"SpecialToken\": {\"id\": ", out);
		put_token(out, t, t->named[EOS]);
		fprintf(out, ", \"type_id\": %d}}", number);
	}
}

static void put_named(FILE *out, const struct tokenizer *t, const char *between, uint32_t token)
{
	fputs(between, out);
	fputs("\n    ", out);
	put_token(out, t, token);
	fputs(": {\"id\": ", out);
	put_token(out, t, token);
	fprintf(out, ", \"ids\": [%u], \"tokens\": [", (unsigned)token);
	put_token(out, t, token);
	fputs("]}", out);
}

static void put_ends(FILE *out, const struct tokenizer *t)
{
	fputs("  \"post_processor\": ", out);
	if (!t->begins && !t->ends) {
		fputs("null,\n", out);
		return;
	}
	fputs("{\"type\": \"TemplateProcessing\", \"single\": [", out);
	put_sequence(out, t, "", 0);
	fputs("], \"pair\": [", out);
	put_sequence(out, t, "", 0);
	put_sequence(out, t, ", ", 1);
	fputs("], \"special_tokens\": {", out);
	if (t->begins)
		put_named(out, t, "", t->named[BOS]);
	if (t->ends && !(t->begins && t->named[EOS] == t->named[BOS]))
		put_named(out, t, t->begins ? "," : "", t->named[EOS]);
	fputs("\n  }},\n", out);
}

static void put_decoder(FILE *out, const struct tokenizer *t)
{
	fputs("  \"decoder\": ", out);
	if (t->splits)
		fputs("{\"type\": \"ByteLevel\", \"add_prefix_space\": true, "
		      "\"trim_offsets\": true, \"use_regex\": true}",
		      out);
	else
		fprintf(out,
			"{\"type\": \"Sequence\", \"decoders\": ["
			"{\"type\": \"Replace\", \"pattern\": {\"String\": \"\u2581\"}, \"content\": \" \"}, "
			"{\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}%s]}",
			t->prefix ? ", {\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 0}" : "");
	fputs(",\n", out);
}

static void put_merges(FILE *out, const struct tokenizer *t)
{
	const char *between = "";

	fputs("    \"merges\": [", out);
	for (uint32_t i = 0; i < t->merges.count; i++) {
		const struct xfp_gguf_text *left = &t->vocabulary.tokens[t->merges.merges[i].left];
		const struct xfp_gguf_text *right = &t->vocabulary.tokens[t->merges.merges[i].right];

		fprintf(out, "%s\n      ", between);
		between = ",";
		if (t->merges.spaced) {
			putc('[', out);
			put_text(out, left);
			fputs(", ", out);
			put_text(out, right);
			putc(']', out);
			continue;
		}
		/* As one text, the original form, which all versions of the library read. */
		putc('"', out);
		put_inside(out, left);
		putc(' ', out);
		put_inside(out, right);
		putc('"', out);
	}
	fputs("\n    ]\n", out);
}

static void put_model(FILE *out, const struct tokenizer *t)
{
	const char *between = "";

	fputs("  \"model\": {\n    \"type\": \"BPE\",\n    \"dropout\": null,\n    \"unk_token\": ", out);
	if (!t->splits && t->named[UNK] != UINT32_MAX)
		put_token(out, t, t->named[UNK]);
	else
		fputs("null", out);
	fprintf(out,
		",\n    \"continuing_subword_prefix\": null,\n    \"end_of_word_suffix\": null,\n"
		"    \"fuse_unk\": %s,\n"
		"    \"byte_fallback\": %s,\n    \"ignore_merges\": %s,\n    \"vocab\": {",
		yes_or_no(!t->splits), yes_or_no(!t->splits), yes_or_no(t->splits && t->splits->whole));
	for (uint32_t i = 0; i < t->vocabulary.count; i++) {
		if (xfp_gguf_vocabulary_pads(&t->vocabulary, i))
			continue;
		fprintf(out, "%s\n      ", between);
		put_token(out, t, i);
		fprintf(out, ": %u", (unsigned)i);
		between = ",";
	}
	fputs("\n    },\n", out);
	put_merges(out, t);
	fputs("  }\n", out);
}

static void put_tokenizer(FILE *out, const struct tokenizer *t)
{
	fputs("{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n", out);
	put_added(out, t);
	put_normalizer(out, t);
	put_splits(out, t->splits);
	put_ends(out, t);
	put_decoder(out, t);
	put_model(out, t);
	fputs("}\n", out);
}

/* ---- tokenizer_config.json ----------------------------------------------------------------------- */

/* Write the chat template; several are a list, in which the unnamed one is called "default". */
static void put_templates(FILE *out, const struct tokenizer *t)
{
	const struct xfp_gguf_value *names = xfp_gguf_find(t->metadata, "tokenizer.chat_templates");
	struct xfp_gguf_text text, name;
	const char *between = "";
	uint64_t at = 0;

	if (!names || !names->array || names->kind != XFP_GGUF_TEXT || !names->count) {
		if (xfp_gguf_text(xfp_gguf_find(t->metadata, "tokenizer.chat_template"), &text)) {
			fputs(",\n  \"chat_template\": ", out);
			put_text(out, &text);
		}
		return;
	}
	fputs(",\n  \"chat_template\": [", out);
	if (xfp_gguf_text(xfp_gguf_find(t->metadata, "tokenizer.chat_template"), &text)) {
		fputs("\n    {\"name\": \"default\", \"template\": ", out);
		put_text(out, &text);
		fputs("}", out);
		between = ",";
	}
	while (xfp_gguf_next_text(names, &at, &name)) {
		char key[256];

		snprintf(key, sizeof key, "tokenizer.chat_template.%.*s", name.length < 200 ? (int)name.length : 200,
			 name.bytes);
		if (!xfp_gguf_text(xfp_gguf_find(t->metadata, key), &text))
			continue;
		fprintf(out, "%s\n    {\"name\": ", between);
		put_text(out, &name);
		fputs(", \"template\": ", out);
		put_text(out, &text);
		fputs("}", out);
		between = ",";
	}
	fputs("\n  ]", out);
}

/* Use the class that reads tokenizer.json unchanged. */
static void put_config(FILE *out, const struct tokenizer *t)
{
	static const char *const names[NAMED] = { "bos_token", "eos_token", "unk_token", "pad_token" };

	fputs("{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\",\n  \"clean_up_tokenization_spaces\": false", out);
	for (int i = 0; i < NAMED; i++) {
		if (t->named[i] == UINT32_MAX || !is_added(t, t->named[i]))
			continue;
		fprintf(out, ",\n  \"%s\": ", names[i]);
		put_token(out, t, t->named[i]);
	}
	put_templates(out, t);
	fputs("\n}\n", out);
}

/* ---- from metadata ------------------------------------------------------------------------------- */

static enum xfp_status make_file(const struct tokenizer *t, struct xfp_checkpoint *c, const char *name,
				 void (*put)(FILE *, const struct tokenizer *), struct xfp_error *err)
{
	struct xfp_text text;
	FILE *out = xfp_text_begin(&text);

	if (out)
		put(out, t);
	if (!xfp_text_end(&text))
		return xfp_no_memory_for(err, c->folder);
	return xfp_checkpoint_make(c, name, text.bytes, text.size, err);
}

static void read_named(struct tokenizer *t)
{
	static const char *const keys[NAMED] = { "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id",
						 "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.padding_token_id" };
	bool flag;

	for (int i = 0; i < NAMED; i++) {
		uint64_t number;

		t->named[i] = UINT32_MAX;
		if (xfp_gguf_integer(xfp_gguf_find(t->metadata, keys[i]), 0, &number) && number < t->vocabulary.count &&
		    !xfp_gguf_vocabulary_pads(&t->vocabulary, (uint32_t)number))
			t->named[i] = (uint32_t)number;
	}
	t->begins = !t->splits || t->splits->begins;
	t->prefix = !t->splits && !t->gemma;
	if (xfp_gguf_flag(xfp_gguf_find(t->metadata, "tokenizer.ggml.add_bos_token"), 0, &flag))
		t->begins = flag;
	if (xfp_gguf_flag(xfp_gguf_find(t->metadata, "tokenizer.ggml.add_eos_token"), 0, &flag))
		t->ends = flag;
	if (xfp_gguf_flag(xfp_gguf_find(t->metadata, "tokenizer.ggml.add_space_prefix"), 0, &flag) && !t->splits)
		t->prefix = flag;
	t->begins = t->begins && t->named[BOS] != UINT32_MAX;
	t->ends = t->ends && t->named[EOS] != UINT32_MAX;
}

static enum xfp_status read_merges(struct tokenizer *t, const char **wrong)
{
	const struct xfp_gguf_value *listed = xfp_gguf_find(t->metadata, "tokenizer.ggml.merges");
	const struct xfp_gguf_value *scores = xfp_gguf_find(t->metadata, "tokenizer.ggml.scores");

	if (listed || t->splits)
		return xfp_gguf_merges_read(&t->merges, &t->vocabulary, listed, wrong);
	if (!scores && !t->gemma) {
		*wrong = "the metadata has no tokenizer.ggml.scores, from which merges are derived";
		return XFP_OK;
	}
	/* In Gemma, the order of tokens determines the merges. */
	return xfp_gguf_merges_derive(&t->merges, &t->vocabulary, t->gemma ? NULL : scores, wrong);
}

/* Return a text of the metadata for a note. */
static struct xfp_printable printable(const struct xfp_gguf_text *text)
{
	char name[64];

	snprintf(name, sizeof name, "%.*s", text->length < sizeof name ? (int)text->length : (int)sizeof name - 1,
		 text->bytes);
	return xfp_printable(name);
}

/* Find the kind of tokenizer, and how texts are split. Returns false, and adds a note, if either is unknown. */
static bool find_kind(struct tokenizer *t, struct xfp_checkpoint *c)
{
	const struct xfp_gguf_value *model = xfp_gguf_find(t->metadata, "tokenizer.ggml.model");
	const struct xfp_gguf_value *architecture = xfp_gguf_find(t->metadata, "general.architecture");
	static const struct xfp_gguf_text none = { "default", 7 };
	struct xfp_gguf_text name = none;

	if (xfp_gguf_text_is(model, "llama")) {
		t->phi3 = xfp_gguf_text_is(architecture, "phi3");
		t->gemma = xfp_gguf_text_is(architecture, "gemma") || xfp_gguf_text_is(architecture, "gemma2") ||
			   xfp_gguf_text_is(architecture, "gemma3");
		return true;
	}
	if (!xfp_gguf_text_is(model, "gpt2")) {
		if (!xfp_gguf_text(model, &name) || xfp_gguf_text_is(model, "none") ||
		    xfp_gguf_text_is(model, "no_vocab"))
			xfp_checkpoint_note(c, "no tokenizer.json: the metadata has no tokenizer");
		else
			xfp_checkpoint_note(c,
					    "no tokenizer.json: tokenizers of type \"%s\" (tokenizer.ggml.model) are "
					    "not supported; use the original model's",
					    printable(&name).text);
		return false;
	}
	xfp_gguf_text(xfp_gguf_find(t->metadata, "tokenizer.ggml.pre"), &name);
	if (!(t->splits = xfp_gguf_splits_find(&name))) {
		xfp_checkpoint_note(c,
				    "no tokenizer.json: how \"%s\" (tokenizer.ggml.pre) splits texts is unknown; use "
				    "the original model's",
				    printable(&name).text);
		return false;
	}
	t->has_pre = name.length != none.length || memcmp(name.bytes, none.bytes, none.length) != 0;
	return true;
}

enum xfp_status xfp_gguf_make_tokenizer(const struct xfp_gguf_metadata *metadata, struct xfp_checkpoint *c,
					struct xfp_error *err)
{
	struct tokenizer t = { .metadata = metadata, .has_pre = true };
	const char *wrong = NULL;
	enum xfp_status status;

	if (!find_kind(&t, c))
		return XFP_OK;
	status = xfp_gguf_vocabulary_read(&t.vocabulary, metadata, !t.splits, &wrong);
	if (!status && !wrong)
		status = read_merges(&t, &wrong);
	if (status)
		status = xfp_no_memory_for(err, c->folder);
	if (!status && wrong)
		xfp_checkpoint_note(c, "no tokenizer.json: %s; use the original model's", wrong);
	if (!status && !wrong) {
		if (!t.has_pre)
			xfp_checkpoint_note(c, "tokenizer.json: the metadata does not say how texts are split "
					       "(tokenizer.ggml.pre); GPT-2's rules are used");
		read_named(&t);
		status = make_file(&t, c, "tokenizer.json", put_tokenizer, err);
		if (!status)
			status = make_file(&t, c, "tokenizer_config.json", put_config, err);
	}
	xfp_gguf_vocabulary_free(&t.vocabulary);
	free(t.merges.merges);
	return status;
}
