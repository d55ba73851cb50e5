/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what a bundle holds, as people read it. Shared by convert, info and verify.
 */
#ifndef XFP_REPORT_H
#define XFP_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "conversion/whole.h"
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

/* Why a unit is not what was asked for: below its floor, or at source precision for want of a candidate. NULL: it is
 * as asked for. `recorded` may be NULL. */
const char *xfp_report_missed(const struct xfp_recorded *recorded, const struct xfp_unit_info *unit);
/* A line for each of the first `most` such units, with its reason, and how many more there are. */
void xfp_report_misses(FILE *out, const struct xfp_bundle *bundle, const struct xfp_recorded *recorded, uint32_t most);

/* struct xfp_ways as text. */
#define XFP_WAYS_TEXT 32
/* "v2c", "v2+v2c+fp8", "src"; "16", "16-32", "-"; "3", "2-4", "-". */
const char *xfp_ways_mode(const struct xfp_ways *ways, char text[XFP_WAYS_TEXT]);
const char *xfp_ways_group(const struct xfp_ways *ways, char text[XFP_WAYS_TEXT]);
const char *xfp_ways_bits(const struct xfp_ways *ways, char text[XFP_WAYS_TEXT]);

/* Stored bits a weight, padding and codebooks included. */
double xfp_true_bits(const struct xfp_unit_info *unit);

#endif
