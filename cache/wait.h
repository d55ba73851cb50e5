/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.h - waiting for others that use the cache: for its locks, and for a manifest that one of them is writing.
 *
 * A conversion holds signals back (base/system/signals.h), so whatever waits has to ask whether one came.
 */
#ifndef XFP_WAIT_H
#define XFP_WAIT_H

#include <stdbool.h>

/* Whose waiting it is. Zeroed: nobody ends it but time. */
struct xfp_wait {
	bool (*is_over)(void *context); /* once true, it stays so */
	void *context;
};

/* Whether there is to be no more waiting. */
bool xfp_wait_is_over(const struct xfp_wait *wait);
/* A moment, a twentieth of a second; false when the waiting is over. */
bool xfp_wait_a_moment(const struct xfp_wait *wait);
/* For sqlite3_busy_handler, with a struct xfp_wait as the context: goes on for a minute. */
int xfp_wait_busy(void *wait, int tries);

#endif
