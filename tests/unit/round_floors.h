/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round_floors.h - the defaults with other floors, chosen so that sums are easy to follow.
 */
#ifndef XFP_ROUND_FLOORS_H
#define XFP_ROUND_FLOORS_H

#include "schemas/parameters.h"

static inline struct xfp_parameters round_floors(void)
{
	struct xfp_parameters p = xfp_parameters_default();

	for (int i = 0; i < XFP_CLASSES; i++)
		p.floor[i] = 990000000;
	p.floor[XFP_CLASS_ROUTED_EXPERT] = 980000000;
	p.floor[XFP_CLASS_EMBEDDING] = p.floor[XFP_CLASS_LM_HEAD] = 999000000;
	return p;
}

#endif
