/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_space.h - whether a conversion can fit on the disks that it writes to.
 *
 * What is counted is a lower bound: a run that would fit is never refused, and one that is let through may still
 * find its disk full.
 */
#ifndef XFP_DISK_SPACE_H
#define XFP_DISK_SPACE_H

#include "commands/convert/conversion.h"

/* What remains to be written, at the least, against what is free on the file systems of OUT, cache and work folder.
 * Stages hold nothing back for --drop-cache, which frees disk space when the bundle stands. */
enum xfp_status xfp_check_disk_space(const struct xfp_conversion *c, struct xfp_error *err);

#endif
