/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.h - the list of what is wrong with a bundle, and the first that is looked for: its bytes.
 */
#ifndef XFP_FAULTS_H
#define XFP_FAULTS_H

#include <stdint.h>

#include "commands/ui/meter.h"
#include "runtime/xfp.h"

#define XFP_FAULTS_SHOWN 20 /* more are counted, and told by --json */

/* What is wrong, in the order in which it was found. */
struct xfp_faults {
	char **text;
	uint32_t count;
	enum xfp_status status;  /* the gravest: BAD_INPUT, FAILED, UNMET; OK when there is none */
	const char *program;     /* the first are printed to stderr as "PROGRAM: TEXT" */
	struct xfp_meter *meter; /* which is removed before; NULL: there is none */
};
/* XFP_FAILED when out of memory, otherwise XFP_OK: to have found something is no failure. */
enum xfp_status xfp_faults_add(struct xfp_faults *faults, struct xfp_error *err, enum xfp_status status,
			       const char *format, ...) XFP_PRINTF(4, 5);
/* "and N more", when there are more than were shown. */
void xfp_faults_rest(const struct xfp_faults *faults);
void xfp_faults_free(struct xfp_faults *faults);

/* Every byte of the bundle. What is wrong is read twice: wrong once and then right is XFP_FAILED, a fault of the
 * machine and not of the bundle. */
enum xfp_status xfp_verify_bytes(const struct xfp_bundle *bundle, struct xfp_faults *faults, struct xfp_error *err);

#endif
