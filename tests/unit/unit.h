/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit.h - the headers that cmocka requires, the main function of tests, and a generator of test numbers.
 */
#ifndef XFP_TEST_UNIT_H
#define XFP_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/program.h"

/* A call, given a struct xfp_error named err, that returns XFP_OK. */
#define OK(call)                                                             \
	do {                                                                 \
		struct xfp_error err = { 0 };                                \
		enum xfp_status ok_ = (call);                                \
		if (ok_)                                                     \
			fail_msg("%s: status %d, %s", #call, ok_, err.text); \
	} while (0)

/* splitmix64 */
static inline uint64_t test_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Nearly Gaussian with sigma 1, exact in f32. */
static inline float test_gaussian(uint64_t *state)
{
	int64_t sum = 0;

	for (int i = 0; i < 12; i++)
		sum += (int64_t)(test_random(state) >> 48);
	return (float)(sum - 6 * 65536) / 65536;
}

#endif
