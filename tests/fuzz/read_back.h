/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_back.h - read tensors of a checkpoint in every way, with equal results.
 */
#ifndef XFP_FUZZ_READ_BACK_H
#define XFP_FUZZ_READ_BACK_H

#include "checkpoints/checkpoint.h"

#define FUZZ_VIEWS 4

/* Aborts if `holds` is false. */
void fuzz_must(bool holds);

/* Read a whole tensor from front to back, in pieces of this size; allocated. */
unsigned char *fuzz_read_elements(const struct xfp_matrix_source *source, uint64_t piece);

/* Compare the last two dimensions, read by rows, by columns and every other element, a few rows at a time, with
 * `all`. */
void fuzz_read_matrices(struct xfp_matrix_source source, const struct xfp_source_tensor *tensor,
			const unsigned char *all, const uint8_t blocks[FUZZ_VIEWS]);

#endif
