/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs.h - the parts of a report that come from other files: the output of `xfp eval --json`, `xfp compare --json`,
 * `xfp walk --json` and `xfp inspect --stats --json`, and the events of a work folder.
 *
 * The files are untrusted. XFP_BAD_INPUT: a file is not what it should be, or is about another model; the message has
 * the command that makes it. XFP_FAILED: it cannot be read.
 */
#ifndef XFP_REPORT_INPUTS_H
#define XFP_REPORT_INPUTS_H

#include "base/system/signals.h"
#include "conversion/measure/inspect_model.h"
#include "conversion/report/report.h"
#include "schemas/ledger.h"

/* xfp eval; INFINITY if a number is beyond double precision */
struct xfp_report_evaluation {
	uint64_t sequences, length, predicted;
	double loss, perplexity;
	bool compared; /* with its source: the members below are set */
	double source_loss, source_perplexity;
	double divergence, divergence_99, divergence_most; /* KL, in nats per token */
	double agreement;                                  /* share of tokens with the same top-1 */
	double embedding;                                  /* relative squared error after it */
	struct xfp_report_drift {
		double stream; /* relative squared error of the residual stream after the layer */
		double alone;  /* the same if only this layer is quantized: its input is the source's */
	} * layers;
	uint32_t layer_count;
};

/* One format of xfp compare, over all units or for one. */
struct xfp_report_way {
	char format[24]; /* "v2c", "fp8", "Q4_K" */
	uint32_t k, group, library;
	bool ours;
	double sigma; /* threshold of outliers; 0: none */
	double bits, cosine, error;
};

/* The gain of storing outliers in the units of a component, beyond XFP_REPORT_SIGMA standard deviations, in the format
 * that each unit has. */
#define XFP_REPORT_SIGMA 4.0
struct xfp_report_ablation {
	uint32_t part; /* in report->parts */
	uint32_t units;
	double without, with;       /* mean cosines */
	double mean_gain, max_gain; /* of cosines */
	double ratio_50, ratio_90;  /* squared error without / with: median and 90th percentile over units */
	double share;               /* of weights that are outliers, mean */
};

struct xfp_report_ablations {
	struct xfp_report_ablation *list; /* NULL: not measured */
	uint32_t count;
	uint32_t left_out;       /* units without these measurements */
	uint64_t rows, measured; /* of the units: all, and those measured */
};

struct xfp_report_comparison {
	struct xfp_report_way *ways; /* over all units; ours are the best threshold of each format and k */
	uint32_t count;
	struct xfp_report_ablations ablation; /* no list: the file has no single units */
};

/* A point of xfp walk: the bundle that its settings would give. */
enum xfp_report_verdict { XFP_REPORT_NOT_PROBED, XFP_REPORT_PASSED, XFP_REPORT_GARBAGE, XFP_REPORT_TOO_LARGE };
struct xfp_report_point {
	char *name, *options; /* options of xfp convert */
	enum xfp_report_verdict verdict;
	uint64_t bytes, gpu; /* built if it was, otherwise predicted; on the fullest GPU, with an envelope */
	double bits;         /* of the file per weight */
	double unit_bits;    /* of units, stored */
	double error;        /* predicted mean relative squared error of units, weighted as for goals */
	double unweighted;   /* the same, as xfp_report_error counts it */
	bool fits;
	double divergence, agreement, perplexity, score; /* NAN: not measured */
};

#define XFP_REPORT_NO_POINT UINT32_MAX
struct xfp_report_walk {
	struct xfp_report_point *points; /* ascending by size */
	uint32_t count, gpus;            /* 0 GPUs: the limit applies to the file */
	uint64_t limit;                  /* bytes; 0: none */
	bool probed, measured, scored;   /* some point was built and judged: by a text, by a command */
	/* Numbers of points, or XFP_REPORT_NO_POINT: the last garbage, the first that passed, the last that fits, the
	 * recommended one, and that of this bundle. */
	uint32_t garbage, passed, largest, recommended, chosen;
};
/* The size that the limit of a walk applies to. */
uint64_t xfp_report_walk_cost(const struct xfp_report_walk *walk, const struct xfp_report_point *point);

