/* SPDX-License-Identifier: Apache-2.0 */
/*
 * streams.h - the activations of all tokens between two layers, in memory or in a file that has no name.
 */
#ifndef XFP_STREAMS_H
#define XFP_STREAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/xfp_error.h"

struct xfp_stream;

/* `tokens` times `width` numbers. In memory, or in the folder TMPDIR names, or in /tmp. */
enum xfp_status xfp_stream_open(size_t tokens, size_t width, bool in_memory, struct xfp_stream **out,
				struct xfp_error *err);
void xfp_stream_close(struct xfp_stream *stream); /* NULL is fine */

/* Those of tokens [first, first + count). */
enum xfp_status xfp_stream_read(const struct xfp_stream *stream, size_t first, size_t count, float *x,
				struct xfp_error *err);
enum xfp_status xfp_stream_write(struct xfp_stream *stream, size_t first, size_t count, const float *x,
				 struct xfp_error *err);

#endif
