/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decide.h - decide how a unit is stored.
 *
 * There are two callers: each stage, for its one unit, and `xfp convert` for all units, so that make only has to create
 * missing artifacts. They obtain measurements in different ways (a stage opens the artifacts that its stamps name, the
 * front end queries the manifest first), but must reach the same decision.
 *
 * A unit's parameters are those of its policy; if its outlier threshold is automatic, the survey narrows them
 * (target.h). The first fits are measured, and the choice is made among their candidates (select.h). If none of them
 * meets the floor, the extended set is measured completely, and the choice is made among all candidates.
 */
#ifndef XFP_DECIDE_H
#define XFP_DECIDE_H

#include "stages/quantize/select.h"

/* The parameters of the unit's fits, before its survey narrows them; the result must not be freed. */
struct xfp_parameters xfp_decide_parameters(const struct xfp_parameters *all, const struct xfp_ledger_unit *unit,
					    struct xfp_policy *policy);
/* Whether a survey selects the threshold of this unit. */
bool xfp_decide_by_survey(const struct xfp_parameters *parameters, const struct xfp_ledger_unit *unit);
/* The fits that the choice depends on, bit F for enum xfp_fit_kind F; 0: the survey will determine them, or there is no
 * choice. With fixed bits all modes are measured, whatever a survey finds. */
uint32_t xfp_decide_fits(const struct xfp_parameters *parameters, const struct xfp_policy *policy,
			 const struct xfp_ledger_unit *unit);

/* Callbacks that provide measurements. */
struct xfp_decide_callbacks {
	/* Fill in one of input->fits, and input->sampled if a sample decides and `sample` is NULL. XFP_WANT_EXTENDED:
	 * the fit does not exist, so that nothing can be decided; the other fits are still queried. */
	enum xfp_status (*find)(void *own, enum xfp_fit_kind kind, struct xfp_select_input *input,
				struct xfp_error *err);
	/* Fill in one of input->sampled; called for fits that were found if a sample decides. May be NULL. */
	enum xfp_status (*sample)(void *own, enum xfp_fit_kind kind, struct xfp_select_input *input,
				  struct xfp_error *err);
	/* An earlier choice made from exactly these fits, which avoids computing the sample. May be NULL. */
	bool (*known)(void *own, const struct xfp_select_input *input, struct xfp_choice *choice);
};

/* Make the choice; input->fits is then what it was made from. XFP_WANT_EXTENDED: measurements are missing. Otherwise
 * the statuses of xfp_select. */
enum xfp_status xfp_decide(struct xfp_select_input *input, const struct xfp_decide_callbacks *means, void *own,
			   struct xfp_choice *choice, struct xfp_error *err);

#endif
