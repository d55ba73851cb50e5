/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_crcs.h - verifies the CRC-32 of the members of PyTorch files and zip archives, once per file.
 */
#ifndef XFP_CHECK_CRCS_H
#define XFP_CHECK_CRCS_H

#include "conversion/state/conversion.h"

/* Read every archive of the checkpoint completely and check its members, unless the manifest records that the same file
 * was checked; --rehash forces a read. Does nothing in a dry run or without archives. Reports the bytes read and the
 * time. Returns XFP_BAD_INPUT naming a damaged member, or XFP_FAILED if a file has changed since it was inspected, or
 * on a signal. */
enum xfp_status xfp_check_crcs(struct xfp_conversion *c, struct xfp_error *err);

#endif
