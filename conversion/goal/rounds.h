/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rounds.h - alternates between measuring a solution and correcting it, until the size is as close to the goal as
 * possible.
 *
 * The caller supplies the measuring function, so rounds depend only on variants and measurements.
 */
#ifndef XFP_CONVERSION_ROUNDS_H
#define XFP_CONVERSION_ROUNDS_H

#include "conversion/goal/allocation.h"

/* Update a unit's state for its assignment in the parameters; sets c->units.state[unit].choice if the unit is decided.
 * Example: xfp_prepare_unit. */
typedef enum xfp_status xfp_measure(struct xfp_conversion *c, uint32_t unit, bool check, struct xfp_error *err);

/* Run all rounds whose measurements exist, starting from the units' current variants, which are expected to need
 * `total`. Fills in steps, settled, total, binding and max of c->solved, and the assignments in the parameters; on
 * entry c->solved.max is the expected size with the most bits. Returns XFP_UNMET if the goal cannot be reached, or the
 * error of `measure`. */
enum xfp_status xfp_rounds_run(struct xfp_allocation *allocation, uint64_t total, xfp_measure *measure, bool check,
			       struct xfp_error *err);

#endif
