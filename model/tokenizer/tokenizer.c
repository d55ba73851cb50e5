/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tokenizer/tokenizer.h"

#include <stdlib.h>

#include "base/printable.h"
#include "model/tokenizer/added.h"
#include "model/tokenizer/bpe.h"
#include "model/tokenizer/content.h"
#include "model/tokenizer/decoder.h"
#include "model/tokenizer/normalizer.h"
#include "model/tokenizer/splitter.h"
#include "model/tokenizer/template.h"
#include "model/tokenizer/unicode/unicode.h"
#include "model/tokenizer/wordpiece.h"

struct xfp_tokenizer {
	struct xfp_normalizer *normalizer;
	struct xfp_splitter *splitter;
	struct xfp_vocabulary *vocabulary;
	struct xfp_bpe *bpe; /* NULL: WordPiece */
	struct xfp_wordpiece *wordpiece;
	struct xfp_added *added;
	struct xfp_template around;
	struct xfp_decoder_chain *decoder;
	struct xfp_tokenizer_watch watch; /* patterns point to it */
	bool in_parts;                    /* texts are encoded in parts */
};

static void open_model(struct xfp_part_reader *r, struct xfp_tokenizer *t, const json_t *model)
{
	/* In files without a type, the members show it. */
	const char *type = xfp_part_text(r, "model", model, "type",
					 json_object_get(model, "merges")                     ? "BPE"
					 : json_object_get(model, "max_input_chars_per_word") ? "WordPiece"
											      : "");
	bool wordpiece = !strcmp(type, "WordPiece");

	if (!wordpiece && strcmp(type, "BPE"))
		xfp_part_refuse(r, "model", "%s is not supported: BPE and WordPiece are",
				*type ? xfp_printable(type).text : "a model without a type");
	t->vocabulary = xfp_vocabulary_open(r, json_object_get(model, "vocab"));
	if (wordpiece)
		t->wordpiece = xfp_wordpiece_open(r, model, t->vocabulary);
	else
		t->bpe = xfp_bpe_open(r, model, t->vocabulary);
}

enum xfp_status xfp_tokenizer_open_content(xfp_content_reader *read, const char *bytes, size_t size, const char *shown,
					   const json_t *config, struct xfp_tokenizer **tokenizer,
					   struct xfp_error *err)
{
	/* truncation and padding are for callers that make batches. */
	static const char *const names[] = { "version",       "truncation",     "padding", "added_tokens", "normalizer",
					     "pre_tokenizer", "post_processor", "decoder", "model",        NULL };
	struct xfp_tokenizer *t = calloc(1, sizeof *t);
	struct xfp_part_reader r = { .file = shown, .err = err, .watch = t ? &t->watch : NULL };
	json_t *root;

	if (!t)
		return xfp_no_memory_for(err, shown);
	root = read(&r, bytes, size, config);
	xfp_part_only(&r, "the file", root, names);
	if (!r.status && !json_is_object(json_object_get(root, "model")))
		xfp_part_refuse(&r, "model", "missing; this is not a tokenizer.json");
	open_model(&r, t, json_object_get(root, "model"));
	t->normalizer = xfp_normalizer_open(&r, json_object_get(root, "normalizer"));
	t->splitter = xfp_splitter_open(&r, json_object_get(root, "pre_tokenizer"));
	t->added = xfp_added_open(&r, json_object_get(root, "added_tokens"), t->vocabulary, t->normalizer);
	xfp_template_read(&r, json_object_get(root, "post_processor"), &t->around);
	t->decoder = xfp_decoder_chain_open(&r, json_object_get(root, "decoder"));
	json_decref(root);
	t->in_parts = r.tiktoken;
	if (r.status)
		xfp_tokenizer_free(t);
	else
		*tokenizer = t;
	return r.status;
}

enum xfp_status xfp_tokenizer_open(const char *json, size_t size, const char *shown, struct xfp_tokenizer **tokenizer,
				   struct xfp_error *err)
{
	return xfp_tokenizer_open_content(xfp_json_content, json, size, shown, NULL, tokenizer, err);
}

void xfp_tokenizer_free(struct xfp_tokenizer *t)
{
	if (!t)
		return;
	xfp_normalizer_free(t->normalizer);
	xfp_splitter_free(t->splitter);
	xfp_vocabulary_free(t->vocabulary);
	xfp_bpe_free(t->bpe);
	xfp_wordpiece_free(t->wordpiece);
	xfp_added_free(t->added);
	free(t->around.before.id);
	free(t->around.after.id);
	xfp_decoder_chain_free(t->decoder);
	free(t);
}

void xfp_tokenizer_watch(struct xfp_tokenizer *t, bool (*should_continue)(void *context), void *context)
{
	t->watch = (struct xfp_tokenizer_watch){ should_continue, context };
}

uint32_t xfp_tokenizer_ids(const struct xfp_tokenizer *t)
{
	uint32_t model = xfp_vocabulary_ids(t->vocabulary), added = xfp_added_ids(t->added);

	return model > added ? model : added;
}

bool xfp_tokenizer_find(const struct xfp_tokenizer *t, const char *token, uint32_t *id)
{
	int64_t found = xfp_added_find(t->added, token);

	if (found < 0)
		found = xfp_vocabulary_find(t->vocabulary, token, strlen(token));
	if (found >= 0)
		*id = (uint32_t)found;
	return found >= 0;
}

static enum xfp_status add_ids(struct xfp_token_ids *ids, const struct xfp_token_ids *more, struct xfp_error *err)
{
	for (size_t i = 0; i < more->count; i++)
		if (!xfp_ids_add(ids, more->id[i]))
			return xfp_no_memory(err);
	return XFP_OK;
}

