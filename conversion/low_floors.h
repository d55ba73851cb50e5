/* SPDX-License-Identifier: Apache-2.0 */
/*
 * low_floors.h - a remark on floors, or on what a goal leaves, below what models are known to survive.
 *
 * The published method's own models were ruined where one floor of 0.98 for everything landed on three bits: 45.46 %
 * of GSM8K instead of 91.64, 57.48 instead of 81.98, and garbage. Routed experts bear more: of them 0.93 was the lowest
 * that gave a usable model, 66.72 % instead of 94.
 */
#ifndef XFP_LOW_FLOORS_H
#define XFP_LOW_FLOORS_H

#include "conversion/state/conversion.h"

#define XFP_LOW_STRICT (XFP_NANO / 100 * 98) /* at this one and below it */
#define XFP_LOW_LAZY (XFP_NANO / 100 * 98)   /* of routed_expert: below it */

/* The line about units of the ledger that are held to such floors, which the caller frees; NULL: there are none, or no
 * memory. Units of fixed bits are held to none, nor, with a `goal`, are those that have 0. */
char *xfp_low_floors(const struct xfp_parameters *parameters, const struct xfp_ledger *ledger, bool goal);

/* Likewise about cosines that a solved goal leaves classes with, a mean by weights; those of units that are not
 * measured yet are expected ones. Units of fixed bits do not count. */
char *xfp_low_cosines(const struct xfp_conversion *c);

#endif
