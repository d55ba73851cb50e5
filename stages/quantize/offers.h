/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offers.h - what a unit may be stored as where a goal decides, and what that makes of its parameters.
 *
 * Offers are a survey's candidates that the unit's format allows, that are smaller than the source and that are likely
 * to meet its floor, where it has one. What a goal was solved to is one of them: the unit is then measured on all rows
 * with its mode, group size and threshold, and with the next smaller number of bits too, so that less can be taken
 * without another fit where all units together turn out larger than expected.
 */
#ifndef XFP_OFFERS_H
#define XFP_OFFERS_H

#include "schemas/fit.h"
#include "schemas/layout/bundle_layout.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"
#include "schemas/policy.h"
#include "stages/quantize/survey.h"

struct xfp_offer {
	uint64_t bytes; /* all parts; an estimate where outliers were counted on a sample */
	double error;   /* squared error / squared norm */
	double cosine;  /* median */
	uint32_t sigma_milli;
	uint16_t group, library;
	uint8_t mode, k;
	bool exact; /* `bytes` are what the unit takes */
	bool unfit; /* measured on all rows it does not meet the unit's floor */
};

/* What a survey tries: every threshold where it is to say which, or the one that is asked for; and none, which tells
 * what a unit takes beside its outliers. */
struct xfp_thresholds xfp_survey_thresholds(const struct xfp_parameters *parameters);

/* In no order; `offers` holds `count`. `sigma_milli`: the threshold that is asked for, or XFP_SIGMA_AUTO. Returns how
 * many there are. */
uint32_t xfp_offers_of(const struct xfp_candidate *list, uint32_t count, const struct xfp_ledger_unit *unit,
		       const struct xfp_policy *policy, uint32_t sigma_milli, struct xfp_offer *offers);

/* Bytes of each part of the unit, stored so; `balanced`: it has a part BALANCE. All outliers are what the shape does
 * not take of offer->bytes. */
void xfp_offer_parts(const struct xfp_ledger_unit *unit, const struct xfp_offer *offer, bool balanced,
		     uint64_t parts[XFP_PARTS]);
/* Whether the unit has a part BALANCE, as the candidates of its survey without outliers tell, whether or not they are
 * offers; `otherwise` where there are none. */
bool xfp_survey_balanced(const struct xfp_ledger_unit *unit, const struct xfp_candidate *list, uint32_t count,
			 bool otherwise);

struct xfp_assignment xfp_offer_assignment(const struct xfp_offer *offer, const struct xfp_policy *policy);

/* Narrow policy and parameters of a unit, as its fits see them, to what it was assigned; `assignment` is borrowed. */
void xfp_assignment_narrow(const struct xfp_assignment *assignment, struct xfp_policy *policy,
			   struct xfp_parameters *parameters);

#endif
