/* SPDX-License-Identifier: Apache-2.0 */
/*
 * footprint.h - what a conversion needs in memory and on disk: the one home of both models.
 *
 * Memory follows from shapes alone: how large the buffers of each stage are, and how many stages run at once.
 * Disk follows from what the units are expected to be stored as (estimate.h). The constants were measured with
 * tests/measure-peak; tests/cli/plan.bats holds runs to both.
 */
#ifndef XFP_FOOTPRINT_H
#define XFP_FOOTPRINT_H

#include "conversion/estimate/estimate.h"
#include "stages/work/unit_state.h"

/* ---- disk -------------------------------------------------------------------------------------- */

/* Bytes that a conversion has still to write, as blocks on disk: the most that there is at a time in each place. */
struct xfp_disk {
	uint64_t bundle;    /* where OUT is; an older bundle stays beside it until it is complete */
	uint64_t artifacts; /* where the cache is: artifacts that are missing, and what the manifest grows by */
	uint64_t work;      /* where the work folder is */
	uint64_t together;  /* the most of all three at a time: their sum, unless artifacts go as the bundle grows */
};

/* Its units say what is there already (as xfp_prepare_units leaves them). */
struct xfp_disk xfp_footprint_disk(const struct xfp_extent *all, enum xfp_bound bound);
/* The size of the bundle alone. */
uint64_t xfp_footprint_bundle(const struct xfp_extent *all, enum xfp_bound bound);
/* Of that, the config, the tokenizer and whatever else is carried as it is. */
uint64_t xfp_footprint_files(const struct xfp_ledger *ledger);
static inline uint64_t xfp_disk_total(const struct xfp_disk *disk)
{
	return disk->together;
}
/* What is of a bundle of so many bytes and of the artifacts it is made of at the same time, where those go: parts of
 * units go into it in such portions (schemas/bundle.c). */
uint64_t xfp_footprint_portion(uint64_t bundle);

/* ---- memory ------------------------------------------------------------------------------------ */

/* Of one process of a step that reads weights: what it has for itself, in bytes. Others are small. */
uint64_t xfp_footprint_step(const struct xfp_extent *all, uint32_t unit, enum xfp_stamp step, unsigned threads);

/* Proportional set sizes of all processes together, in bytes, phase by phase; a phase that does not come is 0. */
struct xfp_memory {
	uint64_t front;   /* xfp itself, with its guard process; in every phase, and part of the others */
	uint64_t inspect; /* while the headers are read */
	uint64_t units;   /* while units are in flight */
	uint64_t bundle;  /* while the bundle is written */
	uint64_t peak;    /* the largest of them */
	uint32_t largest; /* the unit that takes most; UINT32_MAX: none is to be done */
};

/* With `jobs` units in flight: those that take most are taken to be there at the same time. `bundle`: whether one
 * is to be written. */
enum xfp_status xfp_footprint_memory(const struct xfp_extent *all, unsigned jobs, bool bundle,
				     struct xfp_memory *memory, struct xfp_error *err);

#endif
