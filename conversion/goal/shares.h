/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares.h - a conversion as its goal sees it: what each unit may be stored as, what that costs, and how large
 * everything comes out.
 *
 * The unit of cost is that of the goal: bytes of the file, or bytes on the fullest GPU.
 */
#ifndef XFP_SHARES_H
#define XFP_SHARES_H

#include "conversion/state/conversion.h"
#include "schemas/bundle.h"
#include "stages/quantize/offers.h"
#include "stages/quantize/solve.h"

#define XFP_NO_OFFER UINT32_MAX

struct xfp_share {
	struct xfp_offer *offers; /* NULL: there is nothing to choose; the unit is what its state says */
	uint32_t count;
	uint32_t at;   /* the offer that it has; XFP_NO_OFFER: none */
	double weight; /* of its error */
	bool balanced; /* it has a part BALANCE */
	bool surveyed; /* offers are measured, not estimated */
	bool source;   /* measured on all rows it cannot be stored as it was offered, and stays at source precision */
	uint64_t rest[XFP_PARTS]; /* parts of a unit without offers, or that stays at source precision */
	enum xfp_mode mode;       /* likewise */
	uint32_t k;
};

/* What is told from headers alone: nothing; all; or all, and what cannot be known is left out. */
enum xfp_headers { XFP_HEADERS_NONE, XFP_HEADERS_LIKELY, XFP_HEADERS_LEAST };

struct xfp_shares {
	struct xfp_conversion *c;
	struct xfp_share *unit; /* [unit_count] */
	uint32_t count;
	enum xfp_headers headers;
	uint32_t missing; /* units whose survey is not there */
	uint64_t budget;  /* what the goal comes to */
	uint64_t kept;    /* on the fullest GPU: tensors that are no units */
};

/* What there is to choose from, by surveys where they are there and by estimates elsewhere; units without a choice are
 * prepared. `check`: as in xfp_prepare_unit. To be freed either way. */
enum xfp_status xfp_shares_begin(struct xfp_conversion *c, bool check, struct xfp_shares *shares,
				 struct xfp_error *err);
/* The same from headers alone. XFP_HEADERS_LIKELY: by estimates. XFP_HEADERS_LEAST: without floors, outliers and
 * balance, so that nothing can take less than the least of it. */
enum xfp_status xfp_shares_of_headers(struct xfp_conversion *c, enum xfp_headers headers, struct xfp_shares *shares,
				      struct xfp_error *err);
void xfp_shares_free(struct xfp_shares *shares);

/* What an offer costs, everything that comes with it included as far as that is the offer's. */
uint64_t xfp_share_cost(const struct xfp_shares *shares, uint32_t unit, const struct xfp_offer *offer);
/* How large everything is with what units have: exactly where their offers are. `makeup` may be NULL. */
enum xfp_status xfp_shares_total(const struct xfp_shares *shares, uint64_t *total, struct xfp_bundle_makeup *makeup,
				 struct xfp_error *err);

/* Which offers a solution may be made of. What a unit has is always among them unless it is unfit, and what is unfit
 * never is; a unit that has something unfit may have whatever takes more. */
enum xfp_choose_from {
	XFP_FROM_ALL,
	XFP_FROM_LESS,  /* what takes less, as far as that is exactly known */
	XFP_FROM_BELOW, /* whatever takes less */
	XFP_FROM_MORE   /* whatever takes more */
};
/* Give each unit the offer with which all errors together are least within a budget. What cannot be had is told by
 * solution->feasible, or by *total, which is what everything takes then. */
enum xfp_status xfp_shares_solve(struct xfp_shares *shares, enum xfp_choose_from from, uint64_t budget,
				 struct xfp_solution *solution, uint64_t *total, struct xfp_error *err);

/* The weighted sum of errors, and what it would be divided by for a mean. */
double xfp_shares_error(const struct xfp_shares *shares);
double xfp_shares_weight(const struct xfp_shares *shares);

/* What the assignments are: allocated, [unit_count]. NULL: no memory. */
struct xfp_assignment *xfp_shares_assign(const struct xfp_shares *shares);
/* For estimates: what units that are not decided are expected to be. */
void xfp_shares_expect(const struct xfp_shares *shares);

/* A number of the goal's bytes, in the goal's unit and for people, for messages; returns `text`. */
const char *xfp_shares_text(const struct xfp_conversion *c, uint64_t bytes, char text[64]);

#endif
