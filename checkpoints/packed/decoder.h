/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder.h - decode stored rows of a packed tensor.
 */
#ifndef XFP_DECODER_H
#define XFP_DECODER_H

#include "base/xfp_error.h"
#include "schemas/recipe/recipe.h"

struct xfp_packed_source {
	const struct xfp_recipe *recipe;
	const struct xfp_source_file *files; /* by number; only those of components are opened */
	bool identified;                     /* the files must have the identities in `files` */
	enum xfp_dtype dtype;                /* dtype of the decoded elements */
	const char *tensor;                  /* its name, for messages */
};

struct xfp_decoder; /* one thread at a time */

/* Open a decoder; `source` is borrowed until it is closed. XFP_FAILED if a file does not have the expected identity;
 * XFP_BAD_INPUT if a file is too short or the recipe is invalid. */
enum xfp_status xfp_decoder_open(const struct xfp_packed_source *source, struct xfp_decoder **out,
				 struct xfp_error *err);
void xfp_decoder_close(struct xfp_decoder *decoder); /* NULL is fine */

/* Decode columns [col, col + cols) of stored rows first, first + step, first + 2 step ... to `out`: rows * cols
 * elements. All of them must exist. */
enum xfp_status xfp_decoder_read(struct xfp_decoder *decoder, uint64_t first, uint64_t step, uint64_t rows,
				 uint64_t col, uint64_t cols, void *out, struct xfp_error *err);

/* Return the minimum number of rows to request at a time if each call may use another decoder: 1, or a large part of
 * the rows that are always fetched together. */
uint64_t xfp_decoder_rows(const struct xfp_recipe *recipe);

/* Return the maximum memory of a decoder. */
uint64_t xfp_decoder_bytes(const struct xfp_recipe *recipe);

#endif
