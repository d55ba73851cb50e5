/* SPDX-License-Identifier: Apache-2.0 */
/*
 * footprint.h - the memory and disk requirements of a conversion.
 *
 * The memory model depends on shapes alone: the buffer sizes of each stage and the number of concurrent stages. The
 * disk model depends on the estimated format of each unit (estimate.h). The constants were measured with
 * tests/measure-peak; tests/cli/plan.bats checks runs against both models.
 */
#ifndef XFP_FOOTPRINT_H
#define XFP_FOOTPRINT_H

#include "conversion/estimate/estimate.h"
#include "stages/work/unit_state.h"

/* ---- disk -------------------------------------------------------------------------------------- */

/* Bytes that a conversion still has to write, in disk blocks; each member is the peak in its location. */
struct xfp_disk {
	uint64_t bundle;    /* next to OUT; an older bundle remains until the new one is complete */
	uint64_t artifacts; /* in the cache: missing artifacts and the growth of the manifest */
	uint64_t work;      /* in the work folder */
	uint64_t together; /* peak of all three together: their sum, unless artifacts are removed as the bundle grows */
};

/* Disk requirement of a conversion. Unit states must be up to date (xfp_prepare_units). */
struct xfp_disk xfp_footprint_disk(const struct xfp_estimate_input *all, enum xfp_bound bound);
/* Size of the bundle alone. */
uint64_t xfp_footprint_bundle(const struct xfp_estimate_input *all, enum xfp_bound bound);
/* Size of the files that the bundle carries unchanged, such as the config and the tokenizer. */
uint64_t xfp_footprint_files(const struct xfp_ledger *ledger);
static inline uint64_t xfp_disk_total(const struct xfp_disk *disk)
{
	return disk->together;
}
/* Bytes that exist twice, in a bundle of `bundle` bytes and in its artifacts, if artifacts are removed as the bundle
 * grows: parts move to the bundle in portions of this size (schemas/bundle.c). */
uint64_t xfp_footprint_portion(uint64_t bundle);

/* ---- memory ------------------------------------------------------------------------------------ */

/* Private memory of one process of a step that reads weights, in bytes. Other processes are small. */
uint64_t xfp_footprint_step(const struct xfp_estimate_input *all, uint32_t unit, enum xfp_stamp step, unsigned threads);

/* Proportional set sizes of all processes together, in bytes, for each phase; 0 for a phase that does not run. */
struct xfp_memory {
	uint64_t front;   /* xfp and its guard process; part of every phase */
	uint64_t inspect; /* while xfp-inspect reads headers */
	uint64_t units;   /* while units are in flight */
	uint64_t bundle;  /* while the bundle is written */
	uint64_t peak;    /* maximum over the phases */
	uint32_t largest; /* unit that needs most memory; UINT32_MAX if no unit is left to do */
};

/* Compute the memory needed with `jobs` units in flight, assuming that the largest run at the same time. `bundle`:
 * whether a bundle will be written. */
enum xfp_status xfp_footprint_memory(const struct xfp_estimate_input *all, unsigned jobs, bool bundle,
				     struct xfp_memory *memory, struct xfp_error *err);

#endif
