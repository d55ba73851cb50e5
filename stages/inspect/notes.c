/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/inspect/notes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/file.h"

static enum xfp_status append(struct xfp_notes *notes, struct xfp_note note, struct xfp_error *err)
{
	if (notes->count == notes->capacity) {
		uint32_t capacity = notes->capacity ? 2 * notes->capacity : 16;
		struct xfp_note *more = realloc(notes->list, capacity * sizeof *more);

		if (!more)
			goto fail;
		notes->list = more;
		notes->capacity = capacity;
	}
	if (!note.text)
		goto fail;
	note.order = notes->count;
	notes->list[notes->count++] = note;
	return XFP_OK;
fail:
	free(note.text);
	free(note.names);
	return xfp_no_memory(err);
}

enum xfp_status xfp_notes_add(struct xfp_notes *notes, bool warning, struct xfp_error *err, const char *format, ...)
{
	struct xfp_note note = { .warning = warning };
	va_list args;

	va_start(args, format);
	if (vasprintf(&note.text, format, args) < 0)
		note.text = NULL;
	va_end(args);
	return append(notes, note, err);
}

void xfp_star_numbers(char *name)
{
	char *out = name;

	for (const char *p = name; *p;) {
		size_t length = strcspn(p, ".");

		if (length && strspn(p, "0123456789") == length) {
			*out++ = '*';
		} else {
			memmove(out, p, length);
			out += length;
		}
		p += length;
		if (*p)
			*out++ = *p++;
	}
	*out = 0;
}

enum xfp_status xfp_notes_add_tensor(struct xfp_notes *notes, bool warning, const char *tensor, uint64_t weights,
				     const char *text, struct xfp_error *err)
{
	struct xfp_note note = { .warning = warning, .tensors = 1, .weights = weights };

	if (!(note.names = strdup(tensor)))
		return xfp_no_memory(err);
	xfp_star_numbers(note.names);
	note.text = strdup(text);
	return append(notes, note, err);
}

static int same(const struct xfp_note *a, const struct xfp_note *b)
{
	int order;

	if (!a->names || !b->names)
		return a->names ? 1 : b->names ? -1 : (a->order > b->order) - (a->order < b->order);
	if (a->warning != b->warning)
		return a->warning ? 1 : -1;
	order = strcmp(a->names, b->names);
	return order ? order : strcmp(a->text, b->text);
}

static int by_content(const void *a, const void *b)
{
	const struct xfp_note *x = a, *y = b;
	int order = same(x, y);

	return order ? order : (x->order > y->order) - (x->order < y->order);
}

static int by_order(const void *a, const void *b)
{
	const struct xfp_note *x = a, *y = b;

	return (x->order > y->order) - (x->order < y->order);
}

enum xfp_status xfp_notes_finish(struct xfp_notes *notes, struct xfp_error *err)
{
	uint32_t kept = 0;

	if (!notes->count)
		return XFP_OK;
	qsort(notes->list, notes->count, sizeof *notes->list, by_content);
	for (uint32_t i = 0; i < notes->count; i++) {
		struct xfp_note *note = &notes->list[i], *last = kept ? &notes->list[kept - 1] : NULL;

		if (last && note->names && !same(last, note)) {
			last->tensors += note->tensors;
			last->weights += note->weights;
			free(note->text);
			free(note->names);
		} else {
			notes->list[kept++] = *note;
		}
	}
	notes->count = kept;
	qsort(notes->list, notes->count, sizeof *notes->list, by_order);
	for (uint32_t i = 0; i < notes->count; i++) {
		struct xfp_note *note = &notes->list[i];
		char *text;

		if (!note->names)
			continue;
		text = xfp_formatted("%s (%" PRIu64 " tensor%s, %" PRIu64 " weights): %s", note->names, note->tensors,
				     note->tensors == 1 ? "" : "s", note->weights, note->text);
		if (!text)
			return xfp_no_memory(err);
		free(note->text);
		note->text = text;
	}
	return XFP_OK;
}

void xfp_notes_free(struct xfp_notes *notes)
{
	for (uint32_t i = 0; i < notes->count; i++) {
		free(notes->list[i].text);
		free(notes->list[i].names);
	}
	free(notes->list);
	*notes = (struct xfp_notes){ 0 };
}
