/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped.h - a bundle whose bytes can no longer be read while a command uses them.
 *
 * Bundles are mapped. Where the file has been truncated meanwhile, or its disk fails, reading a page does not return
 * an error but raises SIGBUS, in whichever thread reads it. libxfp, which belongs to engines, leaves that signal
 * alone; a command handles it here. There is nothing to go back to: what was being computed lacks its input. So the
 * handler says what happened, removes what the command has begun, and ends the process with the status that any
 * other failure to read would have had: 3 for a file that became shorter, 1 for a disk that does not answer.
 */
#ifndef XFP_MAPPED_H
#define XFP_MAPPED_H

#include "base/system/new_folder.h"

/* From here on, until xfp_mapped_end. `program` begins the message; `path` is borrowed. `made` (NULL: nothing) is
 * removed; it must not change while another thread reads the bundle. Two bundles that are compared may both be begun:
 * the end is that of the later one. */
void xfp_mapped_begin(const char *program, const char *path, const struct xfp_made *made);
void xfp_mapped_end(void);
/* Set what the handler calls before it ends the process (NULL: nothing), with the exit status and the message, without
 * the program's name or a newline. It may do what a signal handler may. */
void xfp_mapped_note(void (*note)(int status, const char *message, size_t size));

#endif
