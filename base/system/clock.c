/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/clock.h"

#include <time.h>

double xfp_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
