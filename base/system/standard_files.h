/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standard_files.h - keep descriptors 0 to 2 occupied if the caller closed them.
 */
#ifndef XFP_STANDARD_FILES_H
#define XFP_STANDARD_FILES_H

/* Replace each closed descriptor among 0 to 2 by /dev/null, for this process and its children. Every main calls this
 * first: otherwise the first files opened would get these numbers, and messages would be written into a ledger, a lock
 * or a bundle. Standard output is replaced by a read-only descriptor, so that xfp_output_finish reports printed text as
 * lost. If /dev/null cannot be opened, the process exits with status 1. */
void xfp_standard_files(void);

#endif
