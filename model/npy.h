/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_NPY_H
#define XFP_NPY_H

#include "base/system/file.h"
#include "base/xfp_error.h"
#include "model/tokens.h"

/* Read a file that numpy.save wrote, or standard input if the path is "-": integers of 1 to 8 bytes, little-endian,
 * [sequences, length], or [length] for one sequence. XFP_BAD_INPUT if it is anything else or truncated, has fewer than
 * two tokens a sequence, or a negative number. */
enum xfp_status xfp_tokens_read(const char *path, struct xfp_tokens *tokens, struct xfp_error *err);

/* Write a matrix of f32 as numpy.save does. The caller publishes the file. */
enum xfp_status xfp_npy_write(const struct xfp_pending *file, const float *numbers, size_t rows, size_t cols,
			      struct xfp_error *err);

#endif
