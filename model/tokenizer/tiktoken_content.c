/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tiktoken.model: a line per token, its bytes in Base64 and its rank, which is its id and its priority in merges. The
 * expression that splits texts is in the model's Python code, so it is selected by the name of its class.
 */
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "model/tokenizer/content.h"
#include "model/tokenizer/unicode/bytes_alphabet.h"
#include "model/tokenizer/unicode/unicode.h"

#define CONFIG "tokenizer_config.json"
#define LONGEST_PART 400000 /* characters; as in Kimi's Python code */
#define LONGEST_RUN 25000   /* of blanks, or of other characters */

#define KIMI_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define KIMI_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define KIMI_SHORT "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
#define KIMI                                                                          \
	"[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?" KIMI_UPPER "*" KIMI_LOWER "+" KIMI_SHORT \
	"|[^\\r\\n\\p{L}\\p{N}]?" KIMI_UPPER "+" KIMI_LOWER "*" KIMI_SHORT            \
	"|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* Classes, as in auto_map. Ids after the ranks that have no name in tokenizer_config.json are reserved. */
static const struct tiktoken_class {
	const char *name, *expression;
	uint32_t reserved;
} classes[] = { { "tokenization_kimi.TikTokenTokenizer", KIMI, 258 },
		{ "tokenization_moonshot.TikTokenTokenizer", KIMI, 258 },
		{ "TikTokenTokenizer", KIMI, 258 } };

static const struct tiktoken_class *find_class(struct xfp_part_reader *r, const json_t *config)
{
	const json_t *automatic = json_object_get(json_object_get(config, "auto_map"), "AutoTokenizer");
	const char *name = json_string_value(json_is_array(automatic) ? json_array_get(automatic, 0) : automatic);
	const char *repository = name ? strstr(name, "--") : NULL;

	if (!name)
		name = xfp_part_text(r, CONFIG, config, "tokenizer_class", "");
	if (repository)
		name = repository + 2;
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (!strcmp(name, classes[i].name))
			return &classes[i];
	xfp_part_refuse(r, CONFIG,
			"how the tokenizer class \"%s\" splits texts is not known to this version, only Kimi's "
			"TikTokenTokenizer; put a tokenizer.json into the folder",
			xfp_printable(name).text);
	return NULL;
}

/* The value of a Base64 digit; -1: not a digit. */
static int digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = c ? strchr(digits, c) : NULL;

	return found ? (int)(found - digits) : -1;
}

/* Decode Base64, as byte-level characters. False if it is invalid, or out of memory. */
static bool decode(struct xfp_part_reader *r, const char *text, size_t size, struct xfp_growable *token)
{
	size_t padding = size && text[size - 1] == '=' ? 1 + (size > 1 && text[size - 2] == '=') : 0;
	uint32_t bits = 0;

	token->size = 0;
	if (!size || size % 4)
		return false;
	for (size_t i = 0; i < size - padding; i++) {
		int value = digit(text[i]);
		char bytes[4];

		if (value < 0)
			return false;
		bits = bits << 6 | (uint32_t)value;
		if (i % 4 &&
		    !xfp_growable_add(token, bytes,
				      xfp_utf8_put(xfp_byte_character(bits >> (6 - 2 * (i % 4)) & 0xff), bytes)))
			r->status = xfp_no_memory_for(r->err, r->file);
	}
	if (!xfp_growable_add(token, "", 1))
		r->status = xfp_no_memory_for(r->err, r->file);
	return !r->status;
}

static void read_line(struct xfp_part_reader *r, const struct xfp_content_lines *lines, struct xfp_growable *token,
		      json_t *vocabulary)
{
	const char *line = lines->line.bytes, *blank = strchr(line, ' ');
	char *end = NULL;
	unsigned long rank = 0;

	if (!lines->line.size)
		return;
	if (blank && blank[1] >= '0' && blank[1] <= '9')
		rank = strtoul(blank + 1, &end, 10);
	if (!end || end != line + lines->line.size || rank >= INT32_MAX)
		xfp_part_refuse(r, "vocab", "line %zu is not a token and its rank; download the file again",
				lines->number + 1);
	else if (!decode(r, line, (size_t)(blank - line), token))
		xfp_part_refuse(r, "vocab", "line %zu: the token is not Base64; download the file again",
				lines->number + 1);
	else if (json_object_get(vocabulary, token->bytes))
		xfp_part_refuse(r, "vocab", "line %zu repeats a token; download the file again", lines->number + 1);
	else if (json_object_set_new(vocabulary, token->bytes, json_integer((json_int_t)rank)))
		r->status = xfp_no_memory_for(r->err, r->file);
}

