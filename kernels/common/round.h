/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round.h - round to the nearest integer, ties to even, with the same result for every library and instruction set.
 *
 * Adding 1.5 * 2^52 moves the integer to the low bits of the mantissa. Requires |value| < 2^51 and the default rounding
 * mode.
 */
#ifndef XFP_ROUND_H
#define XFP_ROUND_H

#include <stdint.h>
#include <string.h>

static inline int64_t xfp_round_even(double value)
{
	uint64_t bits;

	value += 0x1.8p52;
	memcpy(&bits, &value, sizeof bits);
	return (int64_t)(bits & 0xfffffffffffff) - ((int64_t)1 << 51);
}

#endif
