/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/multiply/matvec_table_avx2.h"

#include "kernels/multiply/matvec_rows.h"

const struct xfp_matvec_set xfp_matvec_avx2 = { multiply_rows, xfp_matvec_outliers, NULL };
