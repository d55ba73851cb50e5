/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit_state.h - the state of a unit: which of its artifacts are current, and whether they exist.
 */
#ifndef XFP_UNIT_STATE_H
#define XFP_UNIT_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "schemas/choice.h"
#include "stages/work/work.h"

struct xfp_unit_state {
	bool known;               /* the digests of all its matrices are known */
	bool done;                /* the current packed artifact is in the store */
	bool decided;             /* `choice` is valid */
	bool unmet;               /* no candidate meets its floor, and that is an error */
	bool nonfinite;           /* NaN or infinity: no candidate at all */
	bool receipt;             /* a receipt describes it, or will when its artifacts are removed */
	bool moved;               /* only the receipt and its parts in the pending bundle exist */
	bool stays;               /* used by runs into other outputs: --drop-cache keeps its packed artifact */
	bool recorded;            /* recorded in the manifest, as part of this run */
	uint32_t fits;            /* bit F: its choice depends on enum xfp_fit_kind F; 0: the survey decides */
	uint32_t in_store;        /* bit S: the current artifact of stamp S is in the store */
	uint32_t made;            /* bit S: it was made in this run */
	bool noted;               /* its struct xfp_fit_note was reported in this run */
	double seconds;           /* time spent on it in this run */
	double progress;          /* finished share of its work, for the progress bar */
	bool working;             /* a stage is running for it, for the progress bar: */
	enum xfp_stamp at_work;   /* its step */
	uint8_t (*source)[16];    /* [experts] */
	char key[XFP_STAMPS][33]; /* keys of the current artifacts; "" if unknown */
	struct xfp_choice choice;
	bool expected; /* until it is decided: `candidate` is what its survey, or a goal, predicts */
	struct xfp_candidate candidate;
};

#define XFP_NO_LAYER UINT32_MAX

/* The input of estimates: the units of a conversion, and their state. Borrowed. */
struct xfp_estimate_input {
	const struct xfp_parameters *parameters;
	const struct xfp_ledger *ledger;
	const struct xfp_unit_state *units; /* [ledger->unit_count]; NULL: no state is known yet */
	uint32_t todo;                      /* units that are not done */
	unsigned dropping; /* with this many jobs, artifacts are removed as soon as nothing needs them; 0: kept */
	const uint32_t *layer_of; /* [ledger->unit_count] layer whose inputs a unit has, or XFP_NO_LAYER; NULL: none */
	const uint64_t *inputs;   /* [layers] bytes of the inputs of each layer that must be computed */
	uint32_t layers;
	bool inputs_stay; /* inputs of all layers exist at the end, otherwise those of two at a time */
	uint64_t layer;   /* memory of the stage of a layer; 0: no layer must be computed */
};

#endif
