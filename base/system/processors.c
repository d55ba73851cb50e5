/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/processors.h"

#include <sched.h>
#include <stdlib.h>

unsigned xfp_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

unsigned xfp_stage_threads(unsigned jobs, uint32_t units)
{
	const char *given = getenv("OMP_NUM_THREADS");
	long threads = given ? strtol(given, NULL, 10) : 0;

	if (threads > 0 && threads < 4096)
		return (unsigned)threads;
	return units && units < jobs ? jobs / units : 1;
}
