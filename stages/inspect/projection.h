/* SPDX-License-Identifier: Apache-2.0 */
/*
 * projection.h - interpret a tensor's dimensions as matrices according to a rule, or explain why that is impossible.
 */
#ifndef XFP_PROJECTION_H
#define XFP_PROJECTION_H

#include "checkpoints/checkpoint.h"
#include "stages/inspect/model_config.h"
#include "stages/inspect/rule.h"

#define XFP_MAX_EXPERTS 65536

enum xfp_projection_fault {
	XFP_FAULT_NONE,
	XFP_FAULT_EMPTY, /* no weights at all: nothing is lost by keeping it */
	XFP_FAULT_DTYPE,
	XFP_FAULT_RANK,
	XFP_FAULT_SHAPE,  /* a dimension contradicts the layout */
	XFP_FAULT_SPLIT,  /* its rows cannot be divided among the roles */
	XFP_FAULT_EXPERTS /* more than XFP_MAX_EXPERTS */
};

/* One role's matrices: the view of the first expert's, and the distance to the next. */
struct xfp_projection {
	struct xfp_view view;
	uint32_t experts;
	uint64_t expert_stride;
};

/* The rule's layouts that fit the tensor: bit i for layout i. A field missing from config.json excludes no layout. */
uint32_t xfp_projection_fit(const struct xfp_rule *rule, const struct xfp_source_tensor *tensor,
			    const struct xfp_model_config *config);

/* Whether the tensor has this layout. If not, `why` is the reason, for people. */
enum xfp_projection_fault xfp_projection_check(const struct xfp_rule *rule, uint32_t layout,
					       const struct xfp_source_tensor *tensor,
					       const struct xfp_model_config *config, char why[256]);

/* The matrices of one part of the rule; only after a check that found no fault. */
struct xfp_projection xfp_projection_read(const struct xfp_rule *rule, uint32_t layout, uint32_t part,
					  const struct xfp_source_tensor *tensor,
					  const struct xfp_model_config *config);

#endif
