/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/decoder.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/printable.h"
#include "model/tokenizer/bytes_alphabet.h"
#include "model/tokenizer/pattern.h"
#include "model/tokenizer/splitter.h"
#include "model/tokenizer/unicode.h"

#define MAX_LINKS 64 /* each calls the next */

enum link_kind { BYTE_LEVEL, BYTE_FALLBACK, FUSE, STRIP, REPLACE, METASPACE, BLANKS };

struct decoder_link {
	enum link_kind kind;
	char *text;    /* to search for, or to strip */
	char *content; /* replacement */
	uint32_t start, stop;
	bool drop_first; /* remove replacements at the start of the first token */
};

struct xfp_decoder_chain {
	struct decoder_link *link;
	size_t count, capacity;
};

/* State of a link. */
struct link_state {
	struct xfp_growable held; /* text that is not certain yet: of a token, or bytes of a character */
	struct xfp_growable bytes;
	size_t tokens;   /* count of complete tokens */
	uint32_t cut;    /* characters stripped from the start of this token */
	uint32_t kept;   /* characters at its end so far that may have to be stripped */
	bool past_start; /* all stripping at the start is done */
};

struct xfp_decoder_run {
	const struct xfp_decoder_chain *chain;
	struct xfp_growable *out;
	struct link_state state[];
};

static void append(struct xfp_part_reader *r, struct xfp_decoder_chain *chain, struct decoder_link link,
		   const char *text, const char *content)
{
	if (chain->count == MAX_LINKS)
		xfp_part_refuse(r, "decoder", "more than %d parts", MAX_LINKS);
	if (r->status)
		return;
	link.text = strdup(text);
	link.content = strdup(content);
	if (link.text && link.content && xfp_grow(&chain->link, sizeof link, chain->count, 1, &chain->capacity)) {
		chain->link[chain->count++] = link;
		return;
	}
	free(link.text);
	free(link.content);
	r->status = xfp_no_memory_for(r->err, r->file);
}

static void add_replace(struct xfp_part_reader *r, const char *where, const json_t *value,
			struct xfp_decoder_chain *chain)
{
	static const char *const names[] = { "type", "pattern", "content", NULL };
	struct xfp_pattern *pattern;

	xfp_part_only(r, where, value, names);
	if (!(pattern = xfp_pattern_open(r, where, json_object_get(value, "pattern"))))
		return;
	if (!xfp_pattern_string(pattern))
		xfp_part_refuse(r, where, "Replace of a Regex is not supported in a decoder; Replace of a String is");
	else
		append(r, chain, (struct decoder_link){ .kind = REPLACE }, xfp_pattern_string(pattern),
		       xfp_part_text(r, where, value, "content", NULL));
	xfp_pattern_free(pattern);
}

static void add_strip(struct xfp_part_reader *r, const char *where, const json_t *value,
		      struct xfp_decoder_chain *chain)
{
	static const char *const names[] = { "type", "content", "start", "stop", NULL };
	const char *text = xfp_part_text(r, where, value, "content", NULL);
	uint32_t character;

	xfp_part_only(r, where, value, names);
	if (!r->status && (!*text || text[xfp_utf8_decode(text, &character)]))
		xfp_part_refuse(r, where, "content is not one character");
	append(r, chain,
	       (struct decoder_link){ .kind = STRIP,
				      .start = xfp_part_number(r, where, value, "start"),
				      .stop = xfp_part_number(r, where, value, "stop") },
	       text, "");
}

static void add_metaspace(struct xfp_part_reader *r, const char *where, const json_t *value,
			  struct xfp_decoder_chain *chain)
{
	static const char *const names[] = { "type",    "replacement", "prepend_scheme", "add_prefix_space", "split",
					     "str_rep", NULL };
	bool never = xfp_metaspace_scheme(r, where, value) == XFP_METASPACE_NEVER;

	xfp_part_only(r, where, value, names);
	append(r, chain, (struct decoder_link){ .kind = METASPACE, .drop_first = !never },
	       xfp_metaspace_replacement(r, where, value), " ");
}

