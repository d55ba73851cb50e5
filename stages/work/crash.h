/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash.h - the run record of a conversion that SIGBUS or another fatal signal ends.
 *
 * A record that says "running" means kill -9 or a power cut to xfp status. A crash is a failure: the signal handler
 * appends entries that say so to the record, into the space that it reserves (stages/work/run_record.h). The process
 * then ends by the signal, or with the status of base/system/mapped.h.
 */
#ifndef XFP_CRASH_H
#define XFP_CRASH_H

#include "stages/work/run_record.h"

/* Call whenever the record of a run at work was written: the handler appends to that one. */
void xfp_crash_watch(const char *program, const char *work, const struct xfp_run_record *record);
/* The record says how the run ended, or belongs to another process (fork). */
void xfp_crash_unwatch(void);

#endif