/* Refuse a vocabulary without all ranks from 0, or without a token for each byte. */
static void check_vocabulary(struct xfp_part_reader *r, json_t *vocabulary)
{
	size_t count = json_object_size(vocabulary);
	const char *token;
	json_t *rank;

	json_object_foreach (vocabulary, token, rank)
		if ((size_t)json_integer_value(rank) >= count) {
			xfp_part_refuse(r, "vocab", "%zu tokens, but a rank of %u; download the file again", count,
					(unsigned)json_integer_value(rank));
			return;
		}
	for (unsigned byte = 0; byte < 256 && !r->status; byte++) {
		char text[5] = "";

		xfp_utf8_put(xfp_byte_character(byte), text);
		if (!json_object_get(vocabulary, text))
			xfp_part_refuse(r, "vocab", "no token for the byte 0x%02x; download the file again", byte);
	}
}

static json_t *read_vocabulary(struct xfp_part_reader *r, const char *bytes, size_t size)
{
	struct xfp_content_lines lines = { .at = bytes, .end = bytes + size };
	struct xfp_growable token = { 0 };
	json_t *vocabulary = json_object();

	if (!vocabulary)
		r->status = xfp_no_memory_for(r->err, r->file);
	while (xfp_content_line(r, &lines))
		read_line(r, &lines, &token, vocabulary);
	if (!r->status)
		check_vocabulary(r, vocabulary);
	free(lines.line.bytes);
	free(token.bytes);
	return vocabulary;
}

/* Name each id after the ranks. In texts, the names are matched as they are. */
static json_t *name_reserved(struct xfp_part_reader *r, const json_t *config, size_t ranks, size_t reserved)
{
	json_t *listed = xfp_content_added(r, config), *added = json_array(), *token;
	size_t index;

	for (size_t i = 0; added && i < reserved; i++)
		json_array_append_new(added,
				      json_pack("{s:I,s:o,s:b}", "id", (json_int_t)(ranks + i), "content",
						json_sprintf("<|reserved_token_%zu|>", ranks + i), "special", 1));
	if (!r->status && json_array_size(added) != reserved)
		r->status = xfp_no_memory_for(r->err, r->file);
	json_array_foreach(listed, index, token)
	{
		size_t id = (size_t)json_integer_value(json_object_get(token, "id"));
		json_t *named = json_array_get(added, id - ranks);

		if (!named)
			xfp_part_refuse(r, CONFIG, "added_tokens_decoder: %zu is not an id from %zu to %zu", id, ranks,
					ranks + reserved - 1);
		else if (json_object_set_new(named, "content",
					     json_string(xfp_part_text(r, CONFIG, token, "content", NULL))) ||
			 json_object_set_new(named, "special",
					     json_boolean(xfp_part_bool(r, CONFIG, token, "special", false))) ||
			 json_object_set_new(named, "normalized", json_false()))
			r->status = xfp_no_memory_for(r->err, r->file);
	}
	json_decref(listed);
	return added;
}

size_t xfp_tiktoken_part(const char *text, size_t size, uint32_t *done)
{
	uint32_t run = 0;
	size_t at = 0;
	bool blank = false;

	while (at < size && *done < LONGEST_PART) {
		uint32_t c;
		size_t length = xfp_utf8_decode(text + at, &c);
		bool is_blank = xfp_is_white(c) || (c >= 0x1c && c <= 0x1f);

		run = run && is_blank == blank ? run + 1 : 1;
		if (run > LONGEST_RUN)
			return at;
		blank = is_blank;
		at += length;
		++*done;
	}
	if (*done == LONGEST_PART)
		*done = 0;
	return at;
}

json_t *xfp_tiktoken_content(struct xfp_part_reader *r, const char *bytes, size_t size, const json_t *config)
{
	const struct tiktoken_class *class = find_class(r, config);
	json_t *vocabulary = class ? read_vocabulary(r, bytes, size) : NULL, *added = NULL, *root = NULL;

	if (!r->status)
		added = name_reserved(r, config, json_object_size(vocabulary), class->reserved);
	if (!r->status &&
	    !(root = json_pack("{s:O,s:{s:s,s:b,s:O,s:[]},s:{s:s,s:[{s:s,s:{s:s},s:s},{s:s,s:b,s:b}]},s:{s:s}}",
			       "added_tokens", added, "model", "type", "BPE", "ignore_merges", 1, "vocab", vocabulary,
			       "merges", "pre_tokenizer", "type", "Sequence", "pretokenizers", "type", "Split",
			       "pattern", "Regex", class->expression, "behavior", "Isolated", "type", "ByteLevel",
			       "add_prefix_space", 0, "use_regex", 0, "decoder", "type", "ByteLevel")))
		r->status = xfp_no_memory_for(r->err, r->file);
	r->tiktoken = true;
	json_decref(vocabulary);
	json_decref(added);
	return root;
}
