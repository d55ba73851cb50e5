/* SPDX-License-Identifier: Apache-2.0 */
/*
 * todo.h - todo.mk: the work that make has to do, for pipelines/graph.mk.
 *
 *   FIT_UNITS, PACK_UNITS    the units that are not done, by plan
 *   SURVEY_UNITS             with a goal: units to survey first
 *   SCALED_UNITS             units to survey whose outputs must be predicted with the inputs of their layer
 *   CALIBRATED_UNITS         units that are not done and need the inputs of their layer, which are not in FIT_UNITS
 *   LAYERS                   layers whose inputs must be computed
 *   u000012-scales: | l000003-inputs   order: surveys and
 *   u000012-tried: | l000003-inputs    units after their layer, layers one after the other,
 *   l000005-inputs: | u000012-tried    and at most one ahead of the units that are in work
 *
 * With a launcher, batches take the place of units, and wait as they do:
 *   BATCHES, CALIBRATED_BATCHES   names such as b000001; the latter wait for the inputs of their layer
 *   b000001 = --heaviest 250 u000012-packed ...  the arguments of xfp-launch for a batch
 */
#ifndef XFP_TODO_H
#define XFP_TODO_H

#include "conversion/state/conversion.h"

#define XFP_TODO_FILE "todo.mk"

/* Write todo.mk to the work folder. Requires prepared units. */
enum xfp_status xfp_todo_write(const struct xfp_conversion *c, struct xfp_error *err);

/* Whether the unit has fits to make, or scales if a goal surveys it, and therefore needs the inputs of its layer, if it
 * has one. Packing a decided unit needs only its fits. */
bool xfp_unit_needs_inputs(const struct xfp_conversion *c, uint32_t unit);

/* The work of a step that is worth launching, and that of a unit to fit, in seconds of a fast processor: a shorter
 * prediction gives fewer batches. */
#define XFP_TODO_STEP_SECONDS 6 /* launching takes about .3 s: 5 % */
double xfp_todo_seconds(uint64_t weights);

/* The most units that make can have in work at the same time. */
uint32_t xfp_todo_width(const struct xfp_conversion *c);

#endif
