/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rounds.h - measuring what was solved and mending it, in turn, until everything is as large as the goal allows.
 *
 * Whoever measures is told by the caller, so that rounds follow from offers and measurements alone.
 */
#ifndef XFP_CONVERSION_ROUNDS_H
#define XFP_CONVERSION_ROUNDS_H

#include "conversion/goal/shares.h"

/* Brings a unit's state up to date for what it is assigned among the parameters: c->units.state[unit].choice if it is
 * decided already. xfp_prepare_unit is one. */
typedef enum xfp_status xfp_measure(struct xfp_conversion *c, uint32_t unit, bool check, struct xfp_error *err);

/* As far as measurements reach, from the offers that units have, which together are expected to take `total`. Fills in
 * steps, settled, total, binding and most of c->solved, and the assignments among the parameters; c->solved.most is
 * what the most bits were expected to take. XFP_UNMET: the goal cannot be had. Failures of `measure` are passed on. */
enum xfp_status xfp_rounds_go(struct xfp_shares *shares, uint64_t total, xfp_measure *measure, bool check,
			      struct xfp_error *err);

#endif
