/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.h - sixteen f32 numbers at a time, for XFP_FAST. Compilers translate them to the widest vectors of the machine.
 */
#ifndef XFP_FORWARD_LANES_H
#define XFP_FORWARD_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model/forward/lane_set.h"

typedef float xfp_lanes __attribute__((vector_size(XFP_LANES * sizeof(float))));
typedef int32_t xfp_lane_ints __attribute__((vector_size(XFP_LANES * sizeof(int32_t))));

/* `count` numbers, padded with zeros. */
static inline xfp_lanes xfp_lanes_some(const float *from, size_t count)
{
	xfp_lanes lanes = { 0 };

	memcpy(&lanes, from, (count < XFP_LANES ? count : XFP_LANES) * sizeof *from);
	return lanes;
}

static inline xfp_lanes xfp_lanes_load(const float *from)
{
	xfp_lanes lanes;

	memcpy(&lanes, from, sizeof lanes);
	return lanes;
}

static inline void xfp_lanes_put(xfp_lanes lanes, size_t count, float *to)
{
	memcpy(to, &lanes, (count < XFP_LANES ? count : XFP_LANES) * sizeof *to);
}

static inline float xfp_lanes_sum(xfp_lanes x)
{
	float sum[4] = { 0 };

	for (size_t i = 0; i < XFP_LANES; i++)
		sum[i % 4] += x[i];
	return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* e^x within a relative error of 2^-21; 2^-126 below -87, and 2^127 above 88. NaN stays NaN. */
static inline xfp_lanes xfp_lanes_exp(xfp_lanes x)
{
	xfp_lane_ints low = x<-87.0f, high = x> 88.0f, bits;
	xfp_lanes whole, r, sum;

	memcpy(&bits, &x, sizeof bits);
	bits = (bits & ~low & ~high) | (low & INT32_C(-1028784128)) | (high & INT32_C(1118830592)); /* -87 and 88 */
	memcpy(&x, &bits, sizeof x);
	whole = (x * 1.44269504f + 12582912.0f) - 12582912.0f; /* round to nearest */
	r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
	sum = r * (1.0f / 5040) + 1.0f / 720;
	sum = sum * r + 1.0f / 120;
	sum = sum * r + 1.0f / 24;
	sum = sum * r + 1.0f / 6;
	sum = sum * r + 0.5f;
	sum = sum * r * r + r + 1;
	bits = (__builtin_convertvector(whole, xfp_lane_ints) + 127) << 23;
	memcpy(&whole, &bits, sizeof whole);
	return sum * whole;
}

#endif
