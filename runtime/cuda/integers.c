/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cuda/integers.h"

#include <math.h>

bool xfp_cuda_pair_of(unsigned k, const float *entry, size_t count, struct xfp_cuda_pair *pair)
{
	double least = (double)entry[0], most = least;

	for (size_t i = 0; i < count; i++) {
		double e = (double)entry[i];

		if (!isfinite(e))
			return false;
		least = e < least ? e : least;
		most = e > most ? e : most;
	}
	pair->least = (float)least;
	pair->step = (float)((most - least) / (k == 4 ? 16383 : 65535));
	return true;
}

void xfp_cuda_integers(unsigned k, const struct xfp_cuda_pair *pair, const float *entry, size_t count, uint8_t *high,
		       uint8_t *low)
{
	double step = pair->step > 0 ? (double)pair->step : 1;
	unsigned bits = k == 4 ? 7 : 8;

	for (size_t i = 0; i < count; i++) {
		unsigned v = (unsigned)(((double)entry[i] - (double)pair->least) / step + 0.5);

		high[i] = (uint8_t)(v >> bits);
		low[i] = (uint8_t)(v & ((1u << bits) - 1));
	}
}
