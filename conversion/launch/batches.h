/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batches.h - divides units into batches, each of which is one launched step.
 *
 * Launching takes a few tenths of a second, so a batch must be worth several seconds of work. But all jobs need one,
 * and if each gets several, they end at about the same time.
 */
#ifndef XFP_BATCHES_H
#define XFP_BATCHES_H

#include <stdint.h>

struct xfp_batch_unit {
	uint32_t unit;
	double seconds; /* of work, predicted */
	uint32_t batch; /* result */
};

/* Assign a batch to each unit, and sort the units: batch 0 first, and within a batch the heaviest unit first. `worth`:
 * least seconds of a batch, unless jobs would have none. Returns the number of batches. */
uint32_t xfp_batches(struct xfp_batch_unit *units, uint32_t count, unsigned jobs, double worth);

/* The heaviest unit's share of the work of the batch that begins at units[0], in thousandths, rounded up. `count`:
 * units from there on, of this batch and others. */
uint32_t xfp_batch_heaviest(const struct xfp_batch_unit *units, uint32_t count);

/* The threads of a stage on a node: the same share of its processors, so that the heaviest unit does not end last. */
unsigned xfp_batch_threads(unsigned processors, uint32_t heaviest);

#endif
