/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_state.h - how far the run of a work folder is, as the folder itself shows it.
 *
 * Read are the record of the run, the lock, the ledger, the names of the stamps and the events; nothing
 * is written, and the run takes no notice. Whether it lives is judged by the lock alone, which make and
 * every stage hold too: a process number may be anybody's by now.
 */
#ifndef XFP_RUN_STATE_H
#define XFP_RUN_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"
#include "schemas/layout/classes.h"
#include "schemas/ledger.h"
#include "stages/work/run_record.h"
#include "stages/work/work.h"

struct xfp_unit_progress {
	bool packed;               /* finished */
	double fresh, cached;      /* shares of its work that are over */
	char running[32];          /* the stage that is at work on it, "" when none is */
	double inside;             /* what that has done of its own work */
	struct xfp_event *failure; /* NULL: none */
};

struct xfp_run_state {
	char *work;                   /* absolute */
	struct xfp_run_record record; /* all zero when there is none */
	bool locked;                  /* somebody is at work */
	const char *state;            /* "running", "finished", "failed", "interrupted", "prepared" */
	struct xfp_ledger *ledger;    /* NULL: not yet */
	uint32_t modes;               /* of the conversion; 0: not yet */
	struct xfp_unit_progress *units;
	struct xfp_event *failure;  /* of a step of the whole run; NULL: none */
	struct xfp_event *verified; /* the last time that the bundle was: verified.h; NULL: not since the run began */
	uint32_t done, done_fresh, in_flight, failures;
	uint32_t class_units[XFP_CLASSES], class_done[XFP_CLASSES];
	uint64_t class_weights[XFP_CLASSES], class_weights_done[XFP_CLASSES];
	double weights, cached, fresh; /* over all units */
	double guessed;                /* of `fresh`, of units that are not done */
	double bundled;                /* what is written of the bundle, from 0 to 1, while it is; 0: it has not said */
	double seconds;                /* the run has lasted, or did */
	double working;                /* seconds of it that stages ran */

	/* What was read before, to read on from there. */
	struct xfp_identity ledger_identity, events_identity;
	uint64_t events_read;
};

/* Whether `folder` is a conversion's work folder. */
bool xfp_is_work_folder(const char *folder);

/* `state` is zero, or what an earlier call for the same folder left; only what is new is read then.
 * XFP_BAD_INPUT when it is no work folder, or its ledger is damaged. */
enum xfp_status xfp_run_state_read(const char *work, struct xfp_run_state *state, struct xfp_error *err);
void xfp_run_state_free(struct xfp_run_state *state);

#endif
