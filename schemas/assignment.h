/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assignment.h - the solution of a size goal: how each unit is stored.
 *
 * With assignments, no floor applies: each unit is measured on all rows and stored as assigned. The list is part of the
 * parameters, in the ledger's order of units, and is recorded with them, so a bundle can be reproduced without solving
 * again. Its text is one word a unit, with the prefix "N*" for N consecutive units with the same assignment:
 *
 *   v2-3            v2, 3 bits an index, no outliers
 *   v2c-32-4@2.7    v2c, groups of 32 columns, 4 bits, outliers beyond 2.7 standard deviations
 *   fp8, keep       e4m3 with a scale a row; source precision
 *   -               no assignment: the unit's format and floor apply
 */
#ifndef XFP_ASSIGNMENT_H
#define XFP_ASSIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "schemas/layout/classes.h"

struct xfp_candidate;

#define XFP_UNASSIGNED UINT32_MAX /* value of `mode` */

struct xfp_assignment {
	uint32_t mode; /* enum xfp_mode, or XFP_UNASSIGNED */
	uint32_t k;
	uint32_t sigma_milli;
	uint16_t group;
	/* Bit sets as in struct xfp_parameters: widths to measure on all rows in addition to `k`, so that a unit that
	 * is larger than expected can use fewer bits. They do not affect the bundle's bytes, and are not in the
	 * text. */
	uint32_t bits;
};
#define XFP_ASSIGNMENT_TEXT 40

static inline bool xfp_is_assigned(const struct xfp_assignment *assignment)
{
	return assignment && assignment->mode != XFP_UNASSIGNED;
}

const char *xfp_assignment_text(const struct xfp_assignment *assignment, char text[XFP_ASSIGNMENT_TEXT]);
/* The bits to measure are set to `k` alone. */
bool xfp_assignment_parse(const char *text, struct xfp_assignment *assignment);

/* The text of a list, owned by the caller; NULL if memory runs out. */
char *xfp_assignments_text(const struct xfp_assignment *list, uint32_t count);
/* Parse the text of a list into a new list. Because "N*" makes a long list of a short text, the caller gives the number
 * of units as the limit `max`. False: invalid text, more than `max` units, or out of memory. */
bool xfp_assignments_parse(const char *text, uint32_t max, struct xfp_assignment **list, uint32_t *count);

#endif
