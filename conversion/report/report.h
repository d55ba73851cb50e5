/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - the data of a report about one bundle, as plain structs; html/page.h and json.h write them.
 *
 * Everything here is computed from the bundle and from files that the caller names. No path, date or host is included:
 * the same inputs give the same report.
 */
#ifndef XFP_CONVERSION_REPORT_H
#define XFP_CONVERSION_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "conversion/composition.h"
#include "runtime/xfp.h"
#include "stages/settings/recorded.h"

#define XFP_REPORT_NO_LAYER UINT32_MAX

/* One unit. */
struct xfp_report_unit {
	struct xfp_unit_info info;
	uint32_t number;
	uint32_t layer;     /* the first number in its name, or XFP_REPORT_NO_LAYER */
	uint32_t column;    /* in `layers`; the number of layers if it has none */
	uint32_t part;      /* in `parts` */
	double bits;        /* stored bits per weight */
	double paper_bits;  /* as papers count them */
	bool calibrated;    /* its outputs were measured: the next members are those of outputs, else of weights */
	double median, p5;  /* cosines; the floor applies to them */
	double error;       /* squared error relative to the squared norm */
	const char *missed; /* why it misses its request; NULL: it does not */
};

/* The sum of some units. */
struct xfp_report_sum {
	uint32_t units, missed, floors, calibrated; /* floors: units with a floor */
	uint64_t weights, bytes, outliers;
	double paper;          /* bits as papers count them, times weights */
	double squared;        /* the units' errors, times weights */
	double weight_squared; /* squared errors of weights of all units, times weights */
	double worst;          /* the lowest median of a unit; 2 if there are no units */
	uint32_t worst_unit;
	struct xfp_format_ranges ranges;
};
/* Mean relative squared error, of outputs for calibrated units; 0 if there are no weights. */
double xfp_report_error(const struct xfp_report_sum *sum);
/* Mean relative squared error of weights of all units, which other formats and predictions are compared with. */
double xfp_report_weight_error(const struct xfp_report_sum *sum);
/* The quantity that errors and cosines measure: "outputs", "weights", or "outputs (weights for 1 of 30 units)". */
#define XFP_REPORT_MEASURED 64
const char *xfp_report_measured(const struct xfp_report_sum *sum, char text[XFP_REPORT_MEASURED]);
/* The quantity of one unit: "outputs" or "weights". */
const char *xfp_report_unit_measured(const struct xfp_report_unit *unit);

/* A component: the units with the same name and role in different layers. */
struct xfp_report_part {
	char *pattern; /* name with * for the layer and the expert: "model.layers.*.self_attn.q_proj.weight" */
	const char *role, *class_name;
	uint8_t class_;
	uint32_t first_unit;
	struct xfp_report_sum sum;
};

/* "attention q"; only the class if the role is the same. */
#define XFP_REPORT_PART_NAME 64
const char *xfp_report_part_name(const struct xfp_report_part *part, char text[XFP_REPORT_PART_NAME]);

/* The units of a class. */
struct xfp_report_class {
	const char *name;
	uint8_t class_;
	struct xfp_report_sum sum;
	double median, p5;           /* lower medians over the units */
	double min_floor, max_floor; /* of units with a floor; 0: none has one */
};

struct xfp_report_layer {
	uint32_t number;
	struct xfp_report_sum sum;
};

/* Tensors with the same fate for the same reason. */
struct xfp_report_fate {
	char *pattern; /* name with * for numbers */
	const char *fate, *reason, *class_name, *dtype;
	uint8_t fate_number, class_;
	uint32_t tensors;
	uint64_t elements, bytes; /* bytes: stored outside of units */
};

struct xfp_report {
	const struct xfp_bundle *bundle;     /* borrowed */
	const struct xfp_recorded *recorded; /* borrowed; NULL: recorded by another version of xfp */
	struct xfp_bundle_info info;
	struct xfp_composition composition;
	/* Set by the caller: */
	char sha256[65];  /* of the file */
	const char *name; /* of the file, without folders; borrowed */
	struct xfp_report_sum all;
	struct xfp_report_unit *units; /* [info.units] in the bundle's order */
	struct xfp_report_part *parts; /* in order of class */
	uint32_t part_count;
	struct xfp_report_layer *layers; /* ascending */
	uint32_t layer_count;
	struct xfp_report_class classes[XFP_CLASSES];
	uint32_t class_count;
	struct xfp_report_fate *fates;
	uint32_t fate_count;
	/* From other files (inputs.h); borrowed; NULL: not given. */
	const struct xfp_report_evaluation *evaluation;
	const struct xfp_report_comparison *comparison;
	const struct xfp_report_walk *walk;
	const struct xfp_report_ablations *ablation; /* of the comparison, or measured on the source */
	const struct xfp_report_source *source;
	const struct xfp_report_tails *tails;
	const struct xfp_report_samples *samples;
	const struct xfp_report_times *times;
};

/* Gather the data of an open bundle. The caller frees the report, also after a failure. */
enum xfp_status xfp_report_gather(const struct xfp_bundle *bundle, const struct xfp_recorded *recorded,
				  struct xfp_report *report, struct xfp_error *err);
void xfp_report_free(struct xfp_report *report);

/* ---- private to the folder ----------------------------------------------------------------------- */

/* Group the tensors by fate, class, name and reason. */
enum xfp_status xfp_report_gather_fates(struct xfp_report *report, struct xfp_error *err);

#endif
