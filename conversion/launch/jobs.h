/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs.h - the number of jobs of a conversion.
 */
#ifndef XFP_JOBS_H
#define XFP_JOBS_H

#include "conversion/state/request.h"

/* The units in flight: --jobs; with a launcher, what a parent make allows or the tasks of this allocation; otherwise
 * the processors. */
unsigned xfp_jobs(const struct xfp_request *request);

#endif
