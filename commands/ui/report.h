/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what a bundle holds, as people read it. Shared by convert, info and verify.
 */
#ifndef XFP_REPORT_H
#define XFP_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "runtime/xfp.h"
#include "stages/settings/recorded.h"

/* One line a class: units, weights, bits, floors, cosines, stored bits a weight, size, share of outliers;
 * then what is stored beside units, the whole, and which units are below their floor. A class's cosines
 * are medians over its units, and worst unit is the lowest median of a unit. */
void xfp_report_table(FILE *out, const struct xfp_bundle *bundle);

/* The classes' lines as a list of objects; NULL when out of memory. */
json_t *xfp_report_classes(const struct xfp_bundle *bundle);

/* One line a unit; with what decided its format and floor, where `recorded` is not NULL and tells of something. */
void xfp_report_units(FILE *out, const struct xfp_bundle *bundle, const struct xfp_recorded *recorded);

/* "3", "2-4", "fp8", "2-4+src": indices of `least` to `most` bits (0: none), units in fp8, and at source precision. */
const char *xfp_bits_text(unsigned least, unsigned most, bool fp8, bool kept, char text[32]);

/* Stored bits a weight, padding and codebooks included. */
double xfp_true_bits(const struct xfp_unit_info *unit);

#endif
