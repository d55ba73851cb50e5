/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.h - the number of jobs of a conversion.
 */
#ifndef XFP_JOBS_H
#define XFP_JOBS_H

#include "conversion/state/request.h"

/* The jobs that a parent make allows; 0 without one whose jobserver is reachable. `inherited`: the MAKEFLAGS that pass
 * the jobserver on. */
#define XFP_JOBSERVER 512
unsigned xfp_parent_jobs(char inherited[XFP_JOBSERVER]);

/* The units in flight: --jobs, or what a parent make allows; with a launcher, the tasks of this allocation; otherwise
 * the processors. */
unsigned xfp_jobs(const struct xfp_request *request);

/* The processors of this launched step. Some installations of Slurm do not bind steps to theirs: it is the least of
 * those that it may use, SLURM_CPUS_PER_TASK, and its tasks' share of SLURM_CPUS_ON_NODE. */
unsigned xfp_step_processors(void);
/* Those that a step is expected to have, for the process that launches it: SLURM_CPUS_PER_TASK, otherwise as many as
 * there are here. */
unsigned xfp_step_processors_expected(void);

#endif
