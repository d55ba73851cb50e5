/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder.h - stored rows of a packed tensor, decoded.
 */
#ifndef XFP_DECODER_H
#define XFP_DECODER_H

#include "base/xfp_error.h"
#include "schemas/recipe/recipe.h"

struct xfp_packed_source {
	const struct xfp_recipe *recipe;
	const struct xfp_source_file *files; /* by number; those of its components are opened */
	bool identified;                     /* they must be the very files that `files` says */
	enum xfp_dtype dtype;                /* of the elements that come out */
	const char *tensor;                  /* its name, for messages */
};

struct xfp_decoder; /* one thread at a time */

/* `source` is borrowed until the decoder is closed. A file that is not the one it should be is XFP_FAILED; one that is
 * too short, or a recipe that cannot be, XFP_BAD_INPUT. */
enum xfp_status xfp_decoder_open(const struct xfp_packed_source *source, struct xfp_decoder **out,
				 struct xfp_error *err);
void xfp_decoder_close(struct xfp_decoder *decoder); /* NULL is fine */

/* Columns [col, col + cols) of stored rows first, first + step, first + 2 step ...: rows * cols elements into `out`.
 * All must be there. */
enum xfp_status xfp_decoder_read(struct xfp_decoder *decoder, uint64_t first, uint64_t step, uint64_t rows,
				 uint64_t col, uint64_t cols, void *out, struct xfp_error *err);

/* Rows to ask for at a time, at least, where each call may be another decoder's: 1, or a good part of those that are
 * fetched whichever of them is asked for. */
uint64_t xfp_decoder_rows(const struct xfp_recipe *recipe);

/* The most memory that a decoder holds. */
uint64_t xfp_decoder_bytes(const struct xfp_recipe *recipe);

#endif
