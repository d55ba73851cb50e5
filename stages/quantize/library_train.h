/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library_train.h - train the libraries of a unit on a sample of its groups.
 *
 * The sample consists of evenly spaced rows of the unit, row number i * R / n of its R = matrices * rows, at least 256
 * or all, and of the number of evenly spaced groups of each that the mode needs. The first group of a row shifts from
 * row to row, so that all columns are sampled.
 */
#ifndef XFP_LIBRARY_TRAIN_H
#define XFP_LIBRARY_TRAIN_H

#include "stages/feedback/training.h"
#include "stages/quantize/fit_rows.h"
#include "stages/quantize/group_row.h"

/* The approximate work of training for each candidate, in the unit of struct xfp_watcher (schemas/ledger.h). */
uint64_t xfp_library_work(const struct xfp_parameters *parameters, uint64_t rows, uint64_t cols);

/* Train the libraries of candidates that share a grouping, into code[i], which xfp_library_code_init has allocated.
 * `published`: rounds of the published recipe of v2a, or 0. */
enum xfp_status xfp_library_train(const struct xfp_training *training, unsigned published,
				  const struct xfp_grouping *grouping, const struct xfp_candidate *const *candidates,
				  uint32_t count, struct xfp_library_code *const *code, struct xfp_error *err);

#endif
