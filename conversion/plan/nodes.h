/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nodes.h - the predicted time of a conversion with --launcher on several nodes: work that nodes share, work that the
 * head node does alone, and the bandwidth of the storage that all use.
 *
 * Units are divided into batches (batches.h), which nodes take in order. A node runs the units of a batch as make does:
 * as many at a time as it has processors, the heaviest first.
 */
#ifndef XFP_NODES_H
#define XFP_NODES_H

#include "conversion/plan/plan.h"

struct xfp_plan_nodes {
	uint32_t nodes;      /* 1: no launcher */
	uint32_t processors; /* of a node */
	double launch;       /* seconds from launching a step to its end, without its work */
	uint64_t bandwidth;  /* bytes per second that all nodes together read or write */
};

/* What has to be done: seconds are those of one thread. */
struct xfp_plan_load {
	double *unit; /* [count]: not finished */
	uint64_t *weights;
	uint32_t count;
	double layers;  /* of a calibrated conversion, computed by the head node */
	double prepare; /* elapsed: inspecting, preparing, and updating the manifest */
	uint64_t moved; /* bytes that units read and write */
	uint64_t bundle;
	uint64_t verified, source; /* weights, and their bytes, that a verification compares */
	unsigned threads;          /* of a stage without a launcher */
};

enum xfp_plan_bound { XFP_BOUND_WORK, XFP_BOUND_UNIT, XFP_BOUND_DISK, XFP_BOUND_HEAD, XFP_PLAN_BOUNDS };
const char *xfp_plan_bound_name(enum xfp_plan_bound bound); /* "work", "largest unit", "disk", "head node" */

/* Elapsed seconds. */
struct xfp_plan_nodes_time {
	uint32_t steps;                 /* to launch */
	double launching;               /* of a node, for its steps */
	double work;                    /* of units, if they divided evenly among all processors */
	double units;                   /* of units as they divide, with launching */
	double disk;                    /* to read and write what units do */
	double layers, prepare, bundle; /* of the head node */
	double total;
	double verify; /* of xfp verify --source afterwards, on the head node; not in the total */
	enum xfp_plan_bound binds;
};

/* Predict the time with at least one node, of at least one processor, and a bandwidth. */
enum xfp_status xfp_plan_nodes_predict(const struct xfp_plan_load *load, const struct xfp_plan_nodes *nodes,
				       struct xfp_plan_nodes_time *time, struct xfp_error *err);
/* Collect the load of a conversion; the caller frees it even after a failure. */
enum xfp_status xfp_plan_load_gather(const struct xfp_plan_facts *facts, struct xfp_plan_load *load,
				     struct xfp_error *err);
void xfp_plan_load_free(struct xfp_plan_load *load);

#endif
