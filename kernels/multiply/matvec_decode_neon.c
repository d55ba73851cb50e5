/* SPDX-License-Identifier: Apache-2.0 */
#ifndef __clang__
/* With scheduling before register allocation, the look-ups of a chunk would need ten times as many registers. */
#pragma GCC optimize("no-schedule-insns")
#endif
#include "kernels/multiply/matvec_table_neon.h"

#include "kernels/multiply/matvec_decode.h"

void xfp_matvec_decode_neon(const struct xfp_matvec *w, size_t row, float *x)
{
	decode_row(w, row, x);
}
