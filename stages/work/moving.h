/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moving.h - WORK/moving: progress of moving units from the cache into an unfinished bundle.
 *
 * With --drop-cache, xfp-bundle writes to a pending file that survives failures (".out.xfp.pending" next to OUT,
 * base/system/file.h), and xfp removes packed artifacts as their parts become durable there. One line describes the
 * file: "LAYOUT DECIDED UNITS SHA256 SEAL". LAYOUT is a digest of its layout, with the SHA-256 of units' parts; DECIDED
 * that of stages/work/decided.h; UNITS the number of units, from the first on, that are in it and synced; SHA256 that
 * of the whole file, "-" until it is complete, just before it is renamed; SEAL that of the line up to there
 * (cache/seal.h).
 *
 * UNITS tells xfp which artifacts it can remove while xfp-bundle is running. The place of a unit follows from its
 * receipt and from whether its artifact exists.
 *
 * A file with another layout is useless. The contents of a file with the right layout are used only after comparison
 * with the SHA-256 in each unit's receipt, never because of this record alone.
 */
#ifndef XFP_MOVING_H
#define XFP_MOVING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/xfp_error.h"

#define XFP_MOVING_FILE "moving"
#define XFP_MOVING_SEEN_FILE "moving-seen"

struct xfp_moving {
	char layout[33], decided[33];
	uint32_t units;
	char sha256[65]; /* "": not complete */
};

/* Write the record; it is durable on return. */
enum xfp_status xfp_moving_write(const char *work, const struct xfp_moving *moving, struct xfp_error *err);
/* Read the record; *found is false if it is missing or invalid. XFP_FAILED: it cannot be read. */
enum xfp_status xfp_moving_read(const char *work, struct xfp_moving *moving, bool *found, struct xfp_error *err);
void xfp_moving_remove(const char *work);
/* Call before xfp-bundle continues: units that are in both places are copied again, and stay until it reports them
 * again. */
enum xfp_status xfp_moving_restart(const char *work, struct xfp_error *err);

/* WORK/moving-seen holds a number: xfp has finished removing artifacts of units [0, units). xfp-bundle waits for it
 * before it continues, or both places would fill up; nothing else depends on it. */
void xfp_moving_acknowledge(const char *work, uint32_t units);
bool xfp_moving_acknowledged(const char *work, uint32_t units);

/* Remove the bundle's pending file, unless a process is writing it, and the record. */
void xfp_moving_discard(const char *work, const char *out);

#endif
