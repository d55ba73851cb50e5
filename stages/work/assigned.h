/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assigned.h - the file `assigned` of a work folder: the solution of a size goal, one record a unit.
 *
 * A record is 80 bytes: "u000012 v2c-32-4@2.7 3,4", the unit's assignment and the measured bits, then blanks, a seal
 * (cache/seal.h) over everything before it, and a newline. Its offset follows from the unit's number, so that a stage
 * reads only its own record. Without a goal the file does not exist.
 */
#ifndef XFP_ASSIGNED_H
#define XFP_ASSIGNED_H

#include "base/xfp_error.h"
#include "schemas/assignment.h"
#include "schemas/parameters.h"

#define XFP_ASSIGNED_FILE "assigned"

/* Write the assignments of the parameters; without any, the file is removed. A file that is already correct is not
 * rewritten. */
enum xfp_status xfp_assigned_write(const char *work, const struct xfp_parameters *parameters, struct xfp_error *err);

/* Read the record of one unit. *found is false if the file does not exist. XFP_DAMAGED: the record is another unit's,
 * or does not match its seal; xfp rewrites it in its next round. */
enum xfp_status xfp_assigned_read(const char *work, uint32_t unit, struct xfp_assignment *assignment, bool *found,
				  struct xfp_error *err);
/* Read the records of all `count` units into parameters->assigned. */
enum xfp_status xfp_assigned_read_all(const char *work, uint32_t count, struct xfp_parameters *parameters,
				      struct xfp_error *err);

#endif
