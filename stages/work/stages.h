/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stages.h - the table of stages: what is done with a unit, step by step, in its order.
 *
 * This is the one list of them. A step is one run of a stage's executable for one unit: it makes one artifact and
 * leaves one stamp. A fit has two steps, since the extended set is measured by a second run of the same executable.
 * make has rules for the same steps (pipelines/graph.mk and unit.mk): tests/unit/test_stages.c holds them against this
 * table.
 *
 * Not in it are the stages that work on no unit: inspect, which comes before them all, and bundle, which comes after.
 */
#ifndef XFP_STAGES_H
#define XFP_STAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "schemas/fit.h"
#include "schemas/parameters.h"

#define XFP_INSPECT_PROGRAM "xfp-inspect"
#define XFP_BUNDLE_PROGRAM "xfp-bundle"
#define XFP_BUNDLE_STAGE "bundle" /* as events name it */

/* The steps, named for their stamps. */
enum xfp_stamp {
	XFP_STAMP_SURVEY, /* where thresholds are a unit's own */
	XFP_STAMP_OUTLIERS,
	XFP_STAMP_FIT, /* as enum xfp_fit_kind from here on: what was measured first */
	XFP_STAMP_LIBRARY,
	XFP_STAMP_EXTENDED, /* and what was when asked for */
	XFP_STAMP_EXTENDED_LIBRARY,
	XFP_STAMP_CHOICE,
	XFP_STAMP_PACKED,
	XFP_STAMPS
};

struct xfp_step {
	const char *stage;   /* "lloyd-fit", as events name it */
	const char *program; /* "xfp-lloyd-fit" */
	const char *said;    /* "lloyd-fit --extended", for people */
	const char *stamp;   /* "extended": its file is u000012-extended */
	const char *target;  /* of make, likewise; NULL: made by the recipe of the choice, which asks for it */
	const char *kind;    /* of its artifact, and that kind's version */
	uint32_t version;
	bool fit;      /* one of enum xfp_fit_kind (xfp_step_fit) */
	bool extended; /* run with --extended */
	bool weights;  /* reads the checkpoint's weights, which must be those that were inspected */
	bool digests;  /* its artifact tells the digests of a unit that is fitted */
};
extern const struct xfp_step xfp_steps[XFP_STAMPS];

/* A fit's stamp, and which fit a stamp is of. */
static inline enum xfp_stamp xfp_fit_stamp(enum xfp_fit_kind kind)
{
	return (enum xfp_stamp)(XFP_STAMP_FIT + (int)kind);
}
static inline enum xfp_fit_kind xfp_step_fit(enum xfp_stamp stamp)
{
	return (enum xfp_fit_kind)((int)stamp - XFP_STAMP_FIT);
}

/* The step of a stage, of those that are not extended; XFP_STAMPS: no stage of a unit has the name. And the extended
 * step of the same stage; XFP_STAMPS: it has none. */
enum xfp_stamp xfp_step_named(const char *stage);
enum xfp_stamp xfp_step_extended(enum xfp_stamp stamp);

/* Whether a unit that is fitted goes through a step, as far as parameters tell; `extended`: k = 5, 6 and fp8 are
 * measured too. */
bool xfp_step_wanted(const struct xfp_parameters *parameters, enum xfp_stamp stamp, bool extended);

/* The kinds of artifacts in the order in which steps make them, each once: the name of one, NULL after the last; and
 * the place of a name, which is behind the last for one that is none. */
const char *xfp_kind_at(unsigned place);
unsigned xfp_kind_place(const char *kind);

#endif
