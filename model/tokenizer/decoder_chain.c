/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/decoder_chain.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/printable.h"
#include "model/tokenizer/pattern.h"
#include "model/tokenizer/splitter.h"
#include "model/tokenizer/unicode/unicode.h"

#define MAX_LINKS 64 /* each calls the next */

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

/* The prefix of tokens that continue a word; then, if asked for, the removal of blanks that English does not have. */
static void add_wordpiece(struct xfp_part_reader *r, const char *where, const json_t *value,
			  struct xfp_decoder_chain *chain)
{
	static const char *const names[] = { "type", "prefix", "cleanup", NULL };
	static const struct {
		const char *text, *content;
	} cleanup[] = { { " .", "." },   { " ?", "?" },     { " !", "!" },    { " ,", "," },
			{ " ' ", "'" },  { " n't", "n't" }, { " 'm", "'m" },  { " do not", " don't" },
			{ " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" } };

	xfp_part_only(r, where, value, names);
	append(r, chain, (struct decoder_link){ .kind = WORDPIECE }, xfp_part_text(r, where, value, "prefix", "##"),
	       "");
	for (size_t i = 0; i < sizeof cleanup / sizeof *cleanup && xfp_part_bool(r, where, value, "cleanup", true); i++)
		append(r, chain, (struct decoder_link){ .kind = REPLACE }, cleanup[i].text, cleanup[i].content);
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
	} else if (!strcmp(type, "WordPiece")) {
		add_wordpiece(r, where, value, chain);
	} else {
		xfp_part_refuse(r, where,
				"%s is not supported: ByteLevel, ByteFallback, Fuse, Strip, Replace, Metaspace, "
				"WordPiece and Sequence are",
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
