/* SPDX-License-Identifier: Apache-2.0 */
#include "matvec_lanes_avx512.h"

#include "matvec_rows.h"

const struct xfp_matvec_set xfp_matvec_avx512 = { "avx512", multiply_rows };
