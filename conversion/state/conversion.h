/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conversion.h - the state of one conversion: its request, folders, units, goal, and removal of artifacts.
 */
#ifndef XFP_CONVERSION_H
#define XFP_CONVERSION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/system/signals.h"
#include "cache/manifest.h"
#include "cache/store.h"
#include "conversion/state/notice.h"
#include "conversion/state/request.h"
#include "schemas/bundle.h"
#include "schemas/calibration.h"
#include "schemas/choice.h"
#include "schemas/ledger.h"
#include "stages/work/events.h"
#include "stages/work/run_record.h"
#include "stages/work/unit_state.h"

/* Where a conversion works: the work folder and the cache. */
struct xfp_conversion_place {
	int lock, log;                    /* file descriptors, -1: none */
	int cache_lock, cache_guard;      /* cache/lock.h; -1: none */
	bool created_work, created_cache; /* this run created the folder */
	size_t found_path;                /* length of the part of the work folder's path that existed before */
	size_t found_cache_path;          /* length of the part of the cache's path that existed before */
	bool refused;                     /* ended before any work, without an interruption */
	bool hosts_checked;               /* the hosts of the launcher share the folders */
	bool waiting_reported;            /* the launcher did not start a command for a while */
	bool crcs_kept;                   /* the manifest has results of this run's CRC-32 check */
	char *scratch; /* temporary folder that holds the ledger and the files of a dry run; NULL: none */
	struct xfp_run_record record;
	struct xfp_store store; /* folder NULL: there is no cache yet (only in a dry run) */
	struct xfp_manifest *manifest;
	int64_t run;     /* the manifest's number of this run, 0: none */
	int tick_ms;     /* interval of the callback of xfp_run; 0: about twice a second */
	double deadline; /* xfp_now() at which xfp_run kills its child; 0: none */
};

/* The units, and which of their artifacts are current and in the cache. */
struct xfp_conversion_units {
	struct xfp_ledger *ledger;
	struct xfp_unit_state *state; /* [ledger->unit_count] */
	uint64_t weights, weights_done;
	uint32_t todo; /* units that are not done */
	bool prepared; /* todo is known: the units of the work folder are the ledger's */
};

/* The inputs of a layer's matrices (schemas/inputs.h). */
struct xfp_layer_state {
	bool known;         /* the digest of its tensors is known: */
	uint8_t digest[16]; /* as in the key */
	bool in_store;      /* its current artifact is in the store */
	bool needed;        /* by a unit that is not done, or by a later layer */
	char key[33];       /* of its current artifact; "" if unknown */
};

/* Whether the stage of the layer must run. */
static inline bool xfp_layer_is_missing(const struct xfp_layer_state *state)
{
	return state->needed && !state->in_store;
}

/* The layers of a calibrated conversion (layers.h). */
struct xfp_conversion_layers {
	struct xfp_calibration calibration;
	struct xfp_identity *files;    /* [ledger->extra_count] small files when the calibration began, or NULL */
	uint32_t count;                /* the model's layers, and the step after the last; 0: no calibration */
	struct xfp_layer_state *state; /* [count] */
	uint32_t *of_unit;             /* [ledger->unit_count] a unit's layer, or XFP_NO_LAYER */
	uint64_t *inputs;              /* [count] bytes of the artifact to compute, about; 0: none */
	uint64_t bytes;                /* of those that exist at a time: of two layers, */
	bool stay;                     /* or of all */
	uint32_t at_work;              /* the layer whose stage is running, plus 1; 0: none */
};

/* Progress towards a goal, and its result. */
struct xfp_solved {
	uint32_t steps;              /* finished steps: the surveys, then each round of measuring */
	bool settled;                /* the final round is done */
	bool binding;                /* the goal requires fewer bytes than the most bits */
	uint64_t budget, total, max; /* in the goal's bytes: the limit, the size now, the size with the most bits */
	double error;                /* mean relative squared error, weighted */
	struct xfp_bundle_breakdown breakdown;
};

/* What the stages' events have reported so far. */
struct xfp_conversion_events {
	struct xfp_events_reader reader;
	bool leftovers;           /* the events are those of an earlier run */
	bool damaged;             /* a stage removed a damaged artifact */
	bool changed;             /* weights were not those that had been digested */
	bool torn;                /* lines of the events were damaged; reported once */
	uint32_t failures;        /* other failed stages */
	uint32_t failed_layer;    /* the first layer whose stage failed, plus 1; 0: none */
	enum xfp_status failure;  /* the status of the first of them */
	uint32_t unreached;       /* matrices that were fitted, and that no calibration token reached; */
	uint32_t unreached_units; /* units that have them */
	bool manifest_outdated;   /* the manifest could not be written; reported once */
	bool record_lost;         /* the manifest lacks units of this run; reported once */
};

/* The progress of the units, in weights and seconds (progress.h). */
struct xfp_conversion_progress {
	bool begun;
	double cached, fresh, started;
};

/* What --drop-cache removes before the bundle is complete (drop_cache.h). */
struct xfp_conversion_drop {
	struct xfp_dropping *dropping; /* NULL: nothing is dropped before the bundle is complete */
	unsigned units;                /* as struct xfp_estimate_input has it (xfp_drop_predict) */
	bool moved_usable;    /* there is a pending bundle that units were moved into, or the bundle that it became */
	uint32_t moved_stale; /* units that were moved there and are outdated */
	bool stands_alone;    /* the bundle is up to date, and the artifacts were dropped */
};

struct xfp_conversion {
	const struct xfp_request *request;
	struct xfp_parameters parameters; /* the request's, with the assignments that a goal was solved to */
	struct xfp_signals *signals;      /* held; long steps check for one. NULL: none */
	struct xfp_notify notify;
	struct xfp_conversion_place place;
	struct xfp_conversion_units units;
	struct xfp_conversion_layers layers;
	struct xfp_solved solved;
	struct xfp_conversion_events events;
	struct xfp_conversion_progress progress;
	struct xfp_conversion_drop drop;
};

/* For estimates; it borrows from the conversion. */
static inline struct xfp_estimate_input xfp_conversion_estimate_input(const struct xfp_conversion *c)
{
	return (struct xfp_estimate_input){ .parameters = &c->parameters,
					    .ledger = c->units.ledger,
					    .units = c->units.state,
					    .todo = c->units.todo,
					    .dropping = c->drop.units,
					    .layer_of = c->layers.of_unit,
					    .inputs = c->layers.inputs,
					    .layers = c->layers.count,
					    .inputs_stay = c->layers.stay,
					    .layer = c->layers.bytes ? c->layers.calibration.memory : 0 };
}

/* Free the assignments that a goal was solved to. Those of the request stay the request's. */
static inline void xfp_conversion_unassign(struct xfp_conversion *c)
{
	if (c->parameters.assigned != c->request->parameters.assigned)
		free(c->parameters.assigned);
	c->parameters.assigned = NULL;
	c->parameters.assigned_count = 0;
}

#endif
