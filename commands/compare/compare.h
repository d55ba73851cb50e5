/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - xfp compare: every way to store a unit, ours and common formats, with bits and error.
 *
 * compare.c runs the comparison, options.c parses the command line, measure.c and by_peers.c measure the rows of one
 * unit, sum.c adds up units and finds the better candidates, answer.c picks the best setting for a size; table.c,
 * data.c (CSV, JSON) and plot.c (SVG) print the results.
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

/* ---- request ----------------------------------------------------------------------------------- */

struct xfp_compare_request {
	char *model;        /* a path */
	const char *given;  /* as given on the command line */
	const char *family; /* NULL: detected by inspect */
	char *const *patterns;
	uint32_t pattern_count;
	struct xfp_parameters parameters; /* parameters of the fits, in all modes */
	struct xfp_thresholds thresholds; /* "none" first, then descending */
	bool refined, published;          /* which libraries of v2a */
	uint64_t rows;                    /* per unit; 0: default, UINT64_MAX: all */
	const char *plot;                 /* NULL: none */
	bool json, csv, per_unit;
	bool quiet;   /* no progress on stderr */
	bool printed; /* --help or --version was printed; exit now */
};

/* Parse the command line. argv[0] is the program name in messages. Errors are XFP_USAGE. The request borrows from
 * argv. */
enum xfp_status xfp_compare_parse(int argc, char **argv, struct xfp_compare_request *request, struct xfp_error *err);
void xfp_compare_request_free(struct xfp_compare_request *request);

/* ---- results ----------------------------------------------------------------------------------- */

/* One way to store a unit or, in the summary, all units: then bytes and outliers are sums, the error is over all
 * weights, and cosines are means. */
struct xfp_compared {
	const struct xfp_peer *peer;    /* NULL: one of ours, described by `candidate` */
	bool published;                 /* v2a as published by its authors */
	struct xfp_candidate candidate; /* for peers bytes, cosines, error; cos_median -1: excluded */
	uint64_t shared;                /* bytes of row scales, balance and library */
};

struct xfp_compared_unit {
	const struct xfp_ledger_unit *unit; /* borrowed; NULL: all units */
	uint64_t weights, rows, sampled;    /* rows in total, and rows measured */
	double norm;                        /* squared norm of all weights, estimated from the sample */
	struct xfp_compared *list;          /* sorted by xfp_compared_order; peers last */
	uint32_t count;
};

struct xfp_comparison {
	struct xfp_compare_request request;
	struct xfp_ledger *ledger;
	struct xfp_compared_unit *units;
	uint32_t count, left_out; /* units measured; units left out for NaN or infinity */
	struct xfp_compared_unit all;
};

/* ---- measuring --------------------------------------------------------------------------------- */

/* Measure one unit. If NaN and infinity are tolerated, a unit that has them gets an empty list. XFP_FAILED on an
 * interrupt. */
enum xfp_status xfp_compare_unit(const struct xfp_ledger *ledger, const struct xfp_ledger_unit *unit,
				 const struct xfp_compare_request *request, struct xfp_signals *signals,
				 struct xfp_compared_unit *compared, struct xfp_error *err);
/* Measure the XFP_PEERS common formats on the rows of a survey, and estimate the unit's squared norm from these rows.
 * `tile`: the largest magnitude of each of its tiles (scan.h). */
enum xfp_status xfp_compare_peers(const struct xfp_ledger_unit *unit, const struct xfp_survey *survey,
				  const float *tile, struct xfp_signals *signals, struct xfp_compared list[XFP_PEERS],
				  double *norm, struct xfp_error *err);

/* ---- sums and claims --------------------------------------------------------------------------- */

double xfp_compared_bits(const struct xfp_compared_unit *unit, const struct xfp_compared *compared);
/* "v2c, 16", "v2a published", "Q4_K" */
const char *xfp_compared_mode(const struct xfp_compared *compared, char text[32]);
/* The same with all parameters: "v2c, 16, k 3, 4.0 sigma" */
const char *xfp_compared_name(const struct xfp_compared *compared, char text[64]);
/* Order by mode, group, k and threshold; for qsort. */
int xfp_compared_order(const void *a, const void *b);

/* Returns the end of the run of entries starting at `first` that differ only in threshold (with `mode`, also in k). */
uint32_t xfp_compared_run_end(const struct xfp_compared_unit *unit, uint32_t first, bool mode);
/* The entry of a run with the least error for its bits; one more bit must reduce the error to a quarter. */
const struct xfp_compared *xfp_compared_best(const struct xfp_compared_unit *unit, uint32_t first, uint32_t end);

/* Fill in comparison->all, which is freed with the units. */
enum xfp_status xfp_compare_sum(struct xfp_comparison *comparison, struct xfp_error *err);

/* For one common format (or published v2a): our candidate with the least error at no more bytes. */
struct xfp_claim_on {
	const struct xfp_compared *peer, *ours; /* ours NULL: none is as small */
	bool allowed;                           /* row scales, balance and library not counted */
	double ratio;                           /* squared error, ours over the peer's */
	/* Over all units, with the best candidate chosen per unit: */
	double each; /* ratio of the sums; negative: some unit has none as small */
	double worst;
	uint32_t worst_unit;
};
#define XFP_MAX_CLAIMS (XFP_PEERS + 5)
/* Returns the number of claims. `comparison` NULL: for that unit alone; `each` and `worst` are not set. */
uint32_t xfp_compare_claims(const struct xfp_comparison *comparison, const struct xfp_compared_unit *unit,
			    struct xfp_claim_on claims[XFP_MAX_CLAIMS]);

/* The setting with the least error within a number of bits, and llama.cpp types to compare with. All borrowed; NULL if
 * none. */
struct xfp_compare_answer {
	double bits;
	const struct xfp_compared *ours;
	const struct xfp_compared *replaces; /* least error among types with no fewer bits and no less error */
	const struct xfp_compared *cheapest; /* fewest bits among types with no more error */
};
#define XFP_ANSWERS 7
void xfp_compare_answers(const struct xfp_compared_unit *unit, struct xfp_compare_answer answers[XFP_ANSWERS]);

/* ---- output ------------------------------------------------------------------------------------ */

void xfp_compare_print(const struct xfp_comparison *comparison);
enum xfp_status xfp_compare_print_csv(const struct xfp_comparison *comparison, struct xfp_error *err);
enum xfp_status xfp_compare_print_json(const struct xfp_comparison *comparison, struct xfp_error *err);
enum xfp_status xfp_compare_plot(const struct xfp_comparison *comparison, const char *path, struct xfp_error *err);

#endif
