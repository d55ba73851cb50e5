/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped.h - handle a bundle that becomes unreadable while a command uses it.
 *
 * Bundles are memory-mapped. If the file is truncated in the meantime, or its disk fails, reading a page raises SIGBUS
 * in the reading thread instead of returning an error. libxfp is a library and leaves that signal alone; a command
 * handles it here. Recovery is impossible, because the computation lacks its input. The handler therefore prints the
 * reason, removes the output created so far, and ends the process with the status of any other read failure: 3 for a
 * file that became shorter, 1 for a disk error.
 */
#ifndef XFP_MAPPED_H
#define XFP_MAPPED_H

#include "base/system/new_folder.h"

/* Handle SIGBUS until xfp_mapped_end. `program` is the prefix of the message; `path` is borrowed. The handler removes
 * the files of `created` (NULL: none), which must not change while another thread reads the bundle. Two bundles may be
 * begun for a comparison; xfp_mapped_end ends the later one. */
void xfp_mapped_begin(const char *program, const char *path, const struct xfp_created *created);
void xfp_mapped_end(void);
/* Set a callback for the handler to call before it ends the process (NULL: none), with the exit status and the message,
 * without the program's name or a newline. It must be async-signal-safe. */
void xfp_mapped_note(void (*note)(int status, const char *message, size_t size));

#endif
