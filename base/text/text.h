/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - a text that grows as a stream is written to.
 *
 * It replaces open_memstream, which may leave out a part, or everything, when memory runs out, without an error from
 * any call, closing included: a key, a list of units or a rule must not be made of what is left.
 */
#ifndef XFP_TEXT_H
#define XFP_TEXT_H

#include <stdbool.h>
#include <stdio.h>

struct xfp_text {
	FILE *stream; /* to write to; NULL: out of memory */
	char *bytes;  /* once it has ended: everything, and a NUL behind it */
	size_t size;  /* without that NUL */
	size_t capacity;
	bool failed;
};

/* Returns the stream. `text` stays where it is until the end. */
FILE *xfp_text_begin(struct xfp_text *text);
/* Close the stream, which may be NULL. False: memory ran out at some moment, and `bytes` is NULL. Otherwise the caller
 * frees `bytes`. */
bool xfp_text_end(struct xfp_text *text);

#endif
