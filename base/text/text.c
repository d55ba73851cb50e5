/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define FIRST_CAPACITY 256

/* Grow the capacity to hold `more` bytes and a NUL. */
static bool grow(struct xfp_text *text, size_t more)
{
	size_t capacity = text->capacity ? text->capacity : FIRST_CAPACITY;
	char *grown;

	if (more > SIZE_MAX / 4 || text->size > SIZE_MAX / 4)
		return false;
	while (capacity <= text->size + more)
		capacity *= 2;
	if (capacity == text->capacity)
		return true;
	if (!(grown = realloc(text->bytes, capacity)))
		return false;
	text->bytes = grown;
	text->capacity = capacity;
	return true;
}

/* After a failure, nothing more is stored: a text with a gap would look complete. */
static ssize_t append_bytes(void *context, const char *bytes, size_t size)
{
	struct xfp_text *text = context;

	if (text->failed || !grow(text, size)) {
		text->failed = true;
		return 0;
	}
	memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
	return (ssize_t)size;
}

FILE *xfp_text_begin(struct xfp_text *text)
{
	*text = (struct xfp_text){ 0 };
	text->stream = fopencookie(text, "w", (cookie_io_functions_t){ .write = append_bytes });
	return text->stream;
}

bool xfp_text_end(struct xfp_text *text)
{
	bool whole = text->stream && !fclose(text->stream) && !text->failed && grow(text, 0);

	text->stream = NULL;
	if (whole) {
		text->bytes[text->size] = '\0';
		return true;
	}
	free(text->bytes);
	text->bytes = NULL;
	text->size = 0;
	return false;
}
