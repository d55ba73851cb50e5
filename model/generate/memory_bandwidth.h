/* SPDX-License-Identifier: Apache-2.0 */
#ifndef XFP_MEMORY_BANDWIDTH_H
#define XFP_MEMORY_BANDWIDTH_H

#include <stddef.h>

#include "base/xfp_error.h"

struct xfp_team;

#define XFP_BANDWIDTH_BYTES ((size_t)256 << 20) /* that the measurement allocates: more than caches hold */

/* Measure the bytes per second that a team's threads read from memory. XFP_FAILED if out of memory. */
enum xfp_status xfp_memory_bandwidth(struct xfp_team *team, double *bandwidth, struct xfp_error *err);

#endif
