/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimate.h - estimates how a unit will be stored, before anything is measured.
 *
 * Approximately normal rows reach, after balancing, a typical cosine with k bits in each mode (table in estimate.c,
 * measured with these fits). The expected estimate is the candidate that autoselect would choose if all rows were such.
 * The least and most estimates assume half and twice the value of 1 - cosine, with fewer or more outliers. Real
 * checkpoints usually lie in this range; it is not a guarantee.
 *
 * Estimates never affect output bytes, so floating point is allowed.
 */
#ifndef XFP_ESTIMATE_H
#define XFP_ESTIMATE_H

#include "kernels/encode/lloyd.h"
#include "stages/work/unit_state.h"

enum xfp_bound { XFP_MINIMUM, XFP_EXPECTED, XFP_MAXIMUM, XFP_BOUNDS };

struct xfp_estimate {
	enum xfp_mode mode;
	unsigned k;     /* bits per index; 0 unless `mode` has codebooks */
	uint16_t group; /* columns per group, and entries of the library; 0 unless `mode` has them */
	uint16_t library;
	bool extended;     /* k = 5, 6 and fp8 are measured too */
	bool met;          /* the floor is met; true without a floor */
	double cos_median; /* 1 at source precision; 0 if unknown (fp8 by request) */
	uint64_t outliers; /* total of the unit, after the cap */
	uint64_t bytes;    /* sum of all parts */
};

struct xfp_estimate xfp_estimate_unit(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters,
				      enum xfp_bound bound);
/* Estimate a unit of a conversion, using measurements if they exist. */
struct xfp_estimate xfp_estimate(const struct xfp_estimate_input *all, uint32_t number, enum xfp_bound bound);

/* Candidates that a survey of the unit would likely find, for goals on units without a survey: without outliers, with
 * the expected threshold. `list` has room for XFP_MAX_SURVEYED. Returns the count. */
uint32_t xfp_estimate_survey(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters,
			     struct xfp_candidate *list);

/* Whether libraries of a unit are fitted with error feedback. */
static inline bool xfp_estimate_feedback(const struct xfp_estimate_input *all, uint32_t unit)
{
	return all->layer_of && all->layer_of[unit] != XFP_NO_LAYER;
}

/* Estimate the threshold of a unit that selects its own; XFP_MAXIMUM gives the lowest. */
uint32_t xfp_estimate_sigma(uint32_t sigma_milli, enum xfp_bound bound);

/* Share of the weights farther than `sigma_milli` / 1000 standard deviations from the mean, before the cap. */
double xfp_outlier_share(uint32_t sigma_milli, enum xfp_bound bound);

/* Compute the bytes of each part of a unit stored as `estimate`: bytes[XFP_PARTS] (schemas/layout/bundle_layout.h). */
void xfp_estimate_parts(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters,
			const struct xfp_estimate *estimate, uint64_t *bytes);

#endif
