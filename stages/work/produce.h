/* SPDX-License-Identifier: Apache-2.0 */
/*
 * produce.h - how an artifact comes to be: begun under a name of its own, filled, labelled, published.
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
	enum xfp_stamp stamp; /* the step that makes it, which says of what kind it is */
	const char *unit;     /* its name, for people */
	double started;       /* xfp_now() when its making began, likewise */
	/* Whose files the key speaks of: they must still be those when it is published, or it is not. NULL: none. */
	const struct xfp_ledger *ledger;
};

/* Writes what is to be in an artifact that was just created. */
typedef enum xfp_status xfp_fill_fn(void *own, struct xfp_artifact *artifact, struct xfp_error *err);

/* Create the artifact, have it filled by `fill(own, ...)`, and publish it. Where any of that fails nothing is left. */
enum xfp_status xfp_produce(const struct xfp_production *production, xfp_fill_fn *fill, void *own,
			    struct xfp_error *err);

/* The `fill` of choices; `own` is the struct xfp_choice. */
xfp_fill_fn xfp_fill_choice;

#endif