static void add(struct xfp_part_reader *r, const char *where, const json_t *value, void *to, int depth)
{
	static const char *const alone[] = { "type", NULL }, *const level[] = { "type", "add_prefix_space",
										"trim_offsets", "use_regex", NULL };
	const char *type = xfp_part_type(r, where, value);
	struct xfp_decoder_chain *chain = to;

	if (!strcmp(type, "Sequence")) {
		xfp_part_sequence(r, where, value, "decoders", add, chain, depth);
	} else if (!strcmp(type, "ByteLevel")) {
		xfp_part_only(r, where, value, level);
		append(r, chain, (struct decoder_link){ .kind = BYTE_LEVEL }, "", "");
	} else if (!strcmp(type, "ByteFallback") || !strcmp(type, "Fuse")) {
		xfp_part_only(r, where, value, alone);
		append(r, chain, (struct decoder_link){ .kind = *type == 'B' ? BYTE_FALLBACK : FUSE }, "", "");
	} else if (!strcmp(type, "Strip")) {
		add_strip(r, where, value, chain);
	} else if (!strcmp(type, "Replace")) {
		add_replace(r, where, value, chain);
	} else if (!strcmp(type, "Metaspace")) {
		add_metaspace(r, where, value, chain);
	} else {
		xfp_part_refuse(r, where,
				"%s is not supported: ByteLevel, ByteFallback, Fuse, Strip, Replace, Metaspace and "
				"Sequence are",
				xfp_printable(type).text);
	}
}

struct xfp_decoder_chain *xfp_decoder_chain_open(struct xfp_part_reader *r, const json_t *value)
{
	struct xfp_decoder_chain *chain = r->status ? NULL : calloc(1, sizeof *chain);

	if (r->status)
		return NULL;
	if (!chain)
		r->status = xfp_no_memory_for(r->err, r->file);
	else if (value && !json_is_null(value))
		add(r, "decoder", value, chain, 0);
	else
		append(r, chain, (struct decoder_link){ .kind = BLANKS }, "", "");
	if (!r->status)
		return chain;
	xfp_decoder_chain_free(chain);
	return NULL;
}

void xfp_decoder_chain_free(struct xfp_decoder_chain *chain)
{
	for (size_t i = 0; chain && i < chain->count; i++) {
		free(chain->link[i].text);
		free(chain->link[i].content);
	}
	if (chain)
		free(chain->link);
	free(chain);
}

struct xfp_decoder_run *xfp_decoder_run_begin(const struct xfp_decoder_chain *chain)
{
	struct xfp_decoder_run *run = calloc(1, sizeof *run + chain->count * sizeof *run->state);

	if (run)
		run->chain = chain;
	return run;
}

void xfp_decoder_run_free(struct xfp_decoder_run *run)
{
	for (size_t i = 0; run && i < run->chain->count; i++) {
		free(run->state[i].held.bytes);
		free(run->state[i].bytes.bytes);
	}
	free(run);
}

/* Pass complete characters of a token, its end, or the end of all to a link. */
static bool take(struct xfp_decoder_run *run, size_t index, const char *text, size_t size);
static bool end_token(struct xfp_decoder_run *run, size_t index);
static bool finish(struct xfp_decoder_run *run, size_t index);

static void drop(struct xfp_growable *held, size_t size)
{
	held->size -= size;
	memmove(held->bytes, held->bytes + size, held->size);
}

/* Append the bytes that byte-level characters stand for; of another token, its own bytes. */
static bool add_level_bytes(struct xfp_growable *bytes, const struct xfp_growable *token)
{
	size_t before = bytes->size, length;

	for (size_t at = 0; at < token->size; at += length) {
		uint32_t character;
		char byte;
		int value;

		length = xfp_utf8_decode(token->bytes + at, &character);
		if ((value = xfp_character_byte(character)) < 0) {
			bytes->size = before;
			return xfp_growable_add(bytes, token->bytes, token->size);
		}
		byte = (char)value;
		if (!xfp_growable_add(bytes, &byte, 1))
			return false;
	}
	return true;
}

