/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_space.h - checks whether a conversion is likely to fit on the file systems it writes to.
 *
 * The check compares free space with the estimate (conversion/estimate/) minus existing files. A run that passes can
 * still fill its disk. Use --force to override the estimate.
 */
#ifndef XFP_DISK_SPACE_H
#define XFP_DISK_SPACE_H

#include "conversion/state/conversion.h"

/* Compare the remaining bytes to write with the free space on each file system of OUT, cache and work folder. With
 * --drop-cache (xfp_drop_predict), artifacts count with their peak. Returns XFP_FAILED naming the first file system
 * that is too small, with all figures. */
enum xfp_status xfp_check_disk_space(const struct xfp_conversion *c, struct xfp_error *err);

/* Free bytes on the file system of a path, which need not exist; 0 if unknown. */
uint64_t xfp_free_bytes_at(const char *path);

#endif
