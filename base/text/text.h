/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - a growable text that is written as a stream.
 *
 * This replaces open_memstream, which may drop some or all output if memory runs out, without an error from any call,
 * fclose included. A key, a list of units or a rule must never be built from an incomplete text.
 */
#ifndef XFP_TEXT_H
#define XFP_TEXT_H

#include <stdbool.h>
#include <stdio.h>

struct xfp_text {
	FILE *stream; /* stream to write to; NULL: out of memory */
	char *bytes;  /* after xfp_text_end: the whole text and a NUL */
	size_t size;  /* without the NUL */
	size_t capacity;
	bool failed;
};

/* Returns the stream. `text` must not move until xfp_text_end. */
FILE *xfp_text_begin(struct xfp_text *text);
/* Close the stream, which may be NULL. False: memory ran out, and `bytes` is NULL. Otherwise the caller frees
 * `bytes`. */
bool xfp_text_end(struct xfp_text *text);

#endif
