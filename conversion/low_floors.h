/* SPDX-License-Identifier: Apache-2.0 */
/*
 * low_floors.h - warns about floors, or goal results, below the quality that models are known to survive.
 *
 * With one floor of 0.98 for all units, which led to three bits, the published method's own models collapsed: GSM8K
 * fell from 91.64 % to 45.46 %, from 81.98 % to 57.48 %, or to garbage. Routed experts are more robust: 0.93 was the
 * lowest floor with a usable model, 66.72 % instead of 94 %.
 */
#ifndef XFP_LOW_FLOORS_H
#define XFP_LOW_FLOORS_H

#include "conversion/state/conversion.h"

#define XFP_LOW_STRICT (XFP_NANO / 100 * 98) /* warn at or below this floor */
#define XFP_LOW_LAZY (XFP_NANO / 100 * 98)   /* routed_expert: warn below this floor */

/* Warning about units with such floors, allocated; NULL if there are none or out of memory. Excludes units of fixed
 * bits and, with a `goal`, units with floor 0. */
char *xfp_low_floors(const struct xfp_parameters *parameters, const struct xfp_ledger *ledger, bool goal);

/* The same warning for the weighted mean cosine that a solved goal gives each class. Unmeasured units count with their
 * expected cosine. Excludes units of fixed bits. */
char *xfp_low_cosines(const struct xfp_conversion *c);

#endif
