/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h - process ranges of rows in several threads.
 */
#ifndef XFP_KERNEL_VERIFY_THREADS_H
#define XFP_KERNEL_VERIFY_THREADS_H

#include <pthread.h>
#include <stdlib.h>

struct xfp_row_range {
	void *context;
	size_t first, rows;
	void (*run)(const struct xfp_row_range *range);
};

static inline void *xfp_run_range(void *argument)
{
	const struct xfp_row_range *range = argument;

	range->run(range);
	return NULL;
}

/* Call `run` for parts of [0, rows), one per thread. If a thread cannot be created, parts run one after the other. */
static inline void xfp_each_range(unsigned threads, size_t rows, void (*run)(const struct xfp_row_range *),
				  void *context)
{
	struct xfp_row_range *range = calloc(threads, sizeof *range);
	pthread_t *thread = calloc(threads, sizeof *thread);
	unsigned started = 0;

	if (!range || !thread) {
		run(&(struct xfp_row_range){ context, 0, rows, run });
	} else {
		for (unsigned t = 0; t < threads; t++) {
			size_t first = rows * t / threads;

			range[t] = (struct xfp_row_range){ context, first, rows * (t + 1) / threads - first, run };
		}
		while (started + 1 < threads &&
		       !pthread_create(&thread[started], NULL, xfp_run_range, &range[started + 1]))
			started++;
		run(&range[0]);
		for (unsigned t = started + 1; t < threads; t++)
			run(&range[t]);
		for (unsigned t = 0; t < started; t++)
			pthread_join(thread[t], NULL);
	}
	free(range);
	free(thread);
}

#endif
