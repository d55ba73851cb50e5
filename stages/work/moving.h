/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moving.h - WORK/moving: how far units have moved from the cache into a bundle that is not finished.
 *
 * With --drop-cache, xfp-bundle writes to a pending file that is kept whatever happens (".out.xfp.pending" beside OUT,
 * base/system/file.h), and xfp removes packed artifacts as their parts become durable there. One line says what that
 * file is: "LAYOUT DECIDED UNITS SHA256 SEAL". LAYOUT is the digest of where which bytes are in it, of units' parts
 * with their SHA-256; DECIDED that of stages/work/decided.h; UNITS how many units, from the first on, are in it and
 * synced; SHA256 that of the whole, "-" until it is complete, which is before it gets its name; SEAL that of the line
 * up to there (cache/seal.h).
 *
 * UNITS is for xfp to know what to remove, while xfp-bundle is at work. Where a unit is follows from its receipt and
 * from whether its artifact is there.
 *
 * A file that is not of the layout that is wanted is of no use. What is in one that is, is believed after it was
 * compared with the SHA-256 of each unit's receipt, never for this record alone.
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

/* Durable when it returns. */
enum xfp_status xfp_moving_write(const char *work, const struct xfp_moving *moving, struct xfp_error *err);
/* *found is false when there is none, or none that is sound. One that cannot be read is XFP_FAILED. */
enum xfp_status xfp_moving_read(const char *work, struct xfp_moving *moving, bool *found, struct xfp_error *err);
void xfp_moving_remove(const char *work);
/* Before xfp-bundle continues: units that are in both places are copied again, and stay until it says so again. */
enum xfp_status xfp_moving_restart(const char *work, struct xfp_error *err);

/* WORK/moving-seen, a number: xfp has removed what it wants to of units [0, units). xfp-bundle waits for that before it
 * goes on, or both places would fill up; nothing else depends on it. */
void xfp_moving_see(const char *work, uint32_t units);
bool xfp_moving_seen(const char *work, uint32_t units);

/* Remove the bundle's pending file, unless a process is writing it, and the record. */
void xfp_moving_discard(const char *work, const char *out);

#endif
