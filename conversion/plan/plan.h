/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - the predicted cost of a conversion: bits, bytes, memory, disk and time. plan.c collects the facts, time.c
 * measures the speed of this machine, count.c computes sums, curve.c solves for other sizes.
 */
#ifndef XFP_PLAN_H
#define XFP_PLAN_H

#include "conversion/composition.h"
#include "conversion/estimate/footprint.h"
#include "conversion/state/conversion.h"
#include "stages/feedback/pace.h"

#define XFP_PLAN_KINDS 3

/* Speed of this machine with one thread. */
struct xfp_plan_pace {
	bool known;
	/* Classes whose floors lead to different candidates take different times. The first sort is the one with the
	 * most weights; it also represents classes without their own. */
	unsigned kinds;
	struct xfp_plan_kind {
		enum xfp_class class_;
		/* Seconds per weight of each step that reads weights; 0: not measured because no unit needs the step.
		 * For a survey, the weights are those of its sample. */
		double weight[XFP_STAMPS];
	} kind[XFP_PLAN_KINDS];
	double scan; /* seconds per weight to read all weights, which a survey does before sampling */
	double fp8;  /* seconds per weight to pack as fp8 */
	double unit; /* constant seconds per unit: processes and files */
	struct xfp_feedback_pace feedback; /* of calibrated conversions */
};

/* Run the actual stages on generated rows with the checkpoint's row length and dtype, in a temporary folder. Takes a
 * few hundred milliseconds. On failure, the pace stays unknown and the log has the reason. Returns XFP_FAILED if
 * interrupted. */
enum xfp_status xfp_plan_pace_measure(const struct xfp_conversion *c, struct xfp_plan_pace *pace,
				      struct xfp_error *err);
/* Remaining seconds of layers and units with `jobs` in flight, and of writing the bundle. */
double xfp_plan_pace_units(const struct xfp_conversion *c, const struct xfp_plan_pace *pace, unsigned jobs,
			   unsigned processors);
/* Seconds of a unit that is not done, with one thread. */
double xfp_plan_pace_unit(const struct xfp_conversion *c, const struct xfp_plan_pace *pace, uint32_t number);
/* Seconds of the layers to compute, and of generating their text, with one thread. */
double xfp_plan_pace_layers(const struct xfp_conversion *c);
double xfp_plan_pace_bundle(uint64_t bytes);

/* One size that a goal could request, with the expected result. Points are in ascending order. */
struct xfp_plan_point {
	uint64_t file; /* bytes of the bundle */
	uint64_t gpu;  /* bytes on the fullest GPU, with an envelope */
	double bits;   /* bits of the bundle per element of the checkpoint */
	double error;  /* mean relative squared error of the units, weighted */
};
struct xfp_plan_curve {
	struct xfp_plan_point *point;
	uint32_t count, surveyed, units; /* units with a choice; of these, units with a survey */
	uint64_t budget;                 /* the goal in bytes; 0: no goal */
};

struct xfp_plan_facts {
	struct xfp_conversion *c;
	unsigned jobs, processors; /* of this machine; with a launcher: of one step */
	double inspect_seconds;    /* inspecting, preparing, and updating the manifest afterwards */
	struct xfp_plan_pace pace;
	struct xfp_memory memory;
	uint64_t bundle[XFP_BOUNDS]; /* its size */
	struct xfp_disk disk;        /* peak of bytes still to write */
	struct xfp_error shortage;   /* XFP_OK, or the reason why convert would not start */
	bool current;                /* the bundle exists and is up to date */
	struct xfp_plan_curve curve;
	uint32_t staying;  /* units whose packed artifacts --drop-cache keeps */
	uint32_t measured; /* units whose choice follows from measurements */
};

/* Fill in all members except `inspect_seconds`, `pace` and `curve`. The units must be prepared for a dry run. */
enum xfp_status xfp_plan_gather(struct xfp_conversion *c, struct xfp_plan_facts *facts, struct xfp_error *err);
/* Seconds that the conversion takes. */
double xfp_plan_seconds(const struct xfp_plan_facts *facts);

/* ---- sums ---------------------------------------------------------------------------------------- */

/* Units of one class and role. */
struct xfp_plan_group {
	enum xfp_class class_;
	const char *role; /* NULL: all units */
	uint32_t units, measured, missed;
	uint64_t weights, source, bytes[XFP_BOUNDS];
	uint32_t bits[XFP_MAX_K + 1];    /* units by expected k */
	double paper;                    /* sum of weights times bits, as papers count bits */
	struct xfp_format_ranges ranges; /* expected storage formats */
	uint32_t fp8, kept;
	uint32_t fixed_missed; /* units of `missed` with fixed bits */
	bool has_floor;
	uint32_t min_floor, max_floor; /* billionths, over units with a floor */
};

struct xfp_plan_groups {
	struct xfp_plan_group *list; /* by class, then role */
	unsigned count, capacity;
	struct xfp_plan_group all;
};

/* Group the units by class and role. Returns false if out of memory. The caller frees the list in both cases. */
bool xfp_plan_group_units(const struct xfp_conversion *c, struct xfp_plan_groups *groups);
double xfp_plan_bits(const struct xfp_plan_group *group, enum xfp_bound bound);

/* The expected bundle. */
struct xfp_composition xfp_plan_composition(const struct xfp_plan_facts *facts);

/* Tensors by fate. */
struct xfp_plan_fates {
	uint32_t tensors[XFP_FATES];
	uint64_t bytes[XFP_FATES];
};
struct xfp_plan_fates xfp_plan_count_fates(const struct xfp_ledger *ledger);

/* Artifacts of a stage that the units need, and the number of these in the cache. Stages that the modes do not use are
 * omitted. Returns the number of entries. */
struct xfp_plan_hits {
	enum xfp_stamp stamp;
	uint32_t needed, present;
};
unsigned xfp_plan_count_hits(const struct xfp_conversion *c, struct xfp_plan_hits hits[XFP_STAMPS]);
/* Number of units with a survey but without a measurement, for which estimates use the survey. */
uint32_t xfp_plan_surveyed_units(const struct xfp_conversion *c);
/* Number of units whose digests the manifest has. */
uint32_t xfp_plan_known_units(const struct xfp_conversion *c);

/* Number of layers whose inputs must be computed. */
uint32_t xfp_plan_missing_layers(const struct xfp_conversion *c);

/* ---- goals --------------------------------------------------------------------------------------- */

/* Fill in facts->curve; the caller frees its points. Modifies the unit states, which must then be prepared again. */
enum xfp_status xfp_plan_curve(struct xfp_plan_facts *facts, struct xfp_error *err);

#endif
