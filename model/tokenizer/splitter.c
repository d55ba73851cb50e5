/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/splitter.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/printable.h"
#include "model/tokenizer/pattern.h"
#include "model/tokenizer/unicode/bytes_alphabet.h"
#include "model/tokenizer/unicode/unicode.h"

/* GPT-2's expression, which is built into ByteLevel. */
#define WORDS "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

enum splitter_kind { CUT, METASPACE, BLANK_BEFORE, BYTES };
/* What happens to matches of a pattern. */
enum behaviour { ISOLATED, REMOVED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS };

struct xfp_splitter {
	enum splitter_kind kind;
	enum behaviour behaviour;
	bool invert;
	enum xfp_metaspace scheme;
	char replacement[8];
	struct xfp_pattern *pattern;
	bool (*is_match)(uint32_t character); /* for CUT; with a pattern, NULL */
	struct xfp_splitter *next;
};

enum xfp_metaspace xfp_metaspace_scheme(struct xfp_part_reader *r, const char *where, const json_t *value)
{
	bool prefix = xfp_part_bool(r, where, value, "add_prefix_space", true);
	const char *scheme = xfp_part_text(r, where, value, "prepend_scheme", prefix ? "always" : "never");

	if (!prefix && strcmp(scheme, "never"))
		xfp_part_refuse(r, where, "add_prefix_space is false, and prepend_scheme is %s",
				xfp_printable(scheme).text);
	if (!strcmp(scheme, "first"))
		return XFP_METASPACE_FIRST;
	if (!strcmp(scheme, "never"))
		return XFP_METASPACE_NEVER;
	if (strcmp(scheme, "always"))
		xfp_part_refuse(r, where, "prepend_scheme %s is not supported: always, first and never are",
				xfp_printable(scheme).text);
	return XFP_METASPACE_ALWAYS;
}

const char *xfp_metaspace_replacement(struct xfp_part_reader *r, const char *where, const json_t *value)
{
	const char *text = xfp_part_text(r, where, value, "replacement", NULL);
	uint32_t character;

	if (!r->status && (!*text || text[xfp_utf8_decode(text, &character)]))
		xfp_part_refuse(r, where, "replacement is not one character");
	return r->status ? "" : text;
}

