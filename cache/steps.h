/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.h - FOLDER/lock.steps, shared by the stages that work in a work folder or use a cache.
 *
 * make and the stages inherit the locks of a conversion, but only on its own host. So each stage shares this lock
 * (flock) of both folders for its life, wherever it runs: a stage that outlives its conversion on another host is
 * noticed, too.
 * A new conversion requires that no stage of an earlier one works in its work folder, and a process that takes the
 * cache's lock exclusively (lock.h) requires that no stage uses the cache. Neither holds this lock, and nobody converts
 * one lock to another, which flock does not do atomically.
 */
#ifndef XFP_STEPS_H
#define XFP_STEPS_H

#include <stdbool.h>

#define XFP_STEPS_FILE "lock.steps"

/* Share the lock; the descriptor to close at the end of the stage. -1: no conversion has locked this folder, it cannot
 * be written, or its file system has no locks. */
int xfp_steps_share(const char *folder);

/* Whether a stage shares the lock. The test takes it exclusively for a moment. */
bool xfp_steps_are_running(const char *folder);

#endif
