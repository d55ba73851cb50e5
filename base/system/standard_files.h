/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standard_files.h - keeps descriptors 0 to 2 occupied if the caller closed them.
 */
#ifndef XFP_STANDARD_FILES_H
#define XFP_STANDARD_FILES_H

/* Every main calls this first. Replaces each closed one of the three by /dev/null, for this process and its children:
 * otherwise the first files to be opened would get these numbers, and messages would be written into a ledger, a lock
 * or a bundle. Standard output is replaced by a descriptor that cannot be written, so that xfp_output_finish reports
 * whatever a program prints there as lost. If /dev/null cannot be opened, the process ends with status 1. */
void xfp_standard_files(void);

#endif
