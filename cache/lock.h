/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - CACHE/lock: shared by conversions, exclusive for removing artifacts and replacing the manifest.
 *
 * The lock (flock) belongs to the file descriptor, which children inherit: a conversion holds the lock until the last
 * of its stages has ended, for whatever reason. A holder writes the line "PID SPACE HOST WHAT" into the file, so that
 * others can report the process they wait for. Lines are informational only; those of ended processes are ignored.
 * CACHE/lock.guard is locked by a process that requests the exclusive lock, until it has it or shares the lock again.
 * Stages on other hosts do not inherit the lock, and those run by hand have none to inherit: each stage shares
 * CACHE/lock.steps (steps.h). A stage that starts after the exclusive lock was taken may miss an artifact, which it
 * reports like a damaged one.
 */
#ifndef XFP_LOCK_H
#define XFP_LOCK_H

#include "cache/store.h"

/* Take the lock shared; `what` describes the holder: "xfp convert -o /x/out.xfp". Waits some seconds for an exclusive
 * holder, or until the store's wait is over. *fd -1 with XFP_OK: no lock is needed because the store is read-only, or
 * none is available on its file system. */
enum xfp_status xfp_lock_shared(const struct xfp_store *store, const char *what, int *fd, struct xfp_error *err);

/* Take the lock exclusively. XFP_FAILED, after a second at most: the cache is in use by a stage, or by a holder of the
 * lock, whom the message names. *fd -1 with XFP_OK: the file system has no locks; the caller should warn. */
enum xfp_status xfp_lock_exclusive(const struct xfp_store *store, const char *what, int *fd, struct xfp_error *err);

/* xfp_lock_try_upgrade converts a shared lock to an exclusive one: false, after a second at most, if others share it or
 * there is no lock (-1); the lock is then still shared. Stages do not count. xfp_lock_downgrade converts it back and
 * releases the guard: nobody else gets the lock exclusively in between. */
bool xfp_lock_try_upgrade(const struct xfp_store *store, int fd, int *guard);
enum xfp_status xfp_lock_downgrade(const struct xfp_store *store, int fd, int guard, struct xfp_error *err);

/* Whether a lock is still the lock of this store's folder: the whole cache may have been removed during a wait
 * (cache/drop.h). True for -1. */
bool xfp_lock_is_of(const struct xfp_store *store, int fd);

/* Release the lock; -1 is accepted. */
void xfp_lock_release(int fd);

#endif
