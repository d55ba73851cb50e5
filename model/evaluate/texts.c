/* SPDX-License-Identifier: Apache-2.0 */
#include "model/evaluate/texts.h"

#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/system/file.h"
#include "model/evaluate/text.h"
#include "model/npy.h"
#include "model/text.h"

struct line_reader {
	struct xfp_evaluation *e;
	struct xfp_tokenizer *tokenizer;
	const char *name;
	struct xfp_token_ids prefix, suffix, ids;
	size_t longest; /* allowed tokens of a text */
	size_t truncated, first_truncated, empty, first_empty;
};

static bool add_ids(struct xfp_token_ids *to, const struct xfp_token_ids *ids)
{
	for (size_t i = 0; i < ids->count; i++)
		if (!xfp_ids_add(to, ids->id[i]))
			return false;
	return true;
}

/* Append the tokens of a line. */
static enum xfp_status encode_line(struct line_reader *r, const char *line, size_t size, struct xfp_error *err)
{
	struct xfp_texts *texts = &r->e->texts;
	size_t begin = r->ids.count, end, number = texts->count + 1;
	enum xfp_status status;

	if (!add_ids(&r->ids, &r->prefix))
		return xfp_no_memory_for(err, r->name);
	if ((status = xfp_tokenizer_encode(r->tokenizer, line, size, false, &r->ids, err)))
		return status;
	end = begin + r->longest - r->suffix.count;
	if (r->ids.count > end) {
		r->ids.count = end;
		r->first_truncated = r->truncated++ ? r->first_truncated : number;
	}
	if (r->ids.count == begin + r->prefix.count)
		r->first_empty = r->empty++ ? r->first_empty : number;
	if (!add_ids(&r->ids, &r->suffix))
		return xfp_no_memory_for(err, r->name);
	if (r->ids.count == begin)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: line %zu has no tokens; remove it", r->name, number);
	texts->first[++texts->count] = r->ids.count;
	return XFP_OK;
}

static size_t count_lines(const char *text, size_t size)
{
	size_t count = size && text[size - 1] != '\n';

	for (size_t i = 0; i < size; i++)
		count += text[i] == '\n';
	return count;
}

static enum xfp_status encode_lines(struct line_reader *r, const char *text, size_t size, struct xfp_error *err)
{
	size_t lines = count_lines(text, size);
	enum xfp_status status = XFP_OK;

	if (!lines)
		return xfp_fail(err, XFP_BAD_INPUT, "%s: is empty; give texts, one a line", r->name);
	if (!(r->e->texts.first = calloc(lines + 1, sizeof *r->e->texts.first)))
		return xfp_no_memory_for(err, r->name);
	for (const char *line = text, *end = text + size; !status && line < end; line++) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t length = (size_t)((newline ? newline : end) - line);

		status = encode_line(r, line, length - (length && line[length - 1] == '\r'), err);
		line += length;
	}
	return status;
}

static void warn(const struct line_reader *r, const char *text, size_t size)
{
	struct xfp_printable name = xfp_printable(r->name);
	char defects[XFP_TEXT_DEFECTS];

	if (xfp_text_defects_text(text, size, defects))
		xfp_evaluation_warn(r->e, "%s: %s", name.text, defects);
	if (r->truncated)
		xfp_evaluation_warn(r->e, "%s: %zu of %zu texts are truncated to %zu tokens; the first is line %zu",
				    name.text, r->truncated, r->e->texts.count, r->longest, r->first_truncated);
	if (r->empty)
		xfp_evaluation_warn(r->e, "%s: %zu of %zu texts are empty; the first is line %zu", name.text, r->empty,
				    r->e->texts.count, r->first_empty);
}

/* --length, max_seq_length or the context. */
static enum xfp_status find_longest(struct line_reader *r, struct xfp_error *err)
{
	const struct xfp_evaluation *e = r->e;
	uint32_t context = e->evaluated.model.description->context, longest = e->embeddings.pooling.longest;

	r->longest = e->request.length ? e->request.length : longest && longest < context ? longest : context;
	if (r->longest > context)
		return xfp_fail(err, XFP_BAD_INPUT, "--length %zu: is longer than the model's context of %u",
				r->longest, (unsigned)context);
	if (r->longest > r->prefix.count + r->suffix.count)
		return XFP_OK;
	return xfp_fail(err, XFP_BAD_INPUT, "%s: the limit of %zu tokens leaves no room between those around a text",
			xfp_printable(e->evaluated.model.name).text, r->longest);
}

static enum xfp_status read_lines(struct xfp_evaluation *e, struct xfp_error *err)
{
	struct line_reader r = { .e = e, .name = xfp_input_name(e->request.text_path) };
	char *text = NULL;
	enum xfp_status status;
	size_t size;

	(void)((status = xfp_evaluation_tokenizer(&e->evaluated.model,
						  xfp_evaluation_has_source(e) ? &e->source.model : NULL, &r.tokenizer,
						  err)) ||
	       (status = xfp_text_around(r.tokenizer, &r.prefix, &r.suffix, err)) || (status = find_longest(&r, err)) ||
	       (status = xfp_slurp_input(e->request.text_path, XFP_LARGEST_TEXT, &text, &size, err)) ||
	       (status = encode_lines(&r, text, size, err)));
	if (!status)
		warn(&r, text, size);
	e->tokens.ids = r.ids.id;
	free(text);
	free(r.prefix.id);
	free(r.suffix.id);
	xfp_tokenizer_free(r.tokenizer);
	return status;
}

static enum xfp_status read_sequences(struct xfp_evaluation *e, struct xfp_error *err)
{
	enum xfp_status status = xfp_tokens_read(e->request.tokens_path, &e->tokens, err);

	if (status)
		return status;
	if (!(e->texts.first = calloc(e->tokens.sequences + 1, sizeof *e->texts.first)))
		return xfp_no_memory(err);
	e->texts.count = e->tokens.sequences;
	for (size_t i = 1; i <= e->texts.count; i++)
		e->texts.first[i] = i * e->tokens.length;
	return XFP_OK;
}

/* Those of the first model that names them. */
static enum xfp_status read_pooling(struct xfp_evaluation *e, struct xfp_error *err)
{
	struct xfp_pooling *pooling = &e->embeddings.pooling;
	enum xfp_status status = xfp_pooling_read(&e->evaluated.model, pooling, err);

	if (!status && !pooling->named && xfp_evaluation_has_source(e))
		status = xfp_pooling_read(&e->source.model, pooling, err);
	if (!status && !pooling->named)
		xfp_evaluation_warn(e, "%s: has no modules.json; embeddings are the mean over tokens",
				    xfp_printable(e->evaluated.model.name).text);
	return status;
}

enum xfp_status xfp_texts_read(struct xfp_evaluation *e, struct xfp_error *err)
{
	enum xfp_status status = read_pooling(e, err);

	if (!status)
		status = e->request.tokens_path ? read_sequences(e, err) : read_lines(e, err);
	e->tokens.sequences = e->texts.count;
	for (size_t i = 0; !status && i < e->texts.count; i++) {
		size_t count = e->texts.first[i + 1] - e->texts.first[i];

		e->tokens.length = count > e->tokens.length ? count : e->tokens.length;
	}
	return status;
}
