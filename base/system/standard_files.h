/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standard_files.h - standard input, output and error are there, whoever started us.
 */
#ifndef XFP_STANDARD_FILES_H
#define XFP_STANDARD_FILES_H

/* The first thing in every main: those of the three that are closed become /dev/null, for us and for all that we start.
 * Otherwise the first files that are opened would take their numbers, and messages would go into a ledger, a lock or a
 * bundle. Where not even /dev/null can be opened, the process ends with status 1, since it could report nothing. */
void xfp_standard_files(void);

#endif
