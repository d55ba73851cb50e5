/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash.h - complete the run record of a conversion that SIGBUS or another fatal signal ends.
 *
 * To xfp status, a record with state "running" means kill -9 or a power failure. A crash is a failure: the signal
 * handler appends entries to the record, into the space that it reserves (stages/work/run_record.h). The process then
 * ends by the signal, or with the status of base/system/mapped.h.
 */
#ifndef XFP_CRASH_H
#define XFP_CRASH_H

#include "stages/work/run_record.h"

/* Call after each write of a run's record: the handler appends to it. */
void xfp_crash_watch(const char *program, const char *work, const struct xfp_run_record *record);
/* Stop watching: the record is final, or belongs to another process (fork). */
void xfp_crash_unwatch(void);

#endif
