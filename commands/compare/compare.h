/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - what xfp compare finds out: every way to store a unit, ours and those that people know, with bits and
 * error.
 *
 * compare.c runs it, options.c is told what to do, measure.c and by_peers.c look at one unit's
 * rows, sum.c adds units up and says who wins, answer.c picks the best setting for a size; table.c, data.c (CSV, JSON)
 * and plot.c (SVG) show it.
 */
#ifndef XFP_COMPARE_H
#define XFP_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/system/signals.h"
#include "kernels/peers/peers.h"
#include "schemas/fit.h"
#include "schemas/ledger.h"
#include "schemas/parameters.h"
#include "stages/quantize/survey.h"

/* ---- what is asked ----------------------------------------------------------------------------- */

struct xfp_compare_request {
	char *model;        /* a path */
	const char *given;  /* as the command line calls it */
	const char *family; /* NULL: inspect finds it */
	char *const *patterns;
	uint32_t pattern_count;
	struct xfp_parameters parameters; /* as the fits see them, in all modes */
	struct xfp_thresholds thresholds; /* none first, then falling */
	bool refined, published;          /* libraries of v2a */
	uint64_t rows;                    /* of a unit, 0: usual; UINT64_MAX: all */
	const char *plot;                 /* NULL: none */
	bool json, csv, per_unit;
	bool quiet; /* what is begun, and how far it is, are not told */
	bool told;  /* --help or --version was asked for and printed, and nothing else looked at */
};

/* argv[0] is the name for messages. What is wrong is XFP_USAGE. The request borrows from argv. */
enum xfp_status xfp_compare_parse(int argc, char **argv, struct xfp_compare_request *request, struct xfp_error *err);
void xfp_compare_request_free(struct xfp_compare_request *request);

/* ---- what is found ----------------------------------------------------------------------------- */

/* One way to store a unit, or all units together: of those bytes and outliers are added up, the error is that of
 * all weights, and cosines are means. */
struct xfp_compared {
	const struct xfp_peer *peer;    /* NULL: ours, and `candidate` says which */
	bool published;                 /* v2a as its authors published it */
	struct xfp_candidate candidate; /* of peers bytes, cosines and error only; cos_median -1: not to be chosen */
	uint64_t shared;                /* bytes of row scales, balance and library */
};

struct xfp_compared_unit {
	const struct xfp_ledger_unit *unit; /* borrowed; NULL: all of them */
	uint64_t weights, rows, sampled;    /* rows that there are, and that were looked at */
	double norm;                        /* sum of squares of all weights, as the sample tells it */
	struct xfp_compared *list;          /* as xfp_compared_order has them; peers last */
	uint32_t count;
};

struct xfp_comparison {
	struct xfp_compare_request request;
	struct xfp_ledger *ledger;
	struct xfp_compared_unit *units;
	uint32_t count, left_out; /* units that were measured; with weights that are no numbers */
	struct xfp_compared_unit all;
};

/* ---- measuring --------------------------------------------------------------------------------- */

/* Everything of one unit. A unit whose weights are no numbers, where those are not to fail, has an empty list. An
 * interrupt is XFP_FAILED. */
enum xfp_status xfp_compare_unit(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit,
				 const struct xfp_compare_request *request, struct xfp_signals *signals,
				 struct xfp_compared_unit *compared, struct xfp_error *err);
/* The peers alone, on the rows of a survey: XFP_PEERS of them, and the unit's squared norm as those rows tell it.
 * `tile`: the largest magnitudes of all its tiles (scan.h). */
enum xfp_status xfp_compare_peers(const struct xfp_ledger_unit *unit, const struct xfp_survey *survey,
				  const float *tile, struct xfp_signals *signals, struct xfp_compared list[XFP_PEERS],
				  double *norm, struct xfp_error *err);

/* ---- sums and who wins ------------------------------------------------------------------------- */

double xfp_compared_bits(const struct xfp_compared_unit *unit, const struct xfp_compared *compared);
/* "v2c, 16", "v2a published", "Q4_K" */
const char *xfp_compared_mode(const struct xfp_compared *compared, char text[32]);
/* The same with all that tells it from the others: "v2c, 16, k 3, 4.0 sigma" */
const char *xfp_compared_name(const struct xfp_compared *compared, char text[64]);
/* By mode, group, k and threshold; for qsort. */
int xfp_compared_order(const void *a, const void *b);

/* The end of the stretch that begins at `first` of what differs in its threshold alone (in k too, with `mode`). */
uint32_t xfp_compared_stretch(const struct xfp_compared_unit *unit, uint32_t first, bool mode);
/* Of a stretch, what has the least error for its bits: a bit more is worth a quarter of the error. */
const struct xfp_compared *xfp_compared_best(const struct xfp_compared_unit *unit, uint32_t first, uint32_t end);

/* Fills in comparison->all, to be freed with the units. */
enum xfp_status xfp_compare_sum(struct xfp_comparison *comparison, struct xfp_error *err);

/* Of a common format, published v2a among them: what of ours has the least error at no more bytes. */
struct xfp_claim_on {
	const struct xfp_compared *peer, *ours; /* ours NULL: nothing is as small */
	bool allowed;                           /* row scales, balance and library are not counted */
	double ratio;                           /* of the squared errors, ours to the peer's */
	/* Of all units, where each takes what is best for it: */
	double each; /* ratio of the sums; negative: some unit has nothing as small */
	double worst;
	uint32_t worst_unit;
};
#define XFP_MOST_CLAIMS (XFP_PEERS + 5)
/* How many there are. `comparison` NULL: of that unit alone, `each` and `worst` are not told. */
uint32_t xfp_compare_claims(const struct xfp_comparison *comparison, const struct xfp_compared_unit *unit,
			    struct xfp_claim_on claims[XFP_MOST_CLAIMS]);

/* The setting of least error within some bits per weight, and types of llama.cpp; all borrowed, NULL: none. */
struct xfp_compare_answer {
	double bits;
	const struct xfp_compared *ours;
	const struct xfp_compared *replaces; /* least error of those with no fewer bits and no less error than ours */
	const struct xfp_compared *cheapest; /* fewest bits of those with no more error than ours */
};
#define XFP_ANSWERS 7
void xfp_compare_answers(const struct xfp_compared_unit *unit, struct xfp_compare_answer answers[XFP_ANSWERS]);

/* ---- output ------------------------------------------------------------------------------------ */

void xfp_compare_print(const struct xfp_comparison *comparison);
void xfp_compare_print_csv(const struct xfp_comparison *comparison);
enum xfp_status xfp_compare_print_json(const struct xfp_comparison *comparison, struct xfp_error *err);
enum xfp_status xfp_compare_plot(const struct xfp_comparison *comparison, const char *path, struct xfp_error *err);

#endif
