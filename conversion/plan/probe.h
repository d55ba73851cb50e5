/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - a small generated checkpoint for timing the stages: one unit of each sort, large enough to be timed, and a
 * few tiny units that measure the overhead of processes and files.
 */
#ifndef XFP_PROBE_H
#define XFP_PROBE_H

#include "conversion/plan/plan.h"

/* The unit of the checkpoint that a large probe unit represents: the largest of a class. */
struct xfp_probe_kind {
	const struct xfp_ledger_unit *like;
	uint64_t weights, rows, cols;
};

struct xfp_probe {
	char *folder, *data, *work, *cache;
	int log; /* file descriptor */
	bool extended, fp8;
	enum xfp_dtype dtype;
	uint64_t elements; /* elements in the weight file */
	struct xfp_probe_kind kind[XFP_PLAN_KINDS];
	uint32_t kinds, units;
	double scan_seconds;
};

/* The units of the probe: tiny ones, then a large one of each sort, then one for fp8. */
enum { XFP_PROBE_TINY = 2, XFP_PROBE_LARGE = XFP_PROBE_TINY, XFP_PROBE_UNITS = XFP_PROBE_LARGE + XFP_PLAN_KINDS + 1 };

/* Generate the probe for the units that will be converted. Call xfp_probe_remove even on failure. */
enum xfp_status xfp_probe_make(const struct xfp_conversion *c, struct xfp_probe *probe, struct xfp_error *err);
void xfp_probe_remove(struct xfp_probe *probe);
/* Fill in the ledger entries of the probe's units: [XFP_PROBE_UNITS]. */
void xfp_probe_units(const struct xfp_probe *probe, struct xfp_ledger_unit *units, struct xfp_ledger_matrix *matrices);

#endif