/* Pass on the bytes that are certain; at the end, all. */
static bool emit_characters(struct xfp_decoder_run *run, size_t index, bool all)
{
	struct xfp_growable *bytes = &run->state[index].bytes, text = { 0 };
	size_t certain = 0, bad;
	bool made;

	while (certain < bytes->size) {
		int length = xfp_utf8_length(bytes->bytes + certain, bytes->size - certain, &bad);

		if (length < 0 && !all)
			break;
		certain += length > 0 ? (size_t)length : length < 0 ? (size_t)-length : bad;
	}
	made = xfp_utf8_replace(bytes->bytes, certain, &text) &&
	       (!text.size || take(run, index + 1, text.bytes, text.size));
	free(text.bytes);
	if (certain)
		drop(bytes, certain);
	return made;
}

/* The byte of "<0x0A>"; -1 for another token. */
static int fallback_byte(const struct xfp_growable *token)
{
	int value = 0;

	if (token->size != 6 || memcmp(token->bytes, "<0x", 3) || token->bytes[5] != '>')
		return -1;
	for (int i = 3; i < 5; i++) {
		char c = token->bytes[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
						   : -1;

		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

/* NUL is a character like any other. */
static bool valid(const char *text, size_t size)
{
	size_t bad;
	int length = 1;

	for (size_t at = 0; length > 0 && at < size; at += (size_t)length)
		length = xfp_utf8_length(text + at, size - at, &bad);
	return length > 0;
}

/* Consecutive bytes are decoded together; if that is not UTF-8, each becomes U+FFFD. */
static bool emit_fallback(struct xfp_decoder_run *run, size_t index)
{
	struct xfp_growable *bytes = &run->state[index].bytes;
	size_t count = bytes->size;
	bool made = true;

	if (!count)
		return true;
	if (valid(bytes->bytes, count))
		made = take(run, index + 1, bytes->bytes, count) && end_token(run, index + 1);
	else
		for (size_t i = 0; made && i < count; i++)
			made = take(run, index + 1, XFP_REPLACEMENT, sizeof XFP_REPLACEMENT - 1) &&
			       end_token(run, index + 1);
	bytes->size = 0;
	return made;
}

static bool strip(struct xfp_decoder_run *run, size_t index, const char *text, size_t size)
{
	const struct decoder_link *link = &run->chain->link[index];
	struct link_state *s = &run->state[index];
	size_t length, wanted = strlen(link->text);

	for (size_t at = 0; at < size; at += length) {
		uint32_t character;
		bool same;

		length = xfp_utf8_decode(text + at, &character);
		same = length == wanted && !memcmp(text + at, link->text, length);
		if (same && !s->past_start && s->cut < link->start) {
			s->cut++;
			continue;
		}
		s->past_start = true;
		if (same && s->kept < link->stop) {
			s->kept++;
			continue;
		}
		/* A repeated character releases one of those at the end; another character releases all. */
		for (; !same && s->kept; s->kept--)
			if (!take(run, index + 1, link->text, wanted))
				return false;
		if (!take(run, index + 1, text + at, length))
			return false;
	}
	return true;
}

/* Replace, and pass on what cannot be the start of a match. */
static bool replace(struct xfp_decoder_run *run, size_t index, bool all)
{
	const struct decoder_link *link = &run->chain->link[index];
	struct xfp_growable *held = &run->state[index].held;
	size_t wanted = strlen(link->text), done = 0, certain;
	const char *found;

	while (held->size > done && (found = memmem(held->bytes + done, held->size - done, link->text, wanted))) {
		size_t before = (size_t)(found - held->bytes) - done;

		if ((before && !take(run, index + 1, held->bytes + done, before)) ||
		    (*link->content && !take(run, index + 1, link->content, strlen(link->content))))
			return false;
		done += before + wanted;
	}
	certain = all ? held->size : held->size < done + wanted ? done : held->size - (wanted - 1);
	while (certain > done && certain < held->size && xfp_utf8_continues(held->bytes[certain]))
		certain--;
	if (certain > done && !take(run, index + 1, held->bytes + done, certain - done))
		return false;
	if (certain)
		drop(held, certain);
	return true;
}

static bool metaspace(struct xfp_decoder_run *run, size_t index, const char *text, size_t size)
{
	const struct decoder_link *link = &run->chain->link[index];
	bool nothing = link->drop_first && !run->state[index].tokens, made = true;
	size_t length, wanted = strlen(link->text);

	for (size_t at = 0; made && at < size; at += length) {
		uint32_t character;

		length = xfp_utf8_decode(text + at, &character);
		if (length != wanted || memcmp(text + at, link->text, length))
			made = take(run, index + 1, text + at, length);
		else if (!nothing)
			made = take(run, index + 1, " ", 1);
	}
	return made;
}

static bool take(struct xfp_decoder_run *run, size_t index, const char *text, size_t size)
{
	if (index == run->chain->count)
		return xfp_growable_add(run->out, text, size);
	switch (run->chain->link[index].kind) {
	case BYTE_LEVEL:
	case BYTE_FALLBACK:
		return xfp_growable_add(&run->state[index].held, text, size);
	case STRIP:
		return strip(run, index, text, size);
	case REPLACE:
		return xfp_growable_add(&run->state[index].held, text, size) && replace(run, index, false);
	case METASPACE:
		return metaspace(run, index, text, size);
	case FUSE:
	case BLANKS:
		break;
	}
	return take(run, index + 1, text, size);
}

static bool end_fallback(struct xfp_decoder_run *run, size_t index)
{
	struct link_state *s = &run->state[index];
	int byte = fallback_byte(&s->held);
	char one = (char)byte;
	bool made;

	if (byte >= 0)
		made = xfp_growable_add(&s->bytes, &one, 1);
	else
		made = emit_fallback(run, index) &&
		       (!s->held.size || take(run, index + 1, s->held.bytes, s->held.size)) &&
		       end_token(run, index + 1);
	s->held.size = 0;
	return made;
}

static bool end_token(struct xfp_decoder_run *run, size_t index)
{
	struct link_state *s = &run->state[index];
	bool made = true;

	if (index == run->chain->count)
		return true;
	s->tokens++;
	switch (run->chain->link[index].kind) {
	case BYTE_LEVEL:
		made = add_level_bytes(&s->bytes, &s->held) && emit_characters(run, index, false);
		s->held.size = 0;
		return made;
	case BYTE_FALLBACK:
		return end_fallback(run, index);
	case FUSE:
		return true;
	case STRIP:
		s->cut = s->kept = 0;
		s->past_start = false;
		break;
	case REPLACE:
		made = replace(run, index, true);
		break;
	case METASPACE:
	case BLANKS:
		break;
	}
	return made && end_token(run, index + 1);
}

static bool finish(struct xfp_decoder_run *run, size_t index)
{
	bool made = true;

	if (index == run->chain->count)
		return true;
	switch (run->chain->link[index].kind) {
	case BYTE_LEVEL:
		made = emit_characters(run, index, true) && end_token(run, index + 1);
		break;
	case BYTE_FALLBACK:
		made = emit_fallback(run, index);
		break;
	case FUSE:
		made = end_token(run, index + 1);
		break;
	default:
		break;
	}
	return made && finish(run, index + 1);
}

bool xfp_decoder_run_add(struct xfp_decoder_run *run, const char *token, size_t size, struct xfp_growable *out)
{
	const struct decoder_link *first = run->chain->link;

	run->out = out;
	if (run->chain->count && first->kind == BLANKS && run->state->tokens && !take(run, 0, " ", 1))
		return false;
	return (!size || take(run, 0, token, size)) && end_token(run, 0);
}

bool xfp_decoder_run_end(struct xfp_decoder_run *run, struct xfp_growable *out)
{
	run->out = out;
	return finish(run, 0);
}
