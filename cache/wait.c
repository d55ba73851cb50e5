/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/wait.h"

#include <stddef.h>
#include <time.h>

#define MOMENT_MS 50
#define BUSY_S 60

bool xfp_wait_is_over(const struct xfp_wait *wait)
{
	return wait->is_over && wait->is_over(wait->context);
}

static bool pause_for(const struct xfp_wait *wait, long milliseconds)
{
	const struct timespec time = { 0, milliseconds * 1000 * 1000 };

	if (xfp_wait_is_over(wait))
		return false;
	nanosleep(&time, NULL);
	return !xfp_wait_is_over(wait);
}

bool xfp_wait_a_moment(const struct xfp_wait *wait)
{
	return pause_for(wait, MOMENT_MS);
}

/* Most writers finish very quickly. */
int xfp_wait_busy(void *wait, int tries)
{
	return tries < BUSY_S * 1000 / MOMENT_MS && pause_for(wait, tries < MOMENT_MS ? tries + 1 : MOMENT_MS);
}
