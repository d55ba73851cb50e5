/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growable.h - growable buffers and lists.
 */
#ifndef XFP_TOKENIZER_GROWABLE_H
#define XFP_TOKENIZER_GROWABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Zeroed, it is empty; its owner frees `bytes`. */
struct xfp_growable {
	char *bytes;
	size_t size, capacity;
};

/* Make room for `more` items after `count` of them. False if out of memory; then nothing has changed. */
bool xfp_grow(void *items, size_t item_size, size_t count, size_t more, size_t *capacity);

static inline bool xfp_growable_add(struct xfp_growable *text, const char *bytes, size_t size)
{
	if (text->capacity - text->size < size && !xfp_grow(&text->bytes, 1, text->size, size, &text->capacity))
		return false;
	if (size)
		memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
	return true;
}

/* A piece of a text that is being encoded. */
struct xfp_text_piece {
	size_t at, size;
	int64_t id; /* the id, if it is a token already; -1: text */
	bool first; /* the text starts with it */
};

/* A text split into pieces. Zeroed, it is empty. */
struct xfp_pieces {
	struct xfp_growable text;
	struct xfp_text_piece *piece;
	size_t count, capacity;
};

void xfp_pieces_free(struct xfp_pieces *pieces);
/* Add a piece of `text`; an empty piece is ignored. False if out of memory. */
bool xfp_pieces_add(struct xfp_pieces *pieces, struct xfp_text_piece piece);

#endif
