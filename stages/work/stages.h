/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.h - the table of stages: the steps of a unit, in order.
 *
 * This is the only list of them. A step is one run of a stage's executable for one unit: it makes one artifact and
 * leaves one stamp. A fit has two steps, since the extended set is measured by a second run of the same executable.
 * make has rules for the same steps (pipelines/graph.mk and unit.mk): tests/unit/test_stages.c compares them with this
 * table.
 *
 * After the steps of a unit, the table has the only step of a layer (xfp-calibrate). It does not contain the stages of
 * the whole model: inspect, which comes before them all, and bundle, which comes after.
 */
#ifndef XFP_STAGES_H
#define XFP_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "schemas/fit.h"
#include "schemas/parameters.h"

#define XFP_INSPECT_PROGRAM "xfp-inspect"
#define XFP_CALIBRATE_PROGRAM "xfp-calibrate"
#define XFP_BUNDLE_PROGRAM "xfp-bundle"
#define XFP_BUNDLE_STAGE "bundle" /* its name in events */

/* The steps, named after their stamps. */
enum xfp_stamp {
	XFP_STAMP_SURVEY, /* if thresholds are automatic */
	XFP_STAMP_SCALES, /* by the same run of xfp-survey, if the inputs of the unit's layer exist */
	XFP_STAMP_OUTLIERS,
	XFP_STAMP_FIT, /* from here on in the order of enum xfp_fit_kind: the base sets */
	XFP_STAMP_LIBRARY,
	XFP_STAMP_EXTENDED, /* and the extended sets, if requested */
	XFP_STAMP_EXTENDED_LIBRARY,
	XFP_STAMP_CHOICE,
	XFP_STAMP_PACKED,
	XFP_STAMPS,                   /* the steps of a unit; after them: */
	XFP_STAMP_INPUTS = XFP_STAMPS /* the only step of a layer, whose stamp is l000003-inputs (work.h) */
};

struct xfp_step {
	const char *stage;        /* "lloyd-fit", its name in events */
	const char *program;      /* "xfp-lloyd-fit" */
	const char *display_name; /* "lloyd-fit --extended", for people */
	const char *stamp;        /* "extended": its file is u000012-extended */
	const char *target;       /* its make target; NULL: the recipe of the choice or of the survey makes it */
	const char *kind;         /* kind and version of its artifact */
	uint32_t version;
	bool fit;      /* one of enum xfp_fit_kind (xfp_step_fit) */
	bool extended; /* run with --extended */
	bool weights;  /* reads the checkpoint's weights, which must be those that were inspected */
	bool digests;  /* its artifact contains the digests of a fitted unit */
};
extern const struct xfp_step xfp_steps[XFP_STAMPS + 1];

/* The stamp of a fit, and the fit of a stamp. */
static inline enum xfp_stamp xfp_fit_stamp(enum xfp_fit_kind kind)
{
	return (enum xfp_stamp)(XFP_STAMP_FIT + (int)kind);
}
static inline enum xfp_fit_kind xfp_step_fit(enum xfp_stamp stamp)
{
	return (enum xfp_fit_kind)((int)stamp - XFP_STAMP_FIT);
}

/* The step of a stage of units, among those that are not extended; XFP_STAMPS: unknown stage. And the extended step of
 * the same stage; XFP_STAMPS: it has none. */
enum xfp_stamp xfp_step_named(const char *stage);
enum xfp_stamp xfp_step_extended(enum xfp_stamp stamp);

/* Whether a fitted unit needs a step, according to the parameters; `extended`: k = 5, 6 and fp8 are measured too. Never
 * for scales: the survey makes them if the inputs of the unit's layer exist. */
bool xfp_step_wanted(const struct xfp_parameters *parameters, enum xfp_stamp stamp, bool extended);

/* The kinds of artifacts in the order of the steps that make them, each once: the name of one, NULL after the last; and
 * the place of a name, one past the last if unknown. */
const char *xfp_kind_at(unsigned place);
unsigned xfp_kind_place(const char *kind);

#endif
