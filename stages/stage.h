/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage.h - the common code of all stages: options, inputs, output, events, messages.
 */
#ifndef XFP_STAGE_H
#define XFP_STAGE_H

#include "base/system/command_line.h"
#include "schemas/policy.h"
#include "stages/work/events.h"
#include "stages/work/produce.h"
#include "stages/work/stage_progress.h"
#include "stages/work/work.h"

struct xfp_job {
	const char *work;
	struct xfp_store store;
	struct xfp_parameters parameters; /* `bits` are those that this unit's fits measure */
	struct xfp_policy policy;         /* the unit's policy, from the parameters */
	struct xfp_ledger *ledger;        /* ledger of this unit only */
	const struct xfp_ledger_unit *unit;
	uint32_t number;                  /* or XFP_LAYER | n; `unit` is NULL then, and `ledger` the whole ledger */
	bool narrowed;                    /* the parameters are narrowed by the unit's survey, */
	struct xfp_assignment assignment; /* or by the assignment of a goal */
	bool extended;                    /* --extended (lloyd-fit, libfit) */
	void *own;                        /* the stage's */
	double started;                   /* monotonic seconds */
	struct xfp_stage_progress progress;
	struct xfp_event event; /* outcome and key are set when the artifact is made or found */
};

/* The input of a stage that processes all units at once. */
struct xfp_all_units_job {
	const char *work, *cache, *path;
	const char *expected; /* --expect, or NULL */
	bool move;            /* --move */
};

struct xfp_stage {
	const char *summary; /* one sentence for --help */
	/* Options of its own besides the common ones, ended by one without a name, and their usage; NULL: none. */
	const struct xfp_option *options;
	const char *usage;
	void *own; /* the job's */
	/* What the executable does instead of its step if an option says so; `run` NULL: nothing else. */
	struct {
		const bool *chosen; /* set by the option */
		const char *usage, *operand;
		enum xfp_status (*run)(void *own, const char *work, const char *operand, struct xfp_error *err);
	} apart;
	/* For a stage of units or layers: its step; a stage with an extended step accepts --extended. */
	enum xfp_stamp step;
	enum xfp_status (*run)(struct xfp_job *job, struct xfp_error *err);
	/* For a stage of all units that writes one file (xfp-bundle); `run` is NULL. */
	enum xfp_status (*run_all)(const struct xfp_all_units_job *whole, char told[65], struct xfp_error *err);
};

/* Run a stage's main(): parse the common options (--work, --cache, --help, --version), open everything, run, record the
 * event, report a failure as "program: unit NAME: message". Returns the exit status. */
int xfp_stage_main(int argc, char **argv, const struct xfp_stage *stage);

/* Open the artifact that an earlier stage's stamp names. XFP_DAMAGED: it is damaged, and was removed with its stamp and
 * later ones; or the stamp has no artifact. XFP_FAILED: it cannot be opened or read; it was not removed. */
enum xfp_status xfp_job_open(struct xfp_job *job, enum xfp_stamp stamp, struct xfp_artifact *artifact, char key[33],
			     struct xfp_error *err);

/* xfp_job_open for a key that another artifact names; `stamp` is removed if the artifact is damaged. */
enum xfp_status xfp_job_open_key(struct xfp_job *job, enum xfp_stamp stamp, const char *key,
				 struct xfp_artifact *artifact, struct xfp_error *err);
enum xfp_status xfp_stamped_open(const struct xfp_store *store, const char *work, uint32_t unit, enum xfp_stamp stamp,
				 const char *key, struct xfp_artifact *artifact, struct xfp_error *err);

/* Make sure that the artifact of `key` exists and is sound, or make it (produce.h). A damaged one is made again.
 * XFP_FAILED: it cannot be opened or read; it is neither removed nor made again. Sets the event's key and outcome
 * ("hit" or "made"). */
enum xfp_status xfp_job_make(struct xfp_job *job, enum xfp_stamp stamp, const struct xfp_key *key, xfp_fill_fn *fill,
			     void *own, struct xfp_error *err);

/* Write the stamp of a step after its artifact was made, or found after reading the weights for its key. If the step
 * reads weights, the files must still be those that were inspected; otherwise the stamp would be wrong. */
enum xfp_status xfp_job_stamp(const struct xfp_job *job, enum xfp_stamp stamp, const char *key, struct xfp_error *err);

#endif
