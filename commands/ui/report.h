/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - the text report of a bundle. Shared by convert, info and verify.
 */
#ifndef XFP_REPORT_H
#define XFP_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "conversion/composition.h"
#include "runtime/xfp.h"
#include "stages/settings/recorded.h"

/* Print one line per class: units, weights, bits, floors, cosines, stored bits per weight, size, share of outliers;
 * then the bytes outside units, the total, and the units below their floor. A class's cosines are medians over its
 * units, of what the floor applies to: outputs if the unit is calibrated, otherwise weights. The worst unit is the one
 * with the lowest median. `recorded` NULL: no unit is calibrated. */
void xfp_report_table(FILE *out, const struct xfp_bundle *bundle, const struct xfp_recorded *recorded);

/* The outputs of a unit, or null if it is not calibrated. */
json_t *xfp_report_outputs(const struct xfp_recorded *recorded, uint32_t unit);

/* The lines of the classes as a JSON array, with the cosines of the table; NULL if out of memory. In a calibrated
 * bundle, each has its number of calibrated units. */
json_t *xfp_report_classes(const struct xfp_bundle *bundle, const struct xfp_recorded *recorded);

/* Print one line per unit. With `recorded` not NULL, add the option that decided the unit's format and floor, if
 * any. */
void xfp_report_units(FILE *out, const struct xfp_bundle *bundle, const struct xfp_recorded *recorded);

/* Print the first `max` such units with their reasons, and the number of the rest. */
void xfp_report_misses(FILE *out, const struct xfp_bundle *bundle, const struct xfp_recorded *recorded, uint32_t max);

/* struct xfp_format_ranges as text. */
#define XFP_FORMAT_RANGES_TEXT 32
/* "v2c", "v2+v2c+fp8", "src"; "16", "16-32", "-"; "3", "2-4", "-". */
const char *xfp_format_ranges_mode(const struct xfp_format_ranges *ranges, char text[XFP_FORMAT_RANGES_TEXT]);
const char *xfp_format_ranges_group(const struct xfp_format_ranges *ranges, char text[XFP_FORMAT_RANGES_TEXT]);
const char *xfp_format_ranges_bits(const struct xfp_format_ranges *ranges, char text[XFP_FORMAT_RANGES_TEXT]);

/* Stored bits per weight, including padding and codebooks. */
double xfp_unit_stored_bits(const struct xfp_unit_info *unit);

#endif