static enum behaviour behaviour_of(struct xfp_part_reader *r, const char *where, const json_t *value,
				   const char *missing)
{
	static const char *const names[] = { [ISOLATED] = "Isolated",
					     [REMOVED] = "Removed",
					     [MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
					     [MERGED_WITH_NEXT] = "MergedWithNext",
					     [CONTIGUOUS] = "Contiguous" };
	const char *name = xfp_part_text(r, where, value, "behavior", missing);

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return (enum behaviour)i;
	xfp_part_refuse(r, where, "behavior %s is not supported", xfp_printable(name).text);
	return ISOLATED;
}

/* Append a splitter to the list. */
static void append(struct xfp_part_reader *r, struct xfp_splitter splitter, struct xfp_splitter ***end)
{
	if (!r->status && !(**end = malloc(sizeof splitter)))
		r->status = xfp_no_memory_for(r->err, r->file);
	if (!**end) {
		xfp_pattern_free(splitter.pattern);
		return;
	}
	***end = splitter;
	*end = &(**end)->next;
}

static void add_byte_level(struct xfp_part_reader *r, const char *where, const json_t *value,
			   struct xfp_splitter ***end)
{
	static const char *const names[] = { "type", "add_prefix_space", "trim_offsets", "use_regex", NULL };

	xfp_part_only(r, where, value, names);
	if (xfp_part_bool(r, where, value, "add_prefix_space", true))
		append(r, (struct xfp_splitter){ .kind = BLANK_BEFORE }, end);
	if (xfp_part_bool(r, where, value, "use_regex", true))
		append(r, (struct xfp_splitter){ .kind = CUT, .pattern = xfp_pattern_compile(r, where, WORDS) }, end);
	append(r, (struct xfp_splitter){ .kind = BYTES }, end);
}

static void add_metaspace(struct xfp_part_reader *r, const char *where, const json_t *value, struct xfp_splitter ***end)
{
	static const char *const names[] = { "type",    "replacement", "prepend_scheme", "add_prefix_space", "split",
					     "str_rep", NULL };
	struct xfp_splitter s = { .kind = METASPACE };

	xfp_part_only(r, where, value, names);
	s.scheme = xfp_metaspace_scheme(r, where, value);
	snprintf(s.replacement, sizeof s.replacement, "%s", xfp_metaspace_replacement(r, where, value));
	append(r, s, end);
	if (xfp_part_bool(r, where, value, "split", true) && !r->status) {
		json_t *string = json_pack("{s:s}", "String", s.replacement);

		s = (struct xfp_splitter){ .kind = CUT, .behaviour = MERGED_WITH_NEXT };
		if (string)
			s.pattern = xfp_pattern_open(r, where, string);
		else
			r->status = xfp_no_memory_for(r->err, r->file);
		json_decref(string);
		append(r, s, end);
	}
}

static void add(struct xfp_part_reader *r, const char *where, const json_t *value, void *to, int depth)
{
	static const char *const split[] = { "type", "pattern", "behavior", "invert", NULL },
				 *const digits[] = { "type", "individual_digits", NULL },
				 *const punctuation[] = { "type", "behavior", NULL }, *const alone[] = { "type", NULL };
	const char *type = xfp_part_type(r, where, value);
	struct xfp_splitter ***end = to, s = { 0 };

	if (!strcmp(type, "Sequence")) {
		xfp_part_sequence(r, where, value, "pretokenizers", add, end, depth);
	} else if (!strcmp(type, "ByteLevel")) {
		add_byte_level(r, where, value, end);
	} else if (!strcmp(type, "Metaspace")) {
		add_metaspace(r, where, value, end);
	} else if (!strcmp(type, "Digits")) {
		xfp_part_only(r, where, value, digits);
		s.is_match = xfp_is_numeric;
		if (!xfp_part_bool(r, where, value, "individual_digits", false))
			s.behaviour = CONTIGUOUS;
		append(r, s, end);
	} else if (!strcmp(type, "BertPreTokenizer") || !strcmp(type, "WhitespaceSplit")) {
		xfp_part_only(r, where, value, alone);
		append(r, (struct xfp_splitter){ .behaviour = REMOVED, .is_match = xfp_is_white }, end);
		if (*type == 'B')
			append(r, (struct xfp_splitter){ .is_match = xfp_is_punctuation }, end);
	} else if (!strcmp(type, "Punctuation")) {
		xfp_part_only(r, where, value, punctuation);
		s.is_match = xfp_is_punctuation;
		s.behaviour = behaviour_of(r, where, value, "Isolated");
		append(r, s, end);
	} else if (!strcmp(type, "Split")) {
		xfp_part_only(r, where, value, split);
		s.behaviour = behaviour_of(r, where, value, NULL);
		s.invert = xfp_part_bool(r, where, value, "invert", false);
		s.pattern = xfp_pattern_open(r, where, json_object_get(value, "pattern"));
		append(r, s, end);
	} else {
		xfp_part_refuse(r, where,
				"%s is not supported: ByteLevel, Split, Digits, Metaspace, BertPreTokenizer, "
				"WhitespaceSplit, Punctuation and Sequence are",
				xfp_printable(type).text);
	}
}

struct xfp_splitter *xfp_splitter_open(struct xfp_part_reader *r, const json_t *value)
{
	struct xfp_splitter *first = NULL, **end = &first;

	if (r->status || !value || json_is_null(value))
		return NULL;
	add(r, "pre_tokenizer", value, &end, 0);
	if (!r->status)
		return first;
	xfp_splitter_free(first);
	return NULL;
}

void xfp_splitter_free(struct xfp_splitter *s)
{
	while (s) {
		struct xfp_splitter *next = s->next;

		xfp_pattern_free(s->pattern);
		free(s);
		s = next;
	}
}

/* Find characters, in the form of a pattern's matches. */
static bool find_characters(bool (*is_match)(uint32_t character), const char *text, size_t size,
			    struct xfp_spans *spans)
{
	size_t length;

	spans->count = 0;
	for (size_t at = 0; at < size; at += length) {
		uint32_t character;
		bool match;

		length = xfp_utf8_decode(text + at, &character);
		match = is_match(character);
		if (!match && spans->count && !spans->span[spans->count - 1].match) {
			spans->span[spans->count - 1].end += length;
			continue;
		}
		if (!xfp_grow(&spans->span, sizeof *spans->span, spans->count, 1, &spans->capacity))
			return false;
		spans->span[spans->count++] = (struct xfp_span){ at, at + length, match };
	}
	return true;
}

/* Join spans into pieces, in place; removed ones become empty. Empty matches are kept until then, since they separate
 * others. */
static void join(struct xfp_spans *spans, enum behaviour behaviour)
{
	struct xfp_span *s = spans->span;
	size_t count = 0;
	bool matched = false;

	if (behaviour == MERGED_WITH_NEXT) {
		for (size_t i = spans->count; i-- > 1;)
			if (s[i - 1].match && !(i < spans->count && s[i].match)) {
				s[i - 1].end = s[i].end;
				s[i].start = s[i].end;
			}
		return;
	}
	for (size_t i = 0; i < spans->count; i++) {
		bool match = s[i].match, joined = false;

		if (behaviour == REMOVED && match)
			s[i].start = s[i].end;
		else if (behaviour == MERGED_WITH_PREVIOUS)
			joined = match && !matched && count;
		else if (behaviour == CONTIGUOUS)
			joined = match == matched && count;
		if (joined)
			s[count - 1].end = s[i].end;
		else
			s[count++] = s[i];
		matched = match;
	}
	spans->count = count;
}

/* Split the pieces; the text stays the same. */
static enum xfp_status cut(const struct xfp_splitter *s, struct xfp_text_piece whole, struct xfp_pieces *out,
			   const char *text, struct xfp_pattern_budget *budget, struct xfp_spans *spans,
			   struct xfp_error *err)
{
	if (s->pattern) {
		enum xfp_status status = xfp_pattern_find(s->pattern, text + whole.at, whole.size, budget, spans, err);

		if (status)
			return status;
	} else if (!find_characters(s->is_match, text + whole.at, whole.size, spans)) {
		return xfp_no_memory(err);
	}
	for (size_t i = 0; s->invert && i < spans->count; i++)
		spans->span[i].match = !spans->span[i].match;
	join(spans, s->behaviour);
	for (size_t i = 0; i < spans->count; i++) {
		const struct xfp_span *at = &spans->span[i];

		if (!xfp_pieces_add(out, (struct xfp_text_piece){ whole.at + at->start, at->end - at->start, -1,
								  whole.first && !at->start }))
			return xfp_no_memory(err);
	}
	return XFP_OK;
}

static bool starts_with(const char *text, size_t size, const char *start)
{
	return size >= strlen(start) && !memcmp(text, start, strlen(start));
}

/* Append a piece with other characters to the new text. */
static bool rewrite(const struct xfp_splitter *s, struct xfp_text_piece piece, const char *text,
		    struct xfp_growable *out)
{
	size_t length = strlen(s->replacement);
	bool made = true;

	if (s->kind == BLANK_BEFORE)
		return (starts_with(text, piece.size, " ") || xfp_growable_add(out, " ", 1)) &&
		       xfp_growable_add(out, text, piece.size);
	if (s->kind == METASPACE && !starts_with(text, piece.size, " ") &&
	    !starts_with(text, piece.size, s->replacement) &&
	    (s->scheme == XFP_METASPACE_ALWAYS || (s->scheme == XFP_METASPACE_FIRST && piece.first)))
		made = xfp_growable_add(out, s->replacement, length);
	for (size_t i = 0; made && i < piece.size; i++) {
		char bytes[4];

		if (s->kind == METASPACE)
			made = text[i] == ' ' ? xfp_growable_add(out, s->replacement, length)
					      : xfp_growable_add(out, text + i, 1);
		else
			made = xfp_growable_add(out, bytes,
						xfp_utf8_put(xfp_byte_character((unsigned char)text[i]), bytes));
	}
	return made;
}

static enum xfp_status split_once(const struct xfp_splitter *s, const struct xfp_tokenizer_watch *watch,
				  struct xfp_pattern_budget *budget, struct xfp_pieces *pieces, struct xfp_pieces *out,
				  struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;
	struct xfp_spans spans = { 0 };

	for (size_t i = 0; !status && i < pieces->count; i++) {
		struct xfp_text_piece piece = pieces->piece[i];
		const char *text = pieces->text.bytes;
		size_t at = out->text.size;

		if (xfp_tokenizer_stopped(watch, i)) {
			status = xfp_fail(err, XFP_FAILED, "interrupted");
			break;
		}
		if (piece.id < 0 && s->kind == CUT) {
			status = cut(s, piece, out, text, budget, &spans, err);
			continue;
		}
		if (s->kind != CUT) {
			if (!(piece.id < 0 ? rewrite(s, piece, text + piece.at, &out->text)
					   : xfp_growable_add(&out->text, text + piece.at, piece.size)))
				status = xfp_no_memory(err);
			piece.at = at;
			piece.size = out->text.size - at;
		}
		if (!status && !xfp_pieces_add(out, piece))
			status = xfp_no_memory(err);
	}
	free(spans.span);
	return status;
}

enum xfp_status xfp_split(const struct xfp_splitter *s, const struct xfp_tokenizer_watch *watch,
			  struct xfp_pattern_budget *budget, struct xfp_pieces *pieces, struct xfp_error *err)
{
	enum xfp_status status = XFP_OK;

	for (; s && !status; s = s->next) {
		struct xfp_pieces out = { 0 };

		if (!(status = split_once(s, watch, budget, pieces, &out, err)) && s->kind == CUT) {
			out.text = pieces->text;
			pieces->text = (struct xfp_growable){ 0 };
		}
		if (status) {
			xfp_pieces_free(&out);
		} else {
			xfp_pieces_free(pieces);
			*pieces = out;
		}
	}
	return status;
}
