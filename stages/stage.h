/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.h - the frame that every stage runs in: options, inputs, what it makes, events, messages.
 */
#ifndef XFP_STAGE_H
#define XFP_STAGE_H

#include "schemas/policy.h"
#include "stages/work/produce.h"
#include "stages/work/pulse.h"
#include "stages/work/work.h"

struct xfp_job {
	const char *work;
	struct xfp_store store;
	struct xfp_parameters parameters; /* `bits` are those that this unit's fits measure */
	struct xfp_policy policy;         /* what they say of the unit */
	struct xfp_ledger *ledger;        /* of this unit only */
	const struct xfp_ledger_unit *unit;
	uint32_t number;
	bool aimed;                       /* the parameters are narrowed by the unit's survey, */
	struct xfp_assignment assignment; /* or by what a goal was solved to */
	bool extended;                    /* --extended (lloyd-fit, libfit) */
	double started;                   /* monotonic seconds */
	struct xfp_pulse pulse;
	struct xfp_event event; /* outcome and key are filled in as the artifact is made or found */
};

/* What a stage works on that works on all units. */
struct xfp_whole_job {
	const char *work, *cache, *path;
	const char *expected; /* --expect, or NULL */
	bool move;            /* --move */
};

struct xfp_stage {
	const char *summary; /* one sentence for --help */
	/* For a unit: the step that it is; where the stage has an extended one, it takes --extended. */
	enum xfp_stamp step;
	enum xfp_status (*run)(struct xfp_job *job, struct xfp_error *err);
	/* For all units at once, into a file (xfp-bundle), where `run` is NULL. */
	enum xfp_status (*run_all)(const struct xfp_whole_job *whole, char told[65], struct xfp_error *err);
};

/* Parse the common options (--work, --cache, --help, --version), open everything, run, record the
 * event, report a failure as "program: unit NAME: message". Returns the exit status. */
int xfp_stage_main(int argc, char **argv, const struct xfp_stage *stage);

/* Open the artifact that an earlier stage's stamp names. A damaged one is removed with its stamp and
 * those after it, and the status is XFP_DAMAGED; so is a stamp without an artifact. One that cannot be
 * opened or read is XFP_FAILED, and stays. */
enum xfp_status xfp_job_open(struct xfp_job *job, enum xfp_stamp stamp, struct xfp_artifact *artifact, char key[33],
			     struct xfp_error *err);

/* The same by a key that another artifact names; `stamp` is the one that goes when it is damaged. */
enum xfp_status xfp_job_open_key(struct xfp_job *job, enum xfp_stamp stamp, const char *key,
				 struct xfp_artifact *artifact, struct xfp_error *err);
enum xfp_status xfp_stamped_open(const struct xfp_store *store, const char *work, uint32_t unit, enum xfp_stamp stamp,
				 const char *key, struct xfp_artifact *artifact, struct xfp_error *err);

/* Have the artifact of `key`: it is there and sound, or it is made (produce.h). One that is damaged is made again; one
 * that cannot be opened or read is XFP_FAILED, and neither removed nor made again. Sets the event's key and outcome
 * ("hit" or "made"). */
enum xfp_status xfp_job_make(struct xfp_job *job, enum xfp_stamp stamp, const struct xfp_key *key, xfp_fill_fn *fill,
			     void *own, struct xfp_error *err);

/* The stamp of a step once its artifact is there: made, or found after the weights were read for its key. Either way,
 * where the step reads weights, the files must still be those that were inspected, or the stamp would speak of
 * others. */
enum xfp_status xfp_job_stamp(const struct xfp_job *job, enum xfp_stamp stamp, const char *key, struct xfp_error *err);

#endif
