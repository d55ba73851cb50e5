/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_back.h - tensors of a checkpoint read in every way, which all give the same.
 */
#ifndef XFP_FUZZ_READ_BACK_H
#define XFP_FUZZ_READ_BACK_H

#include "checkpoints/checkpoint.h"

#define FUZZ_VIEWS 4

/* Aborts where it does not. */
void fuzz_must(bool holds);

/* All of a tensor from front to back, in pieces of so many bytes; allocated. */
unsigned char *fuzz_read_elements(const struct xfp_matrix_source *source, uint64_t piece);

/* The last two dimensions by rows, by columns, and every other element, a few rows at a time, compared with `all`. */
void fuzz_read_matrices(struct xfp_matrix_source source, const struct xfp_source_tensor *tensor,
			const unsigned char *all, const uint8_t blocks[FUZZ_VIEWS]);

#endif
