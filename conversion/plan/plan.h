/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - the cost of a conversion before it starts: bits, bytes, memory, disk and time. plan.c gathers them, time.c
 * measures this machine's pace, count.c sums up, curve.c solves for other sizes.
 */
#ifndef XFP_PLAN_H
#define XFP_PLAN_H

#include "conversion/estimate/footprint.h"
#include "conversion/state/conversion.h"
#include "conversion/whole.h"

#define XFP_PLAN_SORTS 3

/* How fast this machine is, with one thread. */
struct xfp_plan_pace {
	bool known;
	/* Units of a class whose floor leads to other candidates take other times. The first sort is the one of most
	 * weights, and stands for classes that have none of their own. */
	unsigned sorts;
	struct xfp_plan_sort {
		enum xfp_class class_;
		/* Seconds that a weight takes in each step that reads weights; 0: not measured since no unit needs it.
		 * Those of a survey are the weights of its sample. */
		double weight[XFP_STAMPS];
	} sort[XFP_PLAN_SORTS];
	double scan; /* reading all weights, which a survey does before it takes its sample */
	double fp8;  /* likewise, packing as fp8 */
	double unit; /* seconds that a unit takes whatever its size: processes and files */
};

/* Run the stages themselves over generated rows, as long as the checkpoint's and of its dtype, in a temporary
 * folder. Takes some hundred milliseconds. The pace stays unknown where that fails: the log says why. An
 * interrupt is XFP_FAILED. */
enum xfp_status xfp_plan_pace_measure(const struct xfp_conversion *c, struct xfp_signals *signals,
				      struct xfp_plan_pace *pace, struct xfp_error *err);
/* Seconds that the units still take with `jobs` of them in flight, and writing the bundle. */
double xfp_plan_pace_units(const struct xfp_conversion *c, const struct xfp_plan_pace *pace, unsigned jobs);
double xfp_plan_pace_bundle(uint64_t bytes);

/* Sizes that a goal could name, least first, and what comes of each. */
struct xfp_plan_point {
	uint64_t file; /* bytes of the bundle */
	uint64_t gpu;  /* of an envelope: on the fullest GPU */
	double bits;   /* of the bundle, an element of the checkpoint */
	double error;  /* mean relative squared error of the units, weighted */
};
struct xfp_plan_curve {
	struct xfp_plan_point *point;
	uint32_t count, surveyed, units; /* units that have a choice, and those of them that surveys speak of */
	uint64_t budget;                 /* what the goal comes to; 0: there is none */
};

struct xfp_plan_facts {
	struct xfp_conversion *c;
	unsigned jobs;
	double inspect_seconds;
	struct xfp_plan_pace pace;
	struct xfp_memory memory;
	uint64_t bundle[XFP_BOUNDS]; /* its size */
	struct xfp_disk disk;        /* the most that is still to be written */
	struct xfp_error shortage;   /* XFP_OK, or why convert would not begin */
	bool current;                /* the bundle is there, and of just this */
	struct xfp_plan_curve curve;
	uint32_t staying;  /* units whose packed artifacts --drop-cache leaves where they are */
	uint32_t measured; /* units whose choice follows from measurements */
};

/* Fill in all but `inspect_seconds`, `pace` and `curve`. The units must be prepared, for a dry run. */
enum xfp_status xfp_plan_gather(struct xfp_conversion *c, struct xfp_plan_facts *facts, struct xfp_error *err);
/* How long the conversion takes. */
double xfp_plan_seconds(const struct xfp_plan_facts *facts);

/* ---- sums ---------------------------------------------------------------------------------------- */

/* Units of one class and role. */
struct xfp_plan_group {
	enum xfp_class class_;
	const char *role; /* NULL: of all units */
	uint32_t units, measured, missed;
	uint64_t weights, source, bytes[XFP_BOUNDS];
	uint32_t bits[XFP_MAX_K + 1]; /* units that are expected to have k bits */
	double paper;                 /* their bits as papers count, times weights */
	struct xfp_ways ways;         /* that they are expected to be stored in */
	uint32_t fp8, kept;
	uint32_t fixed_missed; /* of `missed`, those whose bits are fixed */
	bool has_floor;
	uint32_t least_floor, most_floor; /* billionths, of the units that have one */
};

struct xfp_plan_groups {
	struct xfp_plan_group *list; /* by class, then role */
	unsigned count, capacity;
	struct xfp_plan_group all;
};

/* False: out of memory. The caller frees the list either way. */
bool xfp_plan_group_units(const struct xfp_conversion *c, struct xfp_plan_groups *groups);
double xfp_plan_bits(const struct xfp_plan_group *group, enum xfp_bound bound);

/* The bundle that is expected. */
struct xfp_whole xfp_plan_whole(const struct xfp_plan_facts *facts);

/* Tensors by what becomes of them. */
struct xfp_plan_fates {
	uint32_t tensors[XFP_FATES];
	uint64_t bytes[XFP_FATES];
};
struct xfp_plan_fates xfp_plan_count_fates(const struct xfp_ledger *ledger);

/* Artifacts of a stage that the units need, and those of them that the cache has. Fits that the modes do not have are
 * not listed. Returns how many are. */
struct xfp_plan_hits {
	enum xfp_stamp stamp;
	uint32_t needed, there;
};
unsigned xfp_plan_count_hits(const struct xfp_conversion *c, struct xfp_plan_hits hits[XFP_STAMPS]);
/* Units that are not measured yet, but surveyed, and expected to be what the surveys say. */
uint32_t xfp_plan_surveyed_units(const struct xfp_conversion *c);
/* Units whose digests the manifest knows. */
uint32_t xfp_plan_known_units(const struct xfp_conversion *c);

/* ---- goals --------------------------------------------------------------------------------------- */

/* Fills in facts->curve, whose points the caller frees. Changes the states of units: they are to be prepared anew. */
enum xfp_status xfp_plan_curve(struct xfp_plan_facts *facts, struct xfp_error *err);

#endif
