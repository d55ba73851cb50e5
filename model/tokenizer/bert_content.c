/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vocab.txt of BERT: a line per token, and the settings of tokenizer_config.json, with the defaults of transformers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/utf8.h"
#include "model/tokenizer/content.h"

#define CONFIG "tokenizer_config.json"

enum { UNKNOWN, SEPARATOR, CLASS, PADDING, MASK, SPECIALS };
static const struct {
	const char *member, *missing;
} special[SPECIALS] = { [UNKNOWN] = { "unk_token", "[UNK]" },
			[SEPARATOR] = { "sep_token", "[SEP]" },
			[CLASS] = { "cls_token", "[CLS]" },
			[PADDING] = { "pad_token", "[PAD]" },
			[MASK] = { "mask_token", "[MASK]" } };

/* Other classes with a vocab.txt split texts in other ways. */
static void check_class(struct xfp_part_reader *r, const json_t *config)
{
	static const char *const known[] = { "BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer",
					     "MobileBertTokenizer" };
	const char *name = xfp_part_text(r, CONFIG, config, "tokenizer_class", *known);
	size_t length = strlen(name), fast = strlen("Fast");

	if (length > fast && !strcmp(name + length - fast, "Fast"))
		length -= fast;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (length == strlen(known[i]) && !strncmp(name, known[i], length))
			return;
	xfp_part_refuse(
		r, CONFIG,
		"how %s splits texts is not known to this version, only BertTokenizer; save a tokenizer.json with "
		"transformers",
		xfp_printable(name).text);
}

static json_t *read_vocabulary(struct xfp_part_reader *r, const char *bytes, size_t size)
{
	struct xfp_content_lines lines = { .at = bytes, .end = bytes + size };
	json_t *vocabulary = json_object();

	if (!vocabulary)
		r->status = xfp_no_memory_for(r->err, r->file);
	while (xfp_content_line(r, &lines)) {
		const char *token = lines.line.bytes;

		if (!xfp_utf8_valid(token, lines.line.size))
			xfp_part_refuse(r, "vocab", "line %zu is not UTF-8; download the file again", lines.number + 1);
		else if (json_object_get(vocabulary, token))
			xfp_part_refuse(r, "vocab", "line %zu repeats the token %s; download the file again",
					lines.number + 1, xfp_printable(token).text);
		else if (json_object_set_new(vocabulary, token, json_integer((json_int_t)lines.number)))
			r->status = xfp_no_memory_for(r->err, r->file);
	}
	free(lines.line.bytes);
	return vocabulary;
}

/* The name of a special token: a text, or an object with its text. */
static const char *special_name(struct xfp_part_reader *r, const json_t *config, int which)
{
	const json_t *value = json_object_get(config, special[which].member);

	if (json_is_object(value))
		return xfp_part_text(r, CONFIG, value, "content", NULL);
	return xfp_part_text(r, CONFIG, config, special[which].member, special[which].missing);
}

/* Add the special tokens of the vocabulary to the added tokens that lack them. */
static void add_special(struct xfp_part_reader *r, json_t *added, const char *name, const json_t *id)
{
	json_t *token = json_pack("{s:s,s:O,s:b}", "content", name, "id", id, "special", 1);
	size_t index;
	json_t *other;

	json_array_foreach(added, index, other) if (json_equal(json_object_get(other, "id"), id))
	{
		json_decref(token);
		return;
	}
	if (!token || json_array_append_new(added, token))
		r->status = xfp_no_memory_for(r->err, r->file);
}

json_t *xfp_bert_content(struct xfp_part_reader *r, const char *bytes, size_t size, const json_t *config)
{
	json_t *vocabulary, *added, *root = NULL, *id[SPECIALS] = { NULL };
	bool lowercase = xfp_part_bool(r, CONFIG, config, "do_lower_case", true);
	bool accents = xfp_part_bool(r, CONFIG, config, "strip_accents", lowercase);
	bool chinese = xfp_part_bool(r, CONFIG, config, "tokenize_chinese_chars", true);
	const char *name[SPECIALS];

	check_class(r, config);
	added = xfp_content_added(r, config);
	vocabulary = read_vocabulary(r, bytes, size);
	for (int i = 0; !r->status && i < SPECIALS; i++) {
		name[i] = special_name(r, config, i);
		id[i] = json_object_get(vocabulary, name[i]);
		if (id[i])
			add_special(r, added, name[i], id[i]);
		else if (i <= CLASS)
			xfp_part_refuse(r, "vocab", "%s %s is missing; name it in " CONFIG, special[i].member,
					xfp_printable(name[i]).text);
	}
	if (!r->status &&
	    !(root = json_pack(
		      "{s:O,s:{s:s,s:s,s:s,s:i,s:O},s:{s:s,s:b,s:b,s:b},s:{s:s},s:{s:s,s:[s,O],s:[s,O]},s:{s:s}}",
		      "added_tokens", added, "model", "type", "WordPiece", "unk_token", name[UNKNOWN],
		      "continuing_subword_prefix", "##", "max_input_chars_per_word", 100, "vocab", vocabulary,
		      "normalizer", "type", "BertNormalizer", "handle_chinese_chars", chinese, "strip_accents", accents,
		      "lowercase", lowercase, "pre_tokenizer", "type", "BertPreTokenizer", "post_processor", "type",
		      "BertProcessing", "sep", name[SEPARATOR], id[SEPARATOR], "cls", name[CLASS], id[CLASS], "decoder",
		      "type", "WordPiece")))
		r->status = xfp_no_memory_for(r->err, r->file);
	json_decref(vocabulary);
	json_decref(added);
	return root;
}
