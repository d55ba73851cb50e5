/* SPDX-License-Identifier: Apache-2.0 */
/*
 * streams.h - activations of all tokens between two layers, in memory or in an unnamed temporary file.
 */
#ifndef XFP_STREAMS_H
#define XFP_STREAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/xfp_error.h"

struct xfp_stream;

/* Open a stream of tokens * width numbers; a file is in the folder that TMPDIR names, or in /tmp. */
enum xfp_status xfp_stream_open(size_t tokens, size_t width, bool in_memory, struct xfp_stream **out,
				struct xfp_error *err);
void xfp_stream_close(struct xfp_stream *stream); /* no-op if NULL */

/* Activations of tokens [first, first + count). */
enum xfp_status xfp_stream_read(const struct xfp_stream *stream, size_t first, size_t count, float *x,
				struct xfp_error *err);
enum xfp_status xfp_stream_write(struct xfp_stream *stream, size_t first, size_t count, const float *x,
				 struct xfp_error *err);

#endif