static enum xfp_status encode_pieces(const struct xfp_tokenizer *t, const struct xfp_pieces *pieces,
				     struct xfp_token_ids *ids, struct xfp_error *err)
{
	struct xfp_bpe_work work = { 0 };
	enum xfp_status status = XFP_OK;

	for (size_t i = 0; !status && i < pieces->count; i++) {
		const struct xfp_text_piece *piece = &pieces->piece[i];
		const char *text = pieces->text.bytes + piece->at;

		if (xfp_tokenizer_stopped(&t->watch, i))
			status = xfp_fail(err, XFP_FAILED, "interrupted");
		else if (piece->id >= 0)
			status = xfp_ids_add(ids, (uint32_t)piece->id) ? XFP_OK : xfp_no_memory(err);
		else if (t->bpe)
			status = xfp_bpe_encode(t->bpe, text, piece->size, &work, ids, err);
		else
			status = xfp_wordpiece_encode(t->wordpiece, text, piece->size, ids, err);
	}
	xfp_bpe_work_free(&work);
	return status;
}

static enum xfp_status encode_part(const struct xfp_tokenizer *t, const struct xfp_growable *text,
				   struct xfp_pattern_budget *budget, struct xfp_token_ids *ids, struct xfp_error *err)
{
	struct xfp_pieces pieces = { 0 };
	enum xfp_status status = xfp_added_split(t->added, t->normalizer, budget, text, &pieces, err);

	if (!status)
		status = xfp_split(t->splitter, &t->watch, budget, &pieces, err);
	if (!status)
		status = encode_pieces(t, &pieces, ids, err);
	xfp_pieces_free(&pieces);
	return status;
}

enum xfp_status xfp_tokenizer_encode(const struct xfp_tokenizer *t, const char *text, size_t size, bool whole,
				     struct xfp_token_ids *ids, struct xfp_error *err)
{
	struct xfp_pattern_budget budget = XFP_PATTERN_BUDGET;
	struct xfp_growable sound = { 0 };
	enum xfp_status status = XFP_OK;
	size_t before = ids->count;
	uint32_t done = 0;

	if (whole)
		status = add_ids(ids, &t->around.before, err);
	if (!status && !xfp_utf8_replace(text, size, &sound))
		status = xfp_no_memory(err);
	for (size_t at = 0; !status && at < sound.size;) {
		struct xfp_growable part = { .bytes = sound.bytes + at, .size = sound.size - at };

		if (t->in_parts)
			part.size = xfp_tiktoken_part(part.bytes, part.size, &done);
		status = encode_part(t, &part, &budget, ids, err);
		at += part.size;
	}
	free(sound.bytes);
	if (!status && whole)
		status = add_ids(ids, &t->around.after, err);
	if (status)
		ids->count = before;
	return status;
}

struct xfp_decoding {
	const struct xfp_tokenizer *tokenizer;
	struct xfp_decoder_run *run;
	struct xfp_growable text;
	bool plain;
};

enum xfp_status xfp_decoding_begin(const struct xfp_tokenizer *t, bool plain, struct xfp_decoding **decoding,
				   struct xfp_error *err)
{
	struct xfp_decoding *d = calloc(1, sizeof *d);

	if (!d || !(d->run = xfp_decoder_run_begin(t->decoder))) {
		free(d);
		return xfp_no_memory(err);
	}
	d->tokenizer = t;
	d->plain = plain;
	*decoding = d;
	return XFP_OK;
}

void xfp_decoding_free(struct xfp_decoding *d)
{
	if (!d)
		return;
	xfp_decoder_run_free(d->run);
	free(d->text.bytes);
	free(d);
}

/* Add one token, and append the text that became certain. */
static bool add_token(struct xfp_decoding *d, uint32_t id)
{
	bool special = false;
	size_t size = 0;
	const char *token = xfp_added_text(d->tokenizer->added, id, &size, &special);

	if (!token)
		token = xfp_vocabulary_text(d->tokenizer->vocabulary, id, &size);
	return !token || (special && d->plain) || xfp_decoder_run_add(d->run, token, size, &d->text);
}

enum xfp_status xfp_decoding_add(struct xfp_decoding *d, uint32_t id, const char **text, size_t *size,
				 struct xfp_error *err)
{
	d->text.size = 0;
	if (!add_token(d, id))
		return xfp_no_memory(err);
	*text = d->text.bytes ? d->text.bytes : "";
	*size = d->text.size;
	return XFP_OK;
}

enum xfp_status xfp_decoding_end(struct xfp_decoding *d, const char **text, size_t *size, struct xfp_error *err)
{
	d->text.size = 0;
	if (!xfp_decoder_run_end(d->run, &d->text))
		return xfp_no_memory(err);
	*text = d->text.bytes ? d->text.bytes : "";
	*size = d->text.size;
	return XFP_OK;
}

enum xfp_status xfp_tokenizer_decode(const struct xfp_tokenizer *t, const uint32_t *ids, size_t count, bool plain,
				     char **text, size_t *size, struct xfp_error *err)
{
	struct xfp_decoding *d = NULL;
	enum xfp_status status = xfp_decoding_begin(t, plain, &d, err);
	bool made = true;

	if (status)
		return status;
	for (size_t i = 0; made && i < count; i++)
		made = add_token(d, ids[i]);
	if (made && xfp_decoder_run_end(d->run, &d->text) && xfp_growable_add(&d->text, "", 1)) {
		*text = d->text.bytes;
		*size = d->text.size - 1;
		d->text.bytes = NULL;
	} else {
		status = xfp_no_memory(err);
	}
	xfp_decoding_free(d);
	return status;
}
