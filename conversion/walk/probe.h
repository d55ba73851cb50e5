/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probe.h - build the bundles of points, one at a time, and judge them with the installed programs: xfp convert makes a
 * bundle from the cache, xfp-eval and xfp-generate, or a command of the operator, judge it.
 *
 * Results are kept in OUT.xfp.walk/walk.json, so that an interrupted walk resumes, and a repeated one probes only what
 * is new. The bundle being probed is next to it.
 */
#ifndef XFP_WALK_PROBE_H
#define XFP_WALK_PROBE_H

#include "conversion/walk/judge.h"

/* How to judge: by a text, by a command, or by both. */
struct xfp_walk_judge {
	const char *text;    /* a file of UTF-8; NULL: none */
	const char *command; /* for a shell; the bundle is its last argument; NULL: none */
	uint32_t seconds;    /* that the command may take */
	struct xfp_walk_criteria criteria;
};

struct xfp_walk_prober {
	struct xfp_conversion *c;
	struct xfp_walk *walk;
	const struct xfp_walk_judge *judge;
	char *const *words; /* xfp convert, with the options of all points */
	const char *(*name)(const struct xfp_walk_point *point, char text[XFP_WALK_NAME]);
	/* Predict a point again, now that its units are measured. */
	enum xfp_status (*measure)(void *own, struct xfp_walk_point *point, struct xfp_error *err);
	void *own;

	/* Set by xfp_walk_probe_begin: */
	char *folder;  /* OUT.xfp.walk */
	char key[65];  /* of the model and the criteria: results of another key are not used */
	char *results; /* walk.json; NULL: none, or of another key */
};

/* Read the text and the results of earlier walks, and let the source continue the prompts. The conversion's folder is
 * prepared. Call xfp_walk_probe_end even on failure. XFP_BAD_INPUT: the text is unusable, or xfp eval does not know the
 * model. */
enum xfp_status xfp_walk_probe_begin(struct xfp_walk_prober *p, struct xfp_error *err);
/* Probe points, as xfp_walk_find_boundaries requests, until both boundaries are known. XFP_FAILED: a point could not be
 * built or judged, or the walk was interrupted. */
enum xfp_status xfp_walk_probe_points(struct xfp_walk_prober *p, struct xfp_error *err);
void xfp_walk_probe_end(struct xfp_walk_prober *p);

/* ---- results on disk (results.c) ----------------------------------------------------------------- */

/* Set p->key. `text` is the text, or NULL. */
enum xfp_status xfp_walk_results_key(struct xfp_walk_prober *p, const char *text, size_t size, struct xfp_error *err);
/* Read the file; one that is damaged or has another key is ignored, and overwritten later. */
enum xfp_status xfp_walk_results_read(struct xfp_walk_prober *p, struct xfp_error *err);
/* Fill in the probes of points that were probed before. */
enum xfp_status xfp_walk_results_apply(struct xfp_walk_prober *p, struct xfp_error *err);
/* Write the probes of this walk, and keep those of other points. */
enum xfp_status xfp_walk_results_write(struct xfp_walk_prober *p, struct xfp_error *err);

#endif
