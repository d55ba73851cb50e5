/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.h - what verification consists of, and the list of what it found.
 */
#ifndef XFP_VERIFY_H
#define XFP_VERIFY_H

#include <stdbool.h>

#include "checkpoints/checkpoint.h"
#include "runtime/xfp.h"

#define XFP_FAULTS_SHOWN 20   /* more are counted, and told by --json */
#define XFP_VERIFY_SLACK 1e-9 /* on cosines and errors, which are sums of rounded numbers */

/* What is wrong, in the order in which it was found. */
struct xfp_faults {
	char **text;
	uint32_t count;
	enum xfp_status status; /* the gravest: BAD_INPUT, FAILED, UNMET; OK when there is none */
	const char *program;    /* the first are printed to stderr as "PROGRAM: TEXT" */
};
/* XFP_FAILED when out of memory, otherwise XFP_OK: to have found something is no failure. */
enum xfp_status xfp_fault(struct xfp_faults *faults, struct xfp_error *err, enum xfp_status status, const char *format,
			  ...) XFP_PRINTF(4, 5);
/* "and N more", when there are more than were shown. */
void xfp_faults_rest(const struct xfp_faults *faults);
void xfp_faults_free(struct xfp_faults *faults);

/* Every byte of the bundle. What is wrong is read twice: wrong once and then right is XFP_FAILED, a fault of the
 * machine and not of the bundle. */
enum xfp_status xfp_verify_bytes(const struct xfp_bundle *bundle, struct xfp_faults *faults, struct xfp_error *err);

/* Every tensor of either side has its like on the other; those stored whole, and tied ones, hold the
 * same bytes. `same[t]`: tensor t of the bundle is in the checkpoint with the same dtype and shape. */
enum xfp_status xfp_verify_tensors(const struct xfp_bundle *bundle, const struct xfp_checkpoint *source, bool *same,
				   struct xfp_faults *faults, struct xfp_error *err);

/* Cosines and error of a unit. */
struct xfp_quality {
	double median, p5, error;
	bool stranger; /* its weights are not those that were converted: stated, not measured */
};

/* Decode a unit: quantized weights must be finite. With a source, its weights must be those that were
 * converted, source precision must be the same bytes, and the qualities that the bundle states must be
 * the true ones. `quality` receives the true ones, or without a source those stated. */
enum xfp_status xfp_verify_unit(const struct xfp_bundle *bundle, uint32_t unit, const struct xfp_checkpoint *source,
				struct xfp_quality *quality, struct xfp_faults *faults, struct xfp_error *err);

#endif
