/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.h - the list of a bundle's faults, and the first check: its digests.
 */
#ifndef XFP_FAULTS_H
#define XFP_FAULTS_H

#include <stdint.h>

#include "commands/ui/meter.h"
#include "runtime/xfp.h"

#define XFP_FAULTS_SHOWN 20 /* more are counted and listed by --json */

/* Faults, in the order of discovery. */
struct xfp_faults {
	char **text;
	uint32_t count;
	enum xfp_status status;  /* the most severe: BAD_INPUT, FAILED, UNMET; OK if none */
	const char *program;     /* the first faults are printed to stderr as "PROGRAM: TEXT" */
	struct xfp_meter *meter; /* cleared before printing; NULL if none */
};
/* Record a fault. Returns XFP_OK, or XFP_FAILED if out of memory. */
enum xfp_status xfp_faults_add(struct xfp_faults *faults, struct xfp_error *err, enum xfp_status status,
			       const char *format, ...) XFP_PRINTF(4, 5);
/* Print "and N more" if there are more faults than were shown. */
void xfp_faults_rest(const struct xfp_faults *faults);
void xfp_faults_free(struct xfp_faults *faults);

/* Check the digests of all members. A member that fails is read again; if it then passes, that is XFP_FAILED, a fault
 * of the machine and not of the bundle. */
enum xfp_status xfp_verify_bytes(const struct xfp_bundle *bundle, struct xfp_faults *faults, struct xfp_error *err);

#endif
