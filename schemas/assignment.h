/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assignment.h - what a goal was solved to: how each unit is to be stored.
 *
 * Where units are assigned no floor decides: a unit is measured on all rows as its assignment says, and stored so. The
 * list is a part of the parameters, in the ledger's order of units, and is recorded with them: a bundle is made again
 * without solving again. Its text is one word a unit, in front of it "N*" where N units in a row have the same:
 *
 *   v2-3            v2, 3 bits an index, no outliers
 *   v2c-32-4@2.7    v2c, groups of 32 columns, 4 bits, outliers beyond 2.7 standard deviations
 *   fp8, keep       e4m3 with a scale a row; source precision
 *   -               no assignment: as the unit's format and floor say
 */
#ifndef XFP_ASSIGNMENT_H
#define XFP_ASSIGNMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "schemas/layout/classes.h"

struct xfp_candidate;

#define XFP_UNASSIGNED UINT32_MAX /* as a mode */

struct xfp_assignment {
	uint32_t mode; /* enum xfp_mode, or XFP_UNASSIGNED */
	uint32_t k;
	uint32_t sigma_milli;
	uint16_t group;
	/* Bit sets as in struct xfp_parameters: what is measured on all rows beside `k`, so that a unit that turns out
	 * larger than expected can do with less. It decides no byte of a bundle, and is not in the text. */
	uint32_t bits;
};
#define XFP_ASSIGNMENT_TEXT 40

static inline bool xfp_is_assigned(const struct xfp_assignment *assignment)
{
	return assignment && assignment->mode != XFP_UNASSIGNED;
}

const char *xfp_assignment_text(const struct xfp_assignment *assignment, char text[XFP_ASSIGNMENT_TEXT]);
/* The bits that are measured are then `k` alone. */
bool xfp_assignment_parse(const char *text, struct xfp_assignment *assignment);

/* The text of a list, allocated; NULL without memory. */
char *xfp_assignments_text(const struct xfp_assignment *list, uint32_t count);
/* Parse such a text into a new list. "N*" makes a short text a long list, so the caller says how many units there are.
 * False: impossible, of more than `most` units, or no memory. */
bool xfp_assignments_parse(const char *text, uint32_t most, struct xfp_assignment **list, uint32_t *count);

#endif
