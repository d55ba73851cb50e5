/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide.h - what becomes of a unit: the one home of that decision.
 *
 * Two ask for it: each stage, of the one unit that it runs for, and `xfp convert` of all units, so that make has only
 * to make what is missing. They come by measurements in ways of their own (a stage opens what its stamps name, the
 * front end asks the manifest first) and must not differ in what follows from them.
 *
 * A unit's parameters are those of its policy; where its outlier threshold is its own, the survey narrows them (aim.h).
 * The first fits are measured, and the choice is made among their candidates (select.h). Where none of those meets the
 * floor the extended set is measured too, all of it, and the choice is made among all.
 */
#ifndef XFP_DECIDE_H
#define XFP_DECIDE_H

#include "stages/quantize/select.h"

/* The parameters as the unit's fits see them, before its survey has a say; nothing is to be freed. */
struct xfp_parameters xfp_decide_parameters(const struct xfp_parameters *all, const struct xfp_ledger_unit *unit,
					    struct xfp_policy *policy);
/* Whether a survey is to say which threshold such a unit has. */
bool xfp_decide_by_survey(const struct xfp_parameters *parameters, const struct xfp_ledger_unit *unit);
/* What the choice waits for, bit F for enum xfp_fit_kind F; 0: the survey is still to tell, or there is no choice. With
 * fixed bits all modes are measured, whatever a survey says. */
uint32_t xfp_decide_fits(const struct xfp_parameters *parameters, const struct xfp_policy *policy,
			 const struct xfp_ledger_unit *unit);

/* How the caller comes by measurements. */
struct xfp_decide_means {
	/* Fill in one of input->fits, and input->sampled where a sample decides and there is no `sample`.
	 * XFP_WANT_EXTENDED: it is not there, so that nothing can be decided; others are still asked for. */
	enum xfp_status (*find)(void *own, enum xfp_fit_kind kind, struct xfp_select_input *input,
				struct xfp_error *err);
	/* Fill in one of input->sampled; called of fits that were found where a sample decides. May be NULL. */
	enum xfp_status (*sample)(void *own, enum xfp_fit_kind kind, struct xfp_select_input *input,
				  struct xfp_error *err);
	/* The choice that was made of just these fits before, which spares the sample. May be NULL. */
	bool (*known)(void *own, const struct xfp_select_input *input, struct xfp_choice *choice);
};

/* The choice, and in input->fits what it was made among. XFP_WANT_EXTENDED: measurements are missing; otherwise as
 * xfp_select. */
enum xfp_status xfp_decide(struct xfp_select_input *input, const struct xfp_decide_means *means, void *own,
			   struct xfp_choice *choice, struct xfp_error *err);

#endif
