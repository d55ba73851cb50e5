/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - CACHE/lock: conversions share it, who removes artifacts or replaces the manifest has it alone.
 *
 * The lock (flock) goes with the file descriptor, which children inherit: a conversion's lock is held
 * until the last of its stages has ended, however that came. Whoever takes it writes a line into the
 * file, "PID SPACE HOST WHAT", so that others can say whom they wait for; a line decides nothing, and
 * those of processes that are gone are left out. Stages that are run by hand take no lock: at worst an
 * artifact that they counted on is gone, which they report like a damaged one.
 */
#ifndef XFP_LOCK_H
#define XFP_LOCK_H

#include "cache/store.h"

/* Share the lock; `what` says who we are, "xfp convert -o /x/out.xfp". Waits some seconds for somebody
 * who has it alone, unless the store's wait is over before. *fd -1 with XFP_OK: there is nothing to lock here, since
 * the store is read-only or its file system knows no locks. */
enum xfp_status xfp_lock_share(const struct xfp_store *store, const char *what, int *fd, struct xfp_error *err);

/* Have it alone, or XFP_FAILED at once, naming who uses the cache. *fd -1 with XFP_OK: its file system
 * knows no locks; the caller should mention that. */
enum xfp_status xfp_lock_alone(const struct xfp_store *store, const char *what, int *fd, struct xfp_error *err);

/* Make a lock that is shared one that is had alone, for a moment: false at once where others share it, or where there
 * is none (-1). Children that inherited it are not others. Then share it again, as xfp_lock_share; between the two
 * nobody else can have taken it, but in the moment of a change somebody may, and is waited for. */
bool xfp_lock_have_alone(int fd);
enum xfp_status xfp_lock_share_again(const struct xfp_store *store, int fd, struct xfp_error *err);

/* Whether a lock that was taken is still the store's: while one waits, a whole cache may be removed
 * (cache/drop.h). -1 is. */
bool xfp_lock_is_of(const struct xfp_store *store, int fd);

/* -1 is fine. */
void xfp_lock_release(int fd);

#endif
