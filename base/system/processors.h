/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processors.h - how many processors there are to use, and how they are divided.
 */
#ifndef XFP_PROCESSORS_H
#define XFP_PROCESSORS_H

#include <stdint.h>

/* Processors that this process may use: how many units are in flight unless --jobs says otherwise. */
unsigned xfp_processors(void);
/* cores = jobs x threads: a stage has one thread unless there are fewer units than jobs, or OMP_NUM_THREADS
 * says otherwise. */
unsigned xfp_stage_threads(unsigned jobs, uint32_t units);

#endif
