/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finish.h - the end of a run: writes the bundle, records the run in the manifest and counts results.
 */
#ifndef XFP_FINISH_H
#define XFP_FINISH_H

#include "conversion/state/conversion.h"

struct xfp_result {
	char sha256[65];
	uint64_t bytes;
	bool unchanged; /* the bundle existed already, with the same units */
	bool dropped;   /* --drop-cache removed the artifacts */
	uint64_t freed; /* bytes of disk space freed by that */
};

/* Check whether OUT is the bundle of exactly these artifacts, written by an earlier run and unmodified: sets
 * `unchanged`, `sha256` and `bytes` of *result. With --rehash, OUT is read completely. */
enum xfp_status xfp_bundle_is_current(const struct xfp_conversion *c, struct xfp_result *result, struct xfp_error *err);

/* The same for a bundle whose artifacts were dropped: compares sources and settings, which determine everything else.
 * xfp_bundle_make_standalone converts the stamp of a current bundle to this kind. */
enum xfp_status xfp_bundle_is_standalone(const struct xfp_conversion *c, struct xfp_result *result,
					 struct xfp_error *err);
enum xfp_status xfp_bundle_make_standalone(const struct xfp_conversion *c, const struct xfp_result *result,
					   struct xfp_error *err);

/* Write the bundle. Returns XFP_DAMAGED if an artifact is damaged. Messages of xfp-bundle are logged and shown. */
int xfp_bundle_make(struct xfp_conversion *c, void (*tick)(void *context), void *context, struct xfp_result *result,
		    struct xfp_error *err);

/* Record completed units in the manifest. Returns false if this fails now or failed before, with one notice. The caller
 * must then not end the run in the manifest: it would count as the last run of the output, and xfp cache gc would treat
 * all artifacts that it used as unused. */
bool xfp_record_units(struct xfp_conversion *c);

/* Counts of this run, and of units whose result differs from the request. */
struct xfp_run_tally {
	uint32_t units, repacked, fitted;
	uint32_t kept, nonfinite; /* at source precision without a candidate: below the floor; not finite */
	uint32_t missed;          /* below their floor */
	uint32_t fixed, sampled;  /* of these, with the requested bits; with a candidate that met it in the sample */
	uint32_t best;            /* of these, with the best candidate */
	double seconds;           /* total of all stages */
};

struct xfp_run_tally xfp_count_run(const struct xfp_conversion *c);

#endif
