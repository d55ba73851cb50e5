/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/clock.h"

#include <time.h>

static double seconds_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double xfp_now(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

double xfp_thread_seconds(void)
{
	return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}
