/* SPDX-License-Identifier: Apache-2.0 */
/*
 * produce.h - create an artifact: begin under a temporary name, fill, label, publish.
 */
#ifndef XFP_PRODUCE_H
#define XFP_PRODUCE_H

#include "cache/key.h"
#include "cache/store.h"
#include "schemas/artifact.h"
#include "schemas/ledger.h"
#include "stages/work/stages.h"

struct xfp_production {
	const struct xfp_store *store;
	const struct xfp_key *key;
	enum xfp_stamp stamp; /* the step that makes it, which determines its kind */
	const char *unit;     /* the unit's name, for people */
	double started;       /* xfp_now() at the start, for people */
	/* The files that the key depends on: the artifact is published only if they are unchanged. NULL: none. */
	const struct xfp_ledger *ledger;
};

/* Writes the content of an artifact that was just created. */
typedef enum xfp_status xfp_fill_fn(void *own, struct xfp_artifact *artifact, struct xfp_error *err);

/* Create the artifact, fill it with `fill(own, ...)`, and publish it. On failure nothing is left. */
enum xfp_status xfp_produce(const struct xfp_production *production, xfp_fill_fn *fill, void *own,
			    struct xfp_error *err);

/* The `fill` of choices; `own` is the struct xfp_choice. */
xfp_fill_fn xfp_fill_choice;

#endif
