/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_state.h - reads the progress of a run from its work folder.
 *
 * Reads the run record, the lock, the ledger, the names of the stamps and the events. Nothing is written, and the run
 * is not disturbed. Whether the run is alive is decided by the lock alone, which make and every stage hold as well: a
 * process ID may have been reused.
 */
#ifndef XFP_RUN_STATE_H
#define XFP_RUN_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"
#include "schemas/layout/classes.h"
#include "schemas/ledger.h"
#include "stages/work/events.h"
#include "stages/work/run_record.h"
#include "stages/work/work.h"

struct xfp_unit_progress {
	bool packed;               /* finished */
	bool noted;                /* its struct xfp_fit_note was counted */
	double fresh, cached;      /* finished shares of its work */
	char running[32];          /* the running stage; "": none */
	double inside;             /* finished share of that stage */
	struct xfp_event *failure; /* NULL: none */
};

struct xfp_run_state {
	char *work;                   /* absolute */
	struct xfp_run_record record; /* all zero if there is no record */
	bool locked;                  /* a process of the run is alive */
	const char *state;            /* "running", "finished", "failed", "interrupted", "prepared" */
	struct xfp_ledger *ledger;    /* NULL: not yet */
	uint32_t modes;               /* of the conversion; 0: not yet */
	struct xfp_unit_progress *units;
	uint32_t layers;            /* steps of the calibration; 0: none, or not yet */
	uint32_t *layer_of;         /* the layer of each unit, UINT32_MAX: none; NULL: not yet */
	uint32_t layers_done;       /* up to the last whose inputs exist or have been used */
	uint32_t unreached, zero;   /* matrices of units fitted in this run: struct xfp_fit_note */
	uint32_t layer;             /* the one whose stage is running, plus 1; 0: none */
	double layer_share;         /* finished share of that stage */
	struct xfp_event *failure;  /* failure of a layer, or of a step of the whole run; NULL: none */
	struct xfp_event *verified; /* last verification of the bundle (verified.h); NULL: none since the run began */
	uint32_t done, done_fresh, in_flight, failures;
	uint32_t class_units[XFP_CLASSES], class_done[XFP_CLASSES];
	uint64_t class_weights[XFP_CLASSES], class_weights_done[XFP_CLASSES];
	double weights, cached, fresh; /* over all units */
	double guessed;                /* part of `fresh` from unfinished units, an estimate */
	double bundled; /* written share of the bundle, 0 to 1, while it is being written; 0: not reported */
	double seconds; /* duration of the run so far */
	double working; /* seconds during which stages ran */

	/* Position in the files, to continue reading. */
	struct xfp_identity ledger_identity;
	struct xfp_events_reader events;
};

/* Whether `folder` is a conversion's work folder. */
bool xfp_is_work_folder(const char *folder);
/* The work folder of OUT in a new string; OUT may also be that folder itself, as completed by a shell. XFP_BAD_INPUT:
 * it does not exist; `remedy` completes the message. */
enum xfp_status xfp_work_folder_of(const char *out, const char *remedy, char **work, struct xfp_error *err);

/* Read the state. `state` must be zeroed or filled by an earlier call for the same folder; only new data is read then.
 * Returns XFP_BAD_INPUT if the folder is not a work folder or its ledger is damaged. */
enum xfp_status xfp_run_state_read(const char *work, struct xfp_run_state *state, struct xfp_error *err);
void xfp_run_state_free(struct xfp_run_state *state);

#endif
