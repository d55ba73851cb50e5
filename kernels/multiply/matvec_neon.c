/* SPDX-License-Identifier: Apache-2.0 */
#ifndef __clang__
/* With scheduling before register allocation, the look-ups of a chunk would need ten times as many registers. */
#pragma GCC optimize("no-schedule-insns")
#endif
#include "kernels/multiply/matvec_table_neon.h"

#include "kernels/multiply/matvec_rows.h"

const struct xfp_matvec_set xfp_matvec_neon = { multiply_rows, xfp_matvec_outliers, NULL };
