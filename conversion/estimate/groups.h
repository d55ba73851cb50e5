/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups.h - what the library modes' rows, libraries and samples take in memory: the part of footprint.c's
 * model that follows from the kernels' own structures.
 */
#ifndef XFP_FOOTPRINT_GROUPS_H
#define XFP_FOOTPRINT_GROUPS_H

#include "schemas/fit.h"
#include "schemas/ledger.h"

/* libfit with these candidates: for each thread; for all of them, while libraries are trained or rows are measured. */
uint64_t xfp_groups_thread(const struct xfp_candidate *list, uint32_t count, uint64_t cols);
uint64_t xfp_groups_libraries(const struct xfp_candidate *list, uint32_t count);
uint64_t xfp_groups_training(const struct xfp_candidate *list, uint32_t count, const struct xfp_ledger_unit *unit);
/* pack: the groups of a matrix, and its packed indices of so many rows. */
uint64_t xfp_groups_packed(const struct xfp_candidate *candidate, const struct xfp_ledger_unit *unit, uint64_t block);

#endif
