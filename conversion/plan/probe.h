/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - a little generated checkpoint that tells how fast the stages are here: one unit of each sort that is large
 * enough to be timed, and a few that are nearly nothing, which tell what processes and files cost.
 */
#ifndef XFP_PROBE_H
#define XFP_PROBE_H

#include "conversion/plan/plan.h"

/* What a large unit stands for: the largest unit of a class. */
struct xfp_probe_sort {
	const struct xfp_ledger_unit *like;
	uint64_t weights, rows, cols;
};

struct xfp_probe {
	char *folder, *data, *work, *cache;
	int log; /* file descriptor */
	bool extended, fp8;
	enum xfp_dtype dtype;
	uint64_t elements; /* of the file of weights */
	struct xfp_probe_sort sort[XFP_PLAN_SORTS];
	uint32_t sorts, units;
	double scan_seconds;
};

/* The units of the probe: tiny ones, then a large one of each sort, then one for fp8. */
enum { XFP_PROBE_TINY = 2, XFP_PROBE_LARGE = XFP_PROBE_TINY, XFP_PROBE_UNITS = XFP_PROBE_LARGE + XFP_PLAN_SORTS + 1 };

/* Make it for the units that are to be converted; to be removed either way. */
enum xfp_status xfp_probe_make(const struct xfp_conversion *c, struct xfp_probe *probe, struct xfp_error *err);
void xfp_probe_remove(struct xfp_probe *probe);
/* What its ledger has, for as many as there are: [XFP_PROBE_UNITS]. */
void xfp_probe_units(const struct xfp_probe *probe, struct xfp_ledger_unit *units, struct xfp_ledger_matrix *matrices);

#endif
