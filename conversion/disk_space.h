/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_space.h - whether a conversion is likely to fit on the disks that it writes to.
 *
 * What is counted is what is expected (conversion/estimate/), less what is there already. A run that is let through may
 * still find its disk full; whoever knows better than the estimate says --force.
 */
#ifndef XFP_DISK_SPACE_H
#define XFP_DISK_SPACE_H

#include "conversion/state/conversion.h"

/* What remains to be written against what is free, on each of the file systems that OUT, cache and work folder lie or
 * would lie on; of what --drop-cache removes as the bundle grows (xfp_drop_outlook), the most there is at a time.
 * XFP_FAILED names the first that is too small, with all figures. */
enum xfp_status xfp_check_disk_space(const struct xfp_conversion *c, struct xfp_error *err);

/* What is free where a path is or would be; 0: it cannot be told. */
uint64_t xfp_free_beside(const char *path);

#endif
