/* SPDX-License-Identifier: Apache-2.0 */
/*
 * groups.h - memory for rows, libraries and samples of the library modes: the part of footprint.c's model that depends
 * on the kernels' own structures.
 */
#ifndef XFP_FOOTPRINT_GROUPS_H
#define XFP_FOOTPRINT_GROUPS_H

#include "schemas/fit.h"
#include "schemas/ledger.h"

/* Memory of libfit with these candidates: per thread; shared, while libraries are trained; shared, while rows are
 * measured. */
uint64_t xfp_groups_thread(const struct xfp_candidate *list, uint32_t count, uint64_t cols);
uint64_t xfp_groups_libraries(const struct xfp_candidate *list, uint32_t count);
uint64_t xfp_groups_training(const struct xfp_candidate *list, uint32_t count, const struct xfp_ledger_unit *unit);
/* Bytes of groups per row that a fit stores, at most; `narrowed`: of some of these candidates, by a survey. */
uint64_t xfp_groups_bytes(const struct xfp_candidate *list, uint32_t count, uint64_t cols, bool narrowed);
/* Memory of a survey in addition: per thread, the groups whose marks change. */
uint64_t xfp_groups_again(const struct xfp_candidate *list, uint32_t count, uint64_t cols, unsigned threads);
/* Memory of pack: the groups of a matrix and the packed indices of `block` rows. */
uint64_t xfp_groups_packed(const struct xfp_candidate *candidate, const struct xfp_ledger_unit *unit, uint64_t block);

#endif
