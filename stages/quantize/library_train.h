/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library_train.h - the libraries of a unit, from a sample of its groups.
 *
 * The sample: evenly spaced rows of the unit, row number i * R / n of its R = matrices * rows, at least 256 or all, and
 * as many evenly spaced groups of each as it takes to have the number that the mode wants. The first group of a row
 * moves on from row to row, so that all columns are seen.
 */
#ifndef XFP_LIBRARY_TRAIN_H
#define XFP_LIBRARY_TRAIN_H

#include "stages/quantize/fit_rows.h"
#include "stages/quantize/group_row.h"

#define XFP_SAMPLE_ROWS 256     /* at the least */
#define XFP_SAMPLE_COMPACT 8192 /* groups of v2c at the most, but for what rows round up */

/* What that comes to for each candidate, about, as those who watch are told of it (schemas/ledger.h). */
uint64_t xfp_library_work(const struct xfp_parameters *parameters, uint64_t rows, uint64_t cols);

/* Libraries of candidates that share a grouping, as they are stored: into code[i], which xfp_library_code_init has
 * allocated. `published`: rounds of the published recipe of v2a, or 0. */
enum xfp_status xfp_library_train(const struct xfp_training *training, unsigned published,
				  const struct xfp_grouping *grouping, const struct xfp_candidate *const *candidates,
				  uint32_t count, struct xfp_library_code *const *code, struct xfp_error *err);

#endif
