/* SPDX-License-Identifier: Apache-2.0 */
/*
 * variants.h - the options of a unit when a size goal decides, and the parameters that follow from the chosen option.
 *
 * Variants are the candidates of a survey that the unit's format allows, that are smaller than the source and that are
 * likely to meet its floor, if it has one. The solution of the goal assigns one of them. The unit is then measured on
 * all rows with its mode, group size and threshold, and also with the next smaller number of bits, so that a smaller
 * candidate is available without another fit if all units together exceed the goal.
 */
#ifndef XFP_VARIANTS_H
#define XFP_VARIANTS_H

#include "schemas/fit.h"
#include "schemas/layout/bundle_layout.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"
#include "schemas/policy.h"
#include "stages/quantize/survey.h"

struct xfp_variant {
	uint64_t bytes; /* all parts; an estimate if outliers were counted on a sample */
	double error;   /* squared error / squared norm; with inputs, of outputs */
	double cosine;  /* median; with inputs, of outputs */
	uint32_t sigma_milli;
	uint16_t group, library;
	uint8_t mode, k;
	bool exact; /* `bytes` is exact */
	bool unfit; /* measured on all rows, it misses the unit's floor */
};

/* The thresholds that a survey tries: all of them if the survey selects the threshold, otherwise the given one; and "no
 * outliers", which gives the size of a unit without them. */
struct xfp_thresholds xfp_survey_thresholds(const struct xfp_parameters *parameters);

/* List the variants in no order; `variants` has space for `count`. `sigma_milli`: the requested threshold, or
 * XFP_SIGMA_AUTO. Returns their number. */
uint32_t xfp_list_variants(const struct xfp_candidate *list, uint32_t count, const struct xfp_ledger_unit *unit,
			   const struct xfp_policy *policy, uint32_t sigma_milli, struct xfp_variant *variants);

/* The size of each part of the unit stored in this form; `balanced`: it has a part BALANCE. Outliers account for the
 * rest of variant->bytes. */
void xfp_variant_parts(const struct xfp_ledger_unit *unit, const struct xfp_variant *variant, bool balanced,
		       uint64_t parts[XFP_PARTS]);
/* Whether the unit has a part BALANCE, according to the surveyed candidates without outliers, whether or not they are
 * variants; `otherwise` if there are none. */
bool xfp_survey_balanced(const struct xfp_ledger_unit *unit, const struct xfp_candidate *list, uint32_t count,
			 bool otherwise);

struct xfp_assignment xfp_variant_assignment(const struct xfp_variant *variant, const struct xfp_policy *policy);

/* Narrow the policy and parameters of a unit's fits to its assignment; `assignment` is borrowed. */
void xfp_assignment_narrow(const struct xfp_assignment *assignment, struct xfp_policy *policy,
			   struct xfp_parameters *parameters);

#endif
