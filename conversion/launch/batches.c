/* SPDX-License-Identifier: Apache-2.0 */
#include "conversion/launch/batches.h"

#include <math.h>
#include <stdlib.h>

#define BATCHES_A_JOB 16 /* more of them hardly balance better */
#define MAX_UNITS 1000   /* of a batch, whose targets are on one command line */

static int by_seconds(const void *a, const void *b)
{
	const struct xfp_batch_unit *one = a, *other = b;

	if (one->seconds != other->seconds)
		return one->seconds > other->seconds ? -1 : 1;
	return one->unit < other->unit ? -1 : one->unit > other->unit;
}

static int by_batch(const void *a, const void *b)
{
	const struct xfp_batch_unit *one = a, *other = b;

	if (one->batch != other->batch)
		return one->batch < other->batch ? -1 : 1;
	return by_seconds(a, b);
}

static uint32_t count_batches(double total, uint32_t count, unsigned jobs, double worth)
{
	double most = (double)jobs * BATCHES_A_JOB, batches = total / worth;
	uint32_t result = (uint32_t)(batches < most ? batches : most), least = (count + MAX_UNITS - 1) / MAX_UNITS;

	result -= result % jobs; /* all jobs get the same number */
	result = result > jobs ? result : jobs;
	result = result > least ? result : least;
	return result < count ? result : count;
}

uint32_t xfp_batches(struct xfp_batch_unit *units, uint32_t count, unsigned jobs, double worth)
{
	struct {
		double seconds;
		uint32_t units;
	} * sums;
	double total = 0;
	uint32_t batches;

	for (uint32_t i = 0; i < count; i++)
		total += units[i].seconds;
	batches = count_batches(total, count, jobs, worth);
	qsort(units, count, sizeof *units, by_seconds);
	sums = batches < count ? calloc(batches, sizeof *sums) : NULL;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t lightest = 0;

		/* Without memory, or with a batch for each unit, take turns. */
		for (uint32_t b = 1; sums && b < batches; b++)
			lightest = sums[b].seconds < sums[lightest].seconds ? b : lightest;
		units[i].batch = sums ? lightest : i % batches;
		if (sums)
			sums[lightest].seconds += ++sums[lightest].units < MAX_UNITS ? units[i].seconds : INFINITY;
	}
	free(sums);
	qsort(units, count, sizeof *units, by_batch);
	return batches;
}

uint32_t xfp_batch_heaviest(const struct xfp_batch_unit *units, uint32_t count)
{
	double sum = 0;

	for (uint32_t i = 0; i < count && units[i].batch == units->batch; i++)
		sum += units[i].seconds;
	return sum > 0 ? (uint32_t)ceil(1000 * (units->seconds / sum)) : 1000;
}

unsigned xfp_batch_threads(unsigned processors, uint32_t heaviest)
{
	unsigned threads = (unsigned)((uint64_t)processors * heaviest / 1000);

	return threads ? threads : 1;
}
