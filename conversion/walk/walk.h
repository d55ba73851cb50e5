/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.h - settings from aggressive to conservative ones, as points: the bundle that each would give, whether it fits a
 * limit, and how well it works.
 *
 * The caller lists the points with their parameters. predict.c computes bundles from surveys alone, boundary.c finds
 * the points to probe and the one to recommend.
 */
#ifndef XFP_WALK_H
#define XFP_WALK_H

#include "base/printable.h"
#include "conversion/state/conversion.h"

#define XFP_WALK_WORDS 5 /* of a point's options: two with a value, and NULL */
/* Bytes of a point's name, which may be that of a file. */
#define XFP_WALK_NAME sizeof(struct xfp_printable)

enum xfp_walk_verdict {
	XFP_WALK_UNKNOWN,
	XFP_WALK_PASSED,
	XFP_WALK_GARBAGE,
	XFP_WALK_TOO_LARGE /* the bundle was built and exceeds the limit, although the prediction did not */
};

/* The result of building a point's bundle and judging it. */
struct xfp_walk_probe {
	enum xfp_walk_verdict verdict;
	char sha256[65];     /* of the bundle; "": not built */
	char weights[65];    /* digest of the keys of its units; "": unknown */
	uint64_t bytes, gpu; /* its size; on the fullest GPU, with an envelope */
	bool measured;       /* by a text: */
	double kl, agreement, perplexity, source_perplexity;
	double repeats; /* share of repeated 4-grams in its continuations */
	bool scored;    /* by a command: */
	double score;
};

struct xfp_walk_point {
	/* Set by the caller: */
	char *words[XFP_WALK_WORDS]; /* options of xfp convert that make it, ended by NULL; allocated */
	struct xfp_parameters parameters;
	bool floors;           /* the point is a pair of floors, a profile, */
	const char *profile;   /* or a size; borrowed from `words` */
	uint64_t target;       /* size in bytes */
	uint32_t strict, lazy; /* floors of attention and of routed experts; 0 for a size */
	/* Set by prediction: */
	bool predicted, fits;
	uint64_t bytes, gpu;                          /* size of the bundle; on the fullest GPU, with an envelope */
	int64_t margin;                               /* bytes that the limit leaves; 0 without a limit */
	double bits, paper;                           /* bits per weight: of the file; of units, as papers count them */
	double error;                                 /* mean relative squared error of units, weighted as for goals */
	double unweighted;                            /* the same by numbers of weights alone */
	uint32_t units, surveyed, missed;             /* to fit; of these, surveyed; below their floor */
	uint32_t stored[XFP_MODES][XFP_FP8_BITS + 1]; /* units by mode and bits per index */
	char digest[65];                              /* of the keys of packed units, if all are known; otherwise "" */
	uint64_t weights[XFP_CLASSES], size[XFP_CLASSES]; /* of units by class, and their bytes */
	struct xfp_walk_probe probe;
};

/* The limit, from the goal of the request, which decides nothing else. */
struct xfp_walk_limit {
	const struct xfp_goal *goal;
	uint64_t bytes; /* of the file, or on a GPU; 0: no limit */
};

struct xfp_walk {
	struct xfp_walk_point *point; /* allocated */
	uint32_t count;
	struct xfp_walk_limit limit;
	double source_repeats; /* of the source's continuations, in share of 4-grams; negative: unknown */
};
void xfp_walk_free(struct xfp_walk *walk);

/* The size that the limit applies to: measured if the bundle was built, otherwise predicted. */
uint64_t xfp_walk_cost(const struct xfp_walk *walk, const struct xfp_walk_point *point);

/* ---- predictions (predict.c) --------------------------------------------------------------------- */

/* The surveys of all units. */
struct xfp_walk_surveys {
	struct xfp_walk_survey {
		struct xfp_candidate *list; /* NULL: not surveyed */
		uint32_t count;
	} * unit; /* [ledger->unit_count] */
	uint32_t count;
};

/* Read the surveys; the units must be prepared for a dry run. The caller frees them even after a failure. */
enum xfp_status xfp_walk_surveys_read(struct xfp_conversion *c, struct xfp_walk_surveys *surveys,
				      struct xfp_error *err);
void xfp_walk_surveys_free(struct xfp_walk_surveys *surveys);

/* Predict the bundle of a point with other floors than the conversion's, from surveys. */
enum xfp_status xfp_walk_predict(struct xfp_conversion *c, const struct xfp_walk_surveys *surveys,
				 const struct xfp_walk *walk, struct xfp_walk_point *point, struct xfp_error *err);
/* Predict as xfp plan does: from measurements, if they exist, surveys or estimates. */
enum xfp_status xfp_walk_predict_prepared(struct xfp_conversion *c, const struct xfp_walk *walk,
					  struct xfp_walk_point *point, struct xfp_error *err);
/* Append a point for each size that xfp plan lists, and for the limit, predicted without floors. */
enum xfp_status xfp_walk_add_sizes(struct xfp_conversion *c, struct xfp_walk *walk, struct xfp_error *err);
/* Order points by the size that the limit applies to, the most aggressive first. */
void xfp_walk_sort(struct xfp_walk *walk);

/* ---- the search (boundary.c) --------------------------------------------------------------------- */

#define XFP_WALK_NONE UINT32_MAX

/* The points of interest; XFP_WALK_NONE: unknown, or none. */
struct xfp_walk_boundaries {
	uint32_t garbage; /* the last point that is garbage before the first that passed */
	uint32_t passed;  /* the first point that passed */
	uint32_t largest; /* the last point that fits */
	uint32_t next;    /* the point to probe next; XFP_WALK_NONE: both boundaries are known */
	uint32_t best;    /* the point to recommend */
};

/* Find the boundaries of points in ascending order. Without a limit every point fits, and the smallest that passed is
 * recommended; otherwise the best that passed. `probing`: whether points will be probed; if not, the largest that fits
 * is recommended. */
struct xfp_walk_boundaries xfp_walk_find_boundaries(const struct xfp_walk *walk, bool probing);
/* The point that is nearest to satisfying everything if none does: the smallest one if none fits, otherwise the largest
 * that fits. */
uint32_t xfp_walk_nearest(const struct xfp_walk *walk);

#endif
