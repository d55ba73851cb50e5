/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finish.h - from finished units to the bundle, the manifest's record of the run and the summary.
 */
#ifndef XFP_FINISH_H
#define XFP_FINISH_H

#include "conversion/state/conversion.h"

struct xfp_result {
	char sha256[65];
	uint64_t bytes;
	bool unchanged; /* the bundle was there already, of the same units */
	bool dropped;   /* --drop-cache: the artifacts are gone, */
	uint64_t freed; /* which made this much disk space free */
};

/* Whether OUT is the bundle of just these artifacts, written by an earlier run and untouched since: then `unchanged`,
 * `sha256` and `bytes` of *result say so. With --rehash OUT is read for that. */
enum xfp_status xfp_bundle_is_current(const struct xfp_conversion *c, struct xfp_result *result, struct xfp_error *err);

/* The same of one whose artifacts were dropped: judged by sources and settings, from which all else follows.
 * And making the stamp of a bundle that is current such a one. */
enum xfp_status xfp_bundle_is_alone(const struct xfp_conversion *c, struct xfp_result *result, struct xfp_error *err);
enum xfp_status xfp_bundle_stand_alone(const struct xfp_conversion *c, const struct xfp_result *result,
				       struct xfp_error *err);

/* Write it; XFP_DAMAGED when an artifact turned out to be. Its message, if any, is in the log and shown. */
int xfp_bundle_make(struct xfp_conversion *c, struct xfp_signals *signals, void (*tick)(void *context), void *context,
		    struct xfp_result *result, struct xfp_error *err);

/* Put the units that are done and not yet recorded into the manifest. False where that failed, now or before, which is
 * said once: the run then must not be ended there, or it would be an output's last one, and xfp cache gc would take
 * all that it used for unused. */
bool xfp_record_units(struct xfp_conversion *c);

/* What this run did, and which units are not as requested. */
struct xfp_run_tally {
	uint32_t units, repacked, fitted;
	uint32_t kept, nonfinite; /* at source precision for want of a candidate: below the floor, none at all */
	uint32_t missed;          /* below their floor: */
	uint32_t fixed, sampled;  /* with the bits that were asked for; with what met it by a sample; */
	uint32_t best;            /* with the best candidate */
	double seconds;           /* of stages, all together */
};

struct xfp_run_tally xfp_count_run(const struct xfp_conversion *c);

#endif
