/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_progress.h - progress of a stage within a unit, for display: an embedding or a stack of experts takes minutes
 * without the start or end of a step. The bundle has a slot, too, after those of all units; layers follow.
 *
 * The file `pulses` of the work folder has a slot of a few bytes for each unit, which the running stage overwrites, at
 * most twice a second and not in the first half second. Nothing is appended, so the file does not grow. A slot contains
 * the stage's name; a slot of another stage, or an empty one, is ignored. Each host has its own file (hosts.h). All
 * failures are ignored: slots affect no result.
 */
#ifndef XFP_STAGE_PROGRESS_H
#define XFP_STAGE_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "schemas/ledger.h"

#define XFP_STAGE_PROGRESS_FILE "pulses"

struct xfp_stage_progress {
	struct xfp_watcher watcher; /* a ledger's: counts all rows that are read; must be first */
	const char *work, *stage;
	uint32_t unit;
	double all, done; /* total and finished work, as reported to the watcher */
	double written;   /* time of the last write, or of the stage's start */
	pthread_mutex_t lock;
};

/* The slot of a layer, in place of a unit's number. */
static inline uint32_t xfp_layer_slot(const struct xfp_ledger *ledger, uint32_t layer)
{
	return ledger->unit_count + 1 + layer;
}

/* Begin a stage of a unit, with `all` work known at the start. Additional work must be announced to the watcher early,
 * since the share displayed should not shrink. */
void xfp_stage_progress_begin(struct xfp_stage_progress *progress, const char *work, uint32_t unit, const char *stage,
			      uint64_t all);

/* The files of all hosts. A file that does not exist has no slots. */
struct xfp_stage_slots {
	int *files;
	size_t count;
};
struct xfp_stage_slots xfp_stage_progress_open(const char *work);
void xfp_stage_progress_close(struct xfp_stage_slots *slots);
/* The finished share, from 0 to 1, of such a stage of a unit, on the host that reports the largest; 0: unknown. */
double xfp_stage_progress_read(const struct xfp_stage_slots *slots, uint32_t unit, const char *stage);

#endif
