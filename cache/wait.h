/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.h - wait for other users of the cache: for its locks, and for a manifest that is being written.
 *
 * A conversion blocks signals (base/system/signals.h), so every wait must poll for them.
 */
#ifndef XFP_WAIT_H
#define XFP_WAIT_H

#include <stdbool.h>

/* When to stop waiting. Zeroed: only after a timeout. */
struct xfp_wait {
	bool (*is_over)(void *context); /* must stay true once it is true */
	void *context;
};

/* Whether waiting must stop. */
bool xfp_wait_is_over(const struct xfp_wait *wait);
/* Wait for a twentieth of a second; false if waiting must stop. */
bool xfp_wait_a_moment(const struct xfp_wait *wait);
/* For sqlite3_busy_handler, with a struct xfp_wait as the context: retries for a minute. */
int xfp_wait_busy(void *wait, int tries);

#endif
