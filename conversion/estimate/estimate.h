/* SPDX-License-Identifier: Apache-2.0 */
/*
 * estimate.h - what a unit is likely to be stored as, told before anything is measured.
 *
 * Rows that are about normal once they are balanced reach a typical cosine with k bits in each mode (the table is
 * in estimate.c, measured with these fits). What is expected is the candidate that autoselect would take if all
 * rows were so. The least and the most are what it would take if 1 - cosine were half or twice as much, with
 * fewer or more outliers: the range in which checkpoints are found, not a promise.
 *
 * Nothing here decides bytes, so it may use floats as it likes.
 */
#ifndef XFP_ESTIMATE_H
#define XFP_ESTIMATE_H

#include "kernels/encode/lloyd.h"
#include "stages/work/unit_state.h"

enum xfp_bound { XFP_LEAST, XFP_EXPECTED, XFP_MOST, XFP_BOUNDS };

struct xfp_estimate {
	enum xfp_mode mode;
	unsigned k;     /* bits an index, 0 unless `mode` has codebooks */
	uint16_t group; /* columns of a group, and entries of the library; 0 unless `mode` has them */
	uint16_t library;
	bool extended;     /* k = 5, 6 and fp8 are measured too */
	bool met;          /* a unit without a floor meets it */
	double cos_median; /* 1 at source precision, 0: not told (fp8 that was asked for) */
	uint64_t outliers; /* of the unit, after the cap */
	uint64_t bytes;    /* of all its parts */
};

struct xfp_estimate xfp_estimate_unit(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters,
				      enum xfp_bound bound);
/* Of a conversion's unit: from its measurements when they are known, otherwise as above. */
struct xfp_estimate xfp_estimate(const struct xfp_extent *all, uint32_t number, enum xfp_bound bound);

/* What a goal has to choose from where a unit is not surveyed: candidates as its survey is likely to find them, without
 * outliers and with the threshold that is expected. `list` holds XFP_MOST_SURVEYED. Returns how many there are. */
uint32_t xfp_estimate_survey(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters,
			     struct xfp_candidate *list);

/* Where a unit's threshold is its own: one that it may have, the lowest for XFP_MOST. */
uint32_t xfp_estimate_sigma(uint32_t sigma_milli, enum xfp_bound bound);

/* Share of the weights further than `sigma_milli` / 1000 standard deviations from the mean, before the cap. */
double xfp_outlier_share(uint32_t sigma_milli, enum xfp_bound bound);

/* Of each part of a unit that is stored so: bytes[XFP_PARTS] (schemas/layout/bundle_layout.h). */
void xfp_estimate_parts(const struct xfp_ledger_unit *unit, const struct xfp_parameters *parameters,
			const struct xfp_estimate *estimate, uint64_t *bytes);

#endif
