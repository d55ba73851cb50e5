/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h - the number of threads for a stage's loops, and the number of the current one; 1 and 0 without OpenMP.
 */
#ifndef XFP_THREADS_H
#define XFP_THREADS_H

#ifdef _OPENMP
#include <omp.h>
#endif

static inline int xfp_threads(void)
{
#ifdef _OPENMP
	return omp_get_max_threads();
#else
	return 1;
#endif
}

/* From 0 to xfp_threads() - 1. */
static inline int xfp_thread(void)
{
#ifdef _OPENMP
	return omp_get_thread_num();
#else
	return 0;
#endif
}

#endif
