/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timing.c - the clock, the median, and the number of calls per measurement.
 */
#include <stdlib.h>
#include <time.h>

#include "kernel-verify/trial/trial.h"

#define BATCH_SECONDS 1e-3 /* minimum per timed batch */

double xfp_seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return one < other ? -1 : one > other;
}

double xfp_median_of(double *of, unsigned count)
{
	qsort(of, count, sizeof *of, by_size);
	return of[count / 2];
}

bool xfp_timing_again(struct xfp_timing *timing)
{
	double now, spent;

	if (timing->calls && timing->calls < timing->batch) {
		timing->calls++;
		return true;
	}
	now = xfp_seconds_now();
	spent = now - timing->begun;
	if (!timing->batch) {
		timing->batch = 1;
	} else if (!timing->rounds && spent < BATCH_SECONDS) {
		timing->batch *= 2;
	} else {
		timing->seconds[timing->rounds++] = spent / (double)timing->batch;
		if (timing->rounds == XFP_TIMING_ROUNDS)
			return false;
	}
	timing->calls = 1;
	timing->begun = xfp_seconds_now();
	return true;
}
