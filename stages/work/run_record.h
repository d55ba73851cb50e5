/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_record.h - a run's record of itself in its work folder, for `xfp status`.
 *
 * WORK/run contains "NAME=VALUE" entries, each ended by a NUL, then NULs up to a round size, and is replaced as a
 * whole. Of two entries of the same name the later one applies. The record states what was started, never whether it is
 * still running: the lock does (work.h). If a record has the state "running" and nobody holds the lock, the run was
 * killed.
 */
#ifndef XFP_RUN_RECORD_H
#define XFP_RUN_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/xfp_error.h"

#define XFP_RUN_FILE "run"
#define XFP_LOCK_FILE "lock"
/* The state of a run that ended before it knew its units: other files of the folder may belong to another run. */
#define XFP_RUN_REFUSED "refused"

struct xfp_run_record {
	char *model, *out, *cache; /* absolute */
	char *command, *folder;    /* to resume: conversion/resume.h; NULL: not known */
	char *message;             /* of a failure; NULL: none */
	char state[16];            /* "running", "finished", "failed", "refused", "interrupted", "prepared" */
	char phase[16];            /* "inspecting", "checking CRCs", "preparing", "converting", "bundling"; "": ended */
	int64_t pid, status;       /* status: exit status as seen by a shell, after the end */
	int64_t started, ended;    /* milliseconds since 1970; 0: not yet */
	int64_t working;           /* when stages began to run */
	bool written;              /* this run has written the record before */
	size_t text_bytes;         /* text of the last write, without the NULs: a crash appends there */
};

/* Write the record. If the disk is full by then, this run's earlier record, which has reserved space, is overwritten in
 * place. If the first write fails, an existing record is removed: none is better than that of an earlier run. */
enum xfp_status xfp_run_record_write(const char *work, struct xfp_run_record *record, struct xfp_error *err);
/* Read the record, freeing the previous contents of *record. XFP_FAILED: it does not exist. */
enum xfp_status xfp_run_record_read(const char *work, struct xfp_run_record *record, struct xfp_error *err);
void xfp_run_record_free(struct xfp_run_record *record);

int64_t xfp_wall_ms(void);

#endif
