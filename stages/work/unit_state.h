/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit_state.h - how far a unit is: which artifacts are the current ones, and whether they are there.
 */
#ifndef XFP_UNIT_STATE_H
#define XFP_UNIT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "schemas/choice.h"
#include "stages/work/work.h"

struct xfp_unit_state {
	bool known;             /* the digests of all its matrices are known */
	bool done;              /* packed as it should be, and the artifact is in the store */
	bool decided;           /* `choice` says how */
	bool unmet;             /* no candidate meets its floor, and that is a failure */
	bool nonfinite;         /* NaN or infinity: no candidate at all */
	bool receipt;           /* a receipt says what it came to, or would if its artifacts went */
	bool moved;             /* that is all there is, but for its parts in the pending bundle */
	bool stays;             /* runs into other outputs used its packed artifact: --drop-cache leaves it */
	bool recorded;          /* in the manifest, as part of this run */
	uint32_t fits;          /* bit F: its choice waits for that one of enum xfp_fit_kind; 0: its survey will tell */
	uint32_t there;         /* bit S: the current artifact of stamp S is in the store */
	uint32_t made;          /* bit S: it was made in this run */
	double seconds;         /* that fresh work took */
	double progress;        /* share of its work that is over, for the progress bar */
	bool working;           /* a stage is at work on it, for the bar too: */
	enum xfp_stamp at_work; /* its step */
	uint8_t (*source)[16];  /* [experts] */
	char key[XFP_STAMPS][33]; /* of the current artifacts, "" when not known */
	struct xfp_choice choice;
	bool expected; /* as long as it is not decided: `candidate` is what its survey, or a goal, lets expect */
	struct xfp_candidate candidate;
};

/* What is to be converted, and how far it is: all that estimates need to know. Borrowed. */
struct xfp_extent {
	const struct xfp_parameters *parameters;
	const struct xfp_ledger *ledger;
	const struct xfp_unit_state *units; /* [ledger->unit_count]; NULL: nothing is known of them yet */
	uint32_t todo;                      /* units that are not done */
	unsigned dropping; /* with so many jobs, artifacts go as soon as nothing needs them; 0: they stay */
};

#endif