/* The weights of a role in the source, from xfp inspect --stats. A statistic is NaN if it is undefined. */
struct xfp_report_tail {
	char class_name[32], roles[64];
	uint64_t tensors, weights;
	double sigma, kurtosis, beyond_3, beyond_4, largest; /* struct xfp_distribution; shares of weights */
	double max;                                          /* largest magnitude */
};
struct xfp_report_tails {
	struct xfp_report_tail *list;
	uint32_t count;
};

/* The checkpoint that the bundle was made from. */
struct xfp_report_source {
	const char *given; /* borrowed */
	struct xfp_ledger *ledger;
	uint32_t *units;   /* [report->info.units] numbers of the ledger's units */
	uint32_t matrices; /* whose digests were compared */
};

/* The bits of stacks of experts, as all of their experts or samples of 4 and of 16 choose them. */
#define XFP_REPORT_SAMPLES 2
struct xfp_report_sampled {
	uint32_t part, units, experts;
	uint64_t weights, bytes; /* by all experts */
	struct {
		bool possible;            /* the stack has more experts */
		uint32_t same, few, many; /* units: the same bytes, fewer, more */
	} of[XFP_REPORT_SAMPLES];
};
struct xfp_report_samples {
	struct xfp_report_sampled *list;
	uint32_t count;
	uint32_t left_out; /* stacks without fits in the cache, or that no candidate is good enough for */
};

/* Time per stage. */
struct xfp_report_stage {
	char name[32];
	uint32_t made, hits;
	double seconds, longest;
};
#define XFP_REPORT_STAGES 16
struct xfp_report_times {
	struct xfp_report_stage stages[XFP_REPORT_STAGES];
	uint32_t count;
	double seconds;
};

enum xfp_status xfp_report_read_evaluation(const char *path, const struct xfp_report *report,
					   struct xfp_report_evaluation *evaluation, struct xfp_error *err);
void xfp_report_evaluation_free(struct xfp_report_evaluation *evaluation);

enum xfp_status xfp_report_read_comparison(const char *path, const struct xfp_report *report,
					   struct xfp_report_comparison *comparison, struct xfp_error *err);
void xfp_report_comparison_free(struct xfp_report_comparison *comparison);

enum xfp_status xfp_report_read_walk(const char *path, const struct xfp_report *report, struct xfp_report_walk *walk,
				     struct xfp_error *err);
void xfp_report_walk_free(struct xfp_report_walk *walk);

enum xfp_status xfp_report_read_tails(const char *path, const struct xfp_report *report, struct xfp_report_tails *tails,
				      struct xfp_error *err);
void xfp_report_tails_free(struct xfp_report_tails *tails);

/* Inspect the source with the bundle's settings, and compare the digests of its weights with those that the bundle
 * records. XFP_FAILED also if one of `signals` (NULL: none) has arrived. The caller frees the source, also after a
 * failure. */
enum xfp_status xfp_report_read_source(const char *program, const char *given, const struct xfp_report *report,
				       struct xfp_signals *signals, struct xfp_notify notify,
				       struct xfp_report_source *source, struct xfp_error *err);
void xfp_report_source_free(struct xfp_report_source *source);

/* Measure the gain of outliers in every unit, on some of its rows. */
enum xfp_status xfp_report_ablate(const struct xfp_report *report, const struct xfp_report_source *source,
				  struct xfp_signals *signals, struct xfp_report_ablations *sums,
				  struct xfp_error *err);
void xfp_report_ablations_free(struct xfp_report_ablations *sums);

/* Read the fits in the cache that the stamps of the work folder name, which must have made this bundle. */
enum xfp_status xfp_report_read_samples(const char *cache, const char *work, const struct xfp_report *report,
					struct xfp_report_samples *samples, struct xfp_error *err);
void xfp_report_samples_free(struct xfp_report_samples *samples);

/* XFP_BAD_INPUT also if the folder did not make this bundle. */
enum xfp_status xfp_report_read_times(const char *work, const struct xfp_report *report, struct xfp_report_times *times,
				      struct xfp_error *err);

/* ---- private to the folder ----------------------------------------------------------------------- */

/* The measurements of one unit, without and with outliers. */
struct xfp_report_pair {
	uint32_t part;
	double without, with, ratio, share; /* as in struct xfp_report_ablation */
};
/* Sort the pairs and sum them up by component. */
enum xfp_status xfp_report_sum_pairs(struct xfp_report_pair *pairs, uint32_t count, struct xfp_report_ablations *sums,
				     struct xfp_error *err);

#endif
