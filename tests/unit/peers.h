/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h - code shared by the tests of other projects' formats.
 */
#ifndef XFP_TEST_PEERS_H
#define XFP_TEST_PEERS_H

#include <math.h>
#include <string.h>

#include "kernels/peers/peers.h"
#include "tests/unit/unit.h"

static inline const struct xfp_peer *peer_of(const char *name)
{
	for (size_t i = 0; i < XFP_PEERS; i++)
		if (!strcmp(xfp_peers[i].name, name))
			return &xfp_peers[i];
	fail_msg("there is no %s", name);
	return NULL;
}

static inline float peak_of(const float *x, size_t n)
{
	float peak = 0;

	for (size_t i = 0; i < n; i++)
		peak = fabsf(x[i]) > peak ? fabsf(x[i]) : peak;
	return peak;
}

#endif
