/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pulse.h - how far a stage is inside a unit, for those who watch: an embedding or a stack of experts takes minutes, in
 * which no step begins or ends. The bundle is another such thing: its slot is behind those of all units.
 *
 * The file `pulses` of the work folder has a slot of a few bytes for each unit, which the stage that is at work on it
 * writes again and again, twice a second at most and not before it has run so long. Nothing else is written, so that
 * the file does not grow with time. A slot says which stage it is of; one of another stage, or none, says nothing. All
 * that fails is passed over: pulses decide nothing.
 */
#ifndef XFP_PULSE_H
#define XFP_PULSE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "schemas/ledger.h"

#define XFP_PULSES_FILE "pulses"

struct xfp_pulse {
	struct xfp_watcher watcher; /* a ledger's: all its rows that are read count; first */
	const char *work, *stage;
	uint32_t unit;
	double all, done; /* of the work that there is, as the watcher is told of it */
	double written;   /* when a slot was, or the stage began */
	pthread_mutex_t lock;
};

/* A stage begins with a unit. There is so much work for all that is known: what comes to more says so to the watcher,
 * and does so early, since a share that was told is not to shrink. */
void xfp_pulse_begin(struct xfp_pulse *pulse, const char *work, uint32_t unit, const char *stage, uint64_t all);

/* The file, to be closed; negative: there is none, which the next tolerates. And the share, from 0 to 1, that such a
 * stage has done of a unit; 0: it has not said. */
int xfp_pulses_open(const char *work);
double xfp_pulses_read(int file, uint32_t unit, const char *stage);

#endif
