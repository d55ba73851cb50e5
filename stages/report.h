/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what a bundle holds, as people read it. Shared by convert, info and verify.
 */
#ifndef XFP_REPORT_H
#define XFP_REPORT_H

#include <stdio.h>

#include "xfp.h"

/* One line a class: units, weights, bits, cosines, true bits, size, share of outliers; then what is
 * stored beside units, and the whole. A class's median and p5 are medians over its units, and least is
 * the lowest median of a unit. */
void xfp_report_table(FILE *out, const struct xfp_bundle *bundle);

/* One line a unit. */
void xfp_report_units(FILE *out, const struct xfp_bundle *bundle);

/* Stored bits a weight, padding and codebooks included. */
double xfp_true_bits(const struct xfp_unit_info *unit);

#endif
