/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocation.h - the units of a conversion as input to the goal solver: possible formats, their costs, and the total
 * size.
 *
 * Costs have the unit of the goal: bytes of the file, or bytes on the fullest GPU.
 */
#ifndef XFP_ALLOCATION_H
#define XFP_ALLOCATION_H

#include "conversion/state/conversion.h"
#include "schemas/bundle.h"
#include "stages/quantize/solve.h"
#include "stages/quantize/variants.h"

#define XFP_NO_VARIANT UINT32_MAX

struct xfp_unit_allocation {
	struct xfp_variant *variants; /* NULL: no choice; the unit's state determines it */
	uint32_t count;
	uint32_t at;              /* index of the current variant; XFP_NO_VARIANT: none */
	double weight;            /* weight of its error */
	bool balanced;            /* has a BALANCE part */
	bool surveyed;            /* variants come from a survey, not an estimate */
	bool source;              /* measured on all rows, the variant is unusable; kept at source precision */
	uint64_t rest[XFP_PARTS]; /* parts of a unit without variants or at source precision */
	enum xfp_mode mode;       /* mode of a unit without variants or at source precision */
	uint32_t k;
};

/* What to derive from headers alone: nothing; everything; or everything, omitting what cannot be known. */
enum xfp_headers { XFP_HEADERS_NONE, XFP_HEADERS_LIKELY, XFP_HEADERS_LOWER_BOUND };

struct xfp_allocation {
	struct xfp_conversion *c;
	struct xfp_unit_allocation *unit; /* [unit_count] */
	uint32_t count;
	enum xfp_headers headers;
	uint32_t missing; /* units without a survey */
	uint64_t budget;  /* the goal in bytes */
	uint64_t kept;    /* bytes on the fullest GPU of tensors outside units */
};

/* Collect the variants of all units, from surveys if they exist and from estimates otherwise. Units without a choice
 * are prepared. `check`: as in xfp_prepare_unit. Call xfp_allocation_free even on failure. */
enum xfp_status xfp_allocation_begin(struct xfp_conversion *c, bool check, struct xfp_allocation *allocation,
				     struct xfp_error *err);
/* The same from headers alone. XFP_HEADERS_LIKELY uses estimates. XFP_HEADERS_LOWER_BOUND ignores floors, outliers and
 * balance, which gives a lower bound. */
enum xfp_status xfp_allocation_of_headers(struct xfp_conversion *c, enum xfp_headers headers,
					  struct xfp_allocation *allocation, struct xfp_error *err);
void xfp_allocation_free(struct xfp_allocation *allocation);

/* Cost of a variant, including parts outside the unit that depend on it. */
uint64_t xfp_variant_cost(const struct xfp_allocation *allocation, uint32_t unit, const struct xfp_variant *variant);
/* Total size with the current variants; exact if the variants are. `breakdown` may be NULL. */
enum xfp_status xfp_allocation_total(const struct xfp_allocation *allocation, uint64_t *total,
				     struct xfp_bundle_breakdown *breakdown, struct xfp_error *err);

/* Variants that a solution may use. The current variant of a unit is always allowed unless it is unfit, and unfit
 * variants never are. A unit whose current variant is unfit may use any variant that costs more. */
enum xfp_choose_from {
	XFP_FROM_ALL,
	XFP_FROM_LESS,  /* cheaper variants of exactly known cost */
	XFP_FROM_BELOW, /* all cheaper variants */
	XFP_FROM_MORE   /* all more expensive variants */
};
/* Choose a variant for each unit, minimizing the total error within the budget. If this is impossible,
 * solution->feasible is false or *total, the resulting size, exceeds the budget. */
enum xfp_status xfp_allocation_solve(struct xfp_allocation *allocation, enum xfp_choose_from from, uint64_t budget,
				     struct xfp_solution *solution, uint64_t *total, struct xfp_error *err);

/* Weighted sum of errors, and the sum of weights for a mean. */
double xfp_allocation_error(const struct xfp_allocation *allocation);
double xfp_allocation_weight(const struct xfp_allocation *allocation);

/* The assignments, allocated: [unit_count]. Returns NULL if out of memory. */
struct xfp_assignment *xfp_allocation_assign(const struct xfp_allocation *allocation);
/* Store the expected formats in the states of undecided units, for estimates. */
void xfp_allocation_expect(const struct xfp_allocation *allocation);

/* The goal in bytes of the file, or on a GPU. */
uint64_t xfp_goal_budget(const struct xfp_goal *goal, const struct xfp_ledger *ledger);

/* Format a size in the unit of the goal, for messages; returns `text`. */
const char *xfp_allocation_text(const struct xfp_conversion *c, uint64_t bytes, char text[64]);

#endif
