/* SPDX-License-Identifier: Apache-2.0 */
#ifndef __clang__
/* Written out and scheduled before registers are given out, a chunk's look-ups would need ten times as many. */
#pragma GCC optimize("no-schedule-insns")
#endif
#include "kernels/multiply/matvec_table_neon.h"

#include "kernels/multiply/matvec_rows.h"

const struct xfp_matvec_set xfp_matvec_neon = { "neon", multiply_rows, xfp_matvec_outliers, decode_row, NULL };
