/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_record.h - what a run leaves in its work folder about itself, for `xfp status`.
 *
 * WORK/run holds "NAME=VALUE" entries, each ended by a NUL, then NULs up to a round size, and is replaced as a whole.
 * Of two entries of the same name the later one counts.
 * It says what was started, never whether that still lives: the lock does (work.h). A record that says "running" while
 * nobody holds the lock is that of a run that was killed.
 */
#ifndef XFP_RUN_RECORD_H
#define XFP_RUN_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"

#define XFP_RUN_FILE "run"
#define XFP_LOCK_FILE "lock"
/* The state of a run that ended before it knew which units there are: what else the folder holds may be of another. */
#define XFP_RUN_REFUSED "refused"

struct xfp_run_record {
	char *model, *out, *cache; /* absolute */
	char *command, *folder;    /* to go on: conversion/resume.h; NULL: not known */
	char *message;             /* of a failure; NULL: none */
	char state[16];            /* "running", "finished", "failed", "refused", "interrupted", "prepared" */
	char phase[16];            /* "inspecting", "checking CRCs", "preparing", "converting", "bundling"; "": ended */
	int64_t pid, status;       /* status: as a shell sees it, once it is over */
	int64_t started, ended;    /* milliseconds since 1970; 0: not yet */
	int64_t working;           /* when stages began to run */
	bool written;              /* by this run, before */
	size_t text_bytes;         /* of what was last written, before the NULs: a crash appends there */
};

/* Where the disk is full by then, the record that this run wrote before, which has space for the end, is overwritten in
 * place. A failure of the first removes what is there: none is better than that of an earlier run. */
enum xfp_status xfp_run_record_write(const char *work, struct xfp_run_record *record, struct xfp_error *err);
/* Frees what was in *record before. XFP_FAILED when there is none. */
enum xfp_status xfp_run_record_read(const char *work, struct xfp_run_record *record, struct xfp_error *err);
void xfp_run_record_free(struct xfp_run_record *record);

int64_t xfp_wall_ms(void);

#endif
