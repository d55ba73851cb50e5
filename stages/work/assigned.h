/* SPDX-License-Identifier: Apache-2.0 */
/*
 * assigned.h - the file `assigned` of a work folder: what a goal was solved to, a record a unit.
 *
 * A record is 80 bytes: "u000012 v2c-32-4@2.7 3,4", the unit's assignment and the bits that are measured, with blanks
 * up to a seal (cache/seal.h) over what stands before it, and a newline. Its place follows from the unit's number, so
 * that a stage reads its own alone. Without a goal there is no such file.
 */
#ifndef XFP_ASSIGNED_H
#define XFP_ASSIGNED_H

#include "base/xfp_error.h"
#include "schemas/assignment.h"
#include "schemas/parameters.h"

#define XFP_ASSIGNED_FILE "assigned"

/* As the parameters have them; where they have none the file goes. One that is as it should be is left alone. */
enum xfp_status xfp_assigned_write(const char *work, const struct xfp_parameters *parameters, struct xfp_error *err);

/* Of one unit. *found is false where there is no such file. XFP_DAMAGED: a record that is not the unit's, or does not
 * fit its seal; xfp writes them anew whenever it goes round. */
enum xfp_status xfp_assigned_read(const char *work, uint32_t unit, struct xfp_assignment *assignment, bool *found,
				  struct xfp_error *err);
/* Of all `count` units, into parameters->assigned. */
enum xfp_status xfp_assigned_read_all(const char *work, uint32_t count, struct xfp_parameters *parameters,
				      struct xfp_error *err);

#endif
