/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processors.h - the number of available processors, and how they are divided.
 */
#ifndef XFP_PROCESSORS_H
#define XFP_PROCESSORS_H

#include <stdint.h>

/* The number of processors that this process may use: the default number of units in flight (--jobs). */
unsigned xfp_processors(void);
/* The number of threads of a stage, so that jobs x threads = cores: 1 unless there are fewer units than jobs, or
 * OMP_NUM_THREADS is set. */
unsigned xfp_stage_threads(unsigned jobs, uint32_t units);

#endif
