/* SPDX-License-Identifier: Apache-2.0 */
/*
 * candidates.h - list the candidates that a unit's fits measure, and predict their sizes.
 */
#ifndef XFP_CANDIDATES_H
#define XFP_CANDIDATES_H

#include "schemas/fit.h"
#include "schemas/layout/bundle_layout.h"
#include "schemas/outliers.h"
#include "schemas/parameters.h"

/* List the candidates that a fit measures, in the order of its artifact: mode, k, group and library of each. `measured`
 * are the parameters of the unit's fits (xfp_policy_parameters). Returns their number. */
uint32_t xfp_candidates_of(enum xfp_fit_kind kind, const struct xfp_parameters *measured,
			   struct xfp_candidate list[XFP_MAX_CANDIDATES]);
/* List the candidates for any set of bits: of the modes with a library, or of v2. fp8 is the last one; it is listed
 * with the libraries if there are any. */
uint32_t xfp_candidates_with(bool library, const struct xfp_parameters *measured, uint32_t bits,
			     struct xfp_candidate list[XFP_MAX_CANDIDATES]);

/* The number of candidates that need fitting: all but fp8. */
uint32_t xfp_candidates_fitted(const struct xfp_candidate *list, uint32_t count);

/* The mode whose fit measures a candidate of this mode. fp8 is measured with any fit: alone with the simplest one, or
 * with v2c in a calibrated conversion, where outputs are measured, too. */
enum xfp_mode xfp_mode_to_fit(uint32_t mode, const struct xfp_parameters *parameters);

/* The unit as an index describes it, for xfp_unit_part_bytes and xfp_matrix_part_bytes. */
struct xfp_idx_unit xfp_candidate_unit(const struct xfp_candidate *candidate, uint32_t matrices, uint64_t rows,
				       uint64_t cols);
/* log2 of a power of two; 0 for 0. */
uint8_t xfp_candidate_log2(unsigned power);

/* The size of each part of a unit stored as the candidate, all matrices together. */
void xfp_candidate_parts(const struct xfp_candidate *candidate, const struct xfp_outliers *known,
			 uint64_t bytes[XFP_PARTS]);
/* The sum of the sizes of all parts. */
uint64_t xfp_candidate_bytes(const struct xfp_candidate *candidate, const struct xfp_outliers *known);

#endif
