/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_crcs.h - members of PyTorch files and of zip archives compared with their CRC-32, once for each file.
 */
#ifndef XFP_CHECK_CRCS_H
#define XFP_CHECK_CRCS_H

#include "conversion/state/conversion.h"

/* Read each archive of the checkpoint from end to end and compare its members, unless the manifest remembers that this
 * was done with the same file; --rehash reads again. Of checkpoints without archives, and in a dry run, nothing is
 * read. Reports what was read and how long it took. XFP_BAD_INPUT names a damaged member, XFP_FAILED a file
 * that has changed since it was inspected, or a signal. */
enum xfp_status xfp_check_crcs(struct xfp_conversion *c, struct xfp_error *err);

#endif
