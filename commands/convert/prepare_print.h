/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_PREPARE_PRINT_H
#define XFP_PREPARE_PRINT_H

#include "conversion/state/conversion.h"

/* Print what a dry run found: the units that are missing, and the steps that each of them needs. */
void xfp_prepare_print(const struct xfp_conversion *c);

#endif
