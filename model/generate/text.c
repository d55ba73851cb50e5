/* SPDX-License-Identifier: Apache-2.0 */
#include "model/generate/text.h"

#include <stdlib.h>
#include <string.h>

enum xfp_status xfp_generated_text_begin(const struct xfp_generation *g, struct xfp_generated_text *w,
					 struct xfp_error *err)
{
	return xfp_decoding_begin(g->tokenizer, true, &w->decoding, err);
}

static enum xfp_status append(struct xfp_generated_text *w, const char *text, size_t size, struct xfp_error *err)
{
	if (w->size + size + 1 > w->capacity) {
		size_t capacity = 2 * (w->size + size) + 64;
		char *grown = realloc(w->text, capacity);

		if (!grown)
			return xfp_no_memory(err);
		w->text = grown;
		w->capacity = capacity;
	}
	if (size)
		memcpy(w->text + w->size, text, size);
	w->size += size;
	w->text[w->size] = 0;
	return XFP_OK;
}

/* The start of the first stop text from `from` on; w->size if none occurs. */
static size_t find_stop(const struct xfp_generation *g, const struct xfp_generated_text *w, size_t from)
{
	size_t first = w->size;

	for (size_t i = 0; i < g->request.stops.count; i++) {
		const char *stop = g->request.stops.text[i];
		const char *found = memmem(w->text + from, w->size - from, stop, strlen(stop));

		if (found && (size_t)(found - w->text) < first)
			first = (size_t)(found - w->text);
	}
	return first;
}

/* The start of a stop text that may still be incomplete; w->size if none is. */
static size_t find_begun(const struct xfp_generation *g, const struct xfp_generated_text *w, size_t from)
{
	for (size_t at = from; at < w->size; at++) {
		for (size_t i = 0; i < g->request.stops.count; i++) {
			if (!strncmp(w->text + at, g->request.stops.text[i], w->size - at))
				return at;
		}
	}
	return w->size;
}

/* Append text, and look for stop texts from w->shown on. */
static enum xfp_status more(const struct xfp_generation *g, struct xfp_generated_text *w, const char *text, size_t size,
			    struct xfp_error *err)
{
	enum xfp_status status = append(w, text, size, err);
	size_t stop;

	if (status)
		return status;
	stop = find_stop(g, w, w->shown);
	if (stop < w->size) {
		w->end = XFP_END_TEXT;
		w->size = w->shown = stop;
		w->text[stop] = 0;
	} else {
		w->shown = find_begun(g, w, w->shown);
	}
	return XFP_OK;
}

static bool is_end(const struct xfp_generation *g, uint32_t id)
{
	for (size_t i = 0; i < g->ends.count; i++) {
		if (g->ends.id[i] == id)
			return true;
	}
	return false;
}

enum xfp_status xfp_generated_text_add(const struct xfp_generation *g, struct xfp_generated_text *w, uint32_t id,
				       struct xfp_error *err)
{
	const char *text;
	size_t size;
	enum xfp_status status;

	if (w->ids.count == w->ids.capacity) {
		size_t capacity = 2 * w->ids.capacity + 64;
		uint32_t *grown = realloc(w->ids.id, capacity * sizeof *grown);

		if (!grown)
			return xfp_no_memory(err);
		w->ids.id = grown;
		w->ids.capacity = capacity;
	}
	w->ids.id[w->ids.count++] = id;
	if (is_end(g, id)) {
		w->end = XFP_END_TOKEN;
		return XFP_OK;
	}
	if (!(status = xfp_decoding_add(w->decoding, id, &text, &size, err)))
		status = more(g, w, text, size, err);
	return status;
}

enum xfp_status xfp_generated_text_end(const struct xfp_generation *g, struct xfp_generated_text *w,
				       struct xfp_error *err)
{
	const char *text;
	size_t size;
	enum xfp_status status = XFP_OK;

	if (w->end != XFP_END_TEXT && w->decoding && !(status = xfp_decoding_end(w->decoding, &text, &size, err)))
		status = more(g, w, text, size, err);
	w->shown = w->size;
	return status;
}

void xfp_generated_text_free(struct xfp_generated_text *w)
{
	free(w->prompt);
	free(w->ids.id);
	free(w->text);
	xfp_decoding_free(w->decoding);
}
