/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matvec_narrow.c - rows of v2a and v2c times one or two vectors with 8-bit entries, if the library allows it
 * (matvec_tables.h): 15 instructions for 64 weights of v2c instead of 21 with 16-bit entries.
 */
#include "kernels/multiply/matvec_v2c.h"

#define COPY(k, tile)                            \
	static void v2a_##k##_##tile(ARGUMENTS)  \
	{                                        \
		v2a_rows(k, tile, true, PASSED); \
	}                                        \
	static void v2c_##k##_##tile(ARGUMENTS)  \
	{                                        \
		v2c_rows(k, tile, true, PASSED); \
	}
#define COPIES(k) COPY(k, 1) COPY(k, 2)
COPIES(2)
COPIES(3)
COPIES(4)

#define BY_K(name)                                                      \
	{                                                               \
		{ name##_2_1, name##_2_2 }, { name##_3_1, name##_3_2 }, \
		{                                                       \
			name##_4_1, name##_4_2                          \
		}                                                       \
	}

void xfp_matvec_narrow(ARGUMENTS)
{
	static xfp_matvec_fn *const narrow[2][3][2] = { BY_K(v2a), BY_K(v2c) };

	narrow[w->mode - XFP_MATVEC_V2A][w->k - 2][x->tile - 1](PASSED);
}
