/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/decoder_chain.h"

#include <stdlib.h>

#include "model/tokenizer/unicode/bytes_alphabet.h"
#include "model/tokenizer/unicode/unicode.h"

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
	case WORDPIECE:
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

/* The first token is unchanged. Others continue it without their prefix, or follow a blank. */
static bool end_wordpiece(struct xfp_decoder_run *run, size_t index)
{
	const char *prefix = run->chain->link[index].text;
	struct link_state *s = &run->state[index];
	size_t skipped = 0;
	bool made = true;

	if (s->tokens > 1 && s->held.size >= strlen(prefix) && !memcmp(s->held.bytes, prefix, strlen(prefix)))
		skipped = strlen(prefix);
	else if (s->tokens > 1)
		made = take(run, index + 1, " ", 1);
	made = made &&
	       (s->held.size == skipped || take(run, index + 1, s->held.bytes + skipped, s->held.size - skipped));
	s->held.size = 0;
	return made && end_token(run, index + 1);
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
	case WORDPIECE:
		return end_wordpiece(run, index);
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
